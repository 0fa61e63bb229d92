//! A call of the mirror: asked of the yard over the line, with what is said meanwhile handed on both ways.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use toolyard_hub::json::{self, Object, to_raw};
use toolyard_hub::{Abilities, Answers, Call, Client, Error, Kind, Outcome, Question, Raw, Target};

use super::line::{Asked, Line, Said};
use super::read::words;
use super::server::Server;

/// Times longer than this are not said: the yard allows less anyway.
const LONG: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Carries a call out; dropping the future cancels it there.
pub(super) async fn call(server: &Server, call: Call) -> Result<Outcome, Error> {
    let Call { target, deadline, client, .. } = call;
    let abilities = client.abilities().clone();
    let Wanted { subtype, subject, mut words, kind } = wanted(server, target, &abilities)?;
    let remaining = deadline.remaining();
    if remaining < LONG && subtype != "mcp_complete" {
        let millis = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
        words.set("timeout_ms", to_raw(&millis.max(1)));
    }
    let line = server.way.line()?;
    server.way.announce(&subject);
    let mut asked = line.ask(subtype, words).await?;
    let id = asked.id;
    let mut answering = FuturesUnordered::new();
    let response = loop {
        tokio::select! {
            said = asked.next() => match said {
                Said::Progress(progress) => client.progress(progress),
                Said::Log(line) => client.log(line),
                Said::Chunk(chunk) => client.chunk(chunk).await,
                Said::Ask(questions) => answering.push(answer(&line, &client, id, questions)),
                Said::Ended(end) => break end,
            },
            Some(answered) = answering.next() => answered?,
        }
    };
    let response = response.map_err(|error| match error.kind() {
        // One code of the yard stands for both.
        Kind::UnknownResource => error.with_kind(kind),
        _ => error,
    })?;
    let response = Object::parse(&response).unwrap_or_default();
    let body = response.get("result").map_or_else(json::empty_object, ToOwned::to_owned);
    let result = Object::parse(&body).unwrap_or_default();
    let failed = result.get("isError").is_some_and(|failed| failed.get() == "true");
    Ok(Outcome { failed, modern: result.contains("resultType"), body })
}

/// Puts the questions of a call to the caller, and hands the answers on.
async fn answer(
    line: &std::sync::Arc<Line>,
    client: &Client,
    id: u64,
    questions: Vec<Question>,
) -> Result<(), Error> {
    let answers: Answers = client.ask(questions).await?;
    let mut said = Object::default();
    for (key, answer) in answers {
        said.set(&key, answer);
    }
    let mut words = Object::default();
    words.set("request", to_raw(&id));
    words.set("answers", said.to_raw());
    line.ask("mcp_answer", words).await.map(Asked::end)?.await.map(drop)
}

/// A call in the words of the control socket.
struct Wanted {
    subtype: &'static str,
    /// What the yard will say that it is of.
    subject: String,
    words: Object,
    /// What it means if there is no such thing.
    kind: Kind,
}

fn wanted(server: &Server, target: Target, abilities: &Abilities) -> Result<Wanted, Error> {
    let gone = |kind: Kind, name: &str| {
        Error::new(kind, format!("the yard does not offer {} any more", json::short(name)))
    };
    let tool = |raw: &str| server.full_tool(raw).ok_or_else(|| gone(Kind::UnknownTool, raw));
    let prompt = |raw: &str| server.full_prompt(raw).ok_or_else(|| gone(Kind::UnknownPrompt, raw));
    let short = |uri: &str| json::short(uri).into_owned();
    Ok(match target {
        Target::Tool { name, arguments } => {
            let subject = tool(&name)?;
            let mut words = words([("tool", subject.as_str().into()), ("asks", asks(abilities))]);
            words.set("arguments", arguments);
            Wanted { subtype: "mcp_call", subject, words, kind: Kind::UnknownTool }
        }
        Target::Resource { uri } => {
            let name = toolyard_hub::Source::name(server).as_str();
            let words = words([("uri", uri.as_str().into()), ("server_name", name.into())]);
            Wanted { subtype: "mcp_read", subject: short(&uri), words, kind: Kind::UnknownResource }
        }
        Target::Prompt { name, arguments } => {
            let subject = prompt(&name)?;
            let mut words = words([("name", subject.as_str().into())]);
            words.set("arguments", arguments);
            Wanted { subtype: "mcp_prompt", subject, words, kind: Kind::UnknownPrompt }
        }
        Target::PromptCompletion { name, argument, value, context } => {
            let subject = prompt(&name)?;
            let reference = json!({"type": "ref/prompt", "name": subject});
            let words = completion(reference, &argument, &value, context);
            Wanted { subtype: "mcp_complete", subject, words, kind: Kind::UnknownPrompt }
        }
        Target::TemplateCompletion { uri, argument, value, context } => {
            let words = completion(json!({"type": "ref/resource", "uri": uri}), &argument, &value, context);
            Wanted { subtype: "mcp_complete", subject: short(&uri), words, kind: Kind::UnknownResource }
        }
    })
}

fn completion(reference: Value, argument: &str, value: &str, context: Option<Raw>) -> Object {
    let mut words = words([("ref", reference), ("argument", json!({"name": argument, "value": value}))]);
    if let Some(context) = context {
        words.set("context", context);
    }
    words
}

/// What the caller can be asked.
fn asks(abilities: &Abilities) -> Value {
    let kinds = [
        (abilities.elicit_form, "elicit_form"),
        (abilities.elicit_url, "elicit_url"),
        (abilities.sample, "sample"),
        (abilities.roots, "roots"),
    ];
    kinds.into_iter().filter(|(can, _)| *can).map(|(_, kind)| kind).collect()
}
