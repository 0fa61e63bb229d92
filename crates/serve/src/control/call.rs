//! Calls, reads, prompts and completions: from the words of the socket to a request for the hub, and what it says on the
//! way back. Dropping one cancels it.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    Abilities, CallContext, Client, ClientSession, Deadline, Error, ExecutionId, FrontName, Kind, Level,
    Outcome, Raw, Reach, Reference, Request, SourceName, Update, What,
};

use super::asks::word;
use super::desk::Desk;
use super::errors::Trouble;
use super::order::{About, Id};
use super::shape;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallTool {
    tool: String,
    arguments: Option<Raw>,
    timeout_ms: Option<u64>,
    session_id: Option<String>,
    asks: Option<Vec<Asked>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    ElicitForm,
    ElicitUrl,
    Sample,
    Roots,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    uri: String,
    server_name: Option<String>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetPrompt {
    name: String,
    arguments: Option<Raw>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    r#ref: Ref,
    argument: Argument,
    context: Option<Raw>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Ref {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    name: String,
    value: String,
}

/// A call as it is asked for.
pub(super) struct Wanted {
    what: What,
    timeout: Option<Duration>,
    session_id: Option<String>,
    reach: Reach,
    asks: Vec<Asked>,
    told: Told,
}

/// What the response tells beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Execution,
    Result,
}

impl From<CallTool> for Wanted {
    fn from(words: CallTool) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            session_id: words.session_id,
            asks: words.asks.unwrap_or_else(|| vec![Asked::ElicitForm, Asked::ElicitUrl]),
            ..Self::of(What::Tool { name: words.tool, arguments: words.arguments })
        }
    }
}

impl From<Read> for Wanted {
    fn from(words: Read) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            reach: words.server_name.map_or(Reach::All, |name| Reach::Source(SourceName::new(name))),
            ..Self::of(What::Resource { uri: words.uri })
        }
    }
}

impl From<GetPrompt> for Wanted {
    fn from(words: GetPrompt) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            ..Self::of(What::Prompt { name: words.name, arguments: words.arguments })
        }
    }
}

impl From<Complete> for Wanted {
    fn from(words: Complete) -> Self {
        let reference = match words.r#ref {
            Ref::Prompt { name } => Reference::Prompt(name),
            Ref::Resource { uri } => Reference::Template(uri),
        };
        let Argument { name: argument, value } = words.argument;
        let what = What::Completion { reference, argument, value, context: words.context };
        Self { told: Told::Result, ..Self::of(what) }
    }
}

impl Wanted {
    fn of(what: What) -> Self {
        Self {
            what,
            timeout: None,
            session_id: None,
            reach: Reach::All,
            asks: Vec::new(),
            told: Told::Execution,
        }
    }
}

/// What a socket can be asked in some call; each call says for itself which of these it can be asked. Roots are not among
/// them: they are of a session, not of a call, and a person has none.
fn socket_abilities() -> Abilities {
    Abilities { elicit_form: true, elicit_url: true, sample: true, roots: false, log_level: None }
}

/// Makes a call and stays with it; what it says meanwhile goes out at once.
pub(super) async fn call(
    desk: &Desk,
    id: &Id,
    wanted: Wanted,
    cancel: CancellationToken,
) -> Result<String, Trouble> {
    let began = Instant::now();
    let execution = ExecutionId::fresh().map_err(|error| Trouble::of(&error.into(), ""))?;
    let longest = desk.control.yard.limits().call_time;
    let can = |kind| wanted.asks.contains(&kind);
    let abilities = Abilities {
        elicit_form: can(Asked::ElicitForm),
        elicit_url: can(Asked::ElicitUrl),
        sample: can(Asked::Sample),
        roots: can(Asked::Roots),
        log_level: Some(Level::Info),
    };
    let (client, mut updates) = Client::new(abilities);
    let request = Request {
        deadline: Deadline::after(wanted.timeout.map_or(longest, |timeout| timeout.min(longest))),
        cancel,
        context: CallContext {
            session_id: Some(wanted.session_id.map_or_else(|| desk.session.clone(), Into::into)),
            client_session: Some(ClientSession::new(
                desk.session.clone(),
                socket_abilities(),
                desk.ended.clone(),
            )),
            headers: desk.headers.clone(),
            reach: wanted.reach,
            front: Some(FrontName::Control),
            ..CallContext::default()
        },
        client,
        id: Some(execution),
        ..Request::new(wanted.what, desk.principal())
    };
    let mut calling = Box::pin(desk.control.yard.call(request));
    let answer = {
        let passing = async {
            pass_on(desk, id, &mut updates).await;
            std::future::pending::<()>().await;
        };
        // Side by side: a client that does not read holds up what is said, never the call's own clock.
        tokio::select! {
            biased;
            answer = &mut calling => answer,
            () = passing => Err(Error::new(Kind::Bug, "the call was lost")),
        }
    };
    drop(calling);
    // What was said before the end comes before the end.
    updates.close();
    pass_on(desk, id, &mut updates).await;
    match answer {
        Ok(outcome) => Ok(ended(&outcome, execution, began.elapsed(), wanted.told)),
        Err(error) => Err(Trouble::of(&error, &shape::execution(execution))),
    }
}

fn ended(outcome: &Outcome, execution: ExecutionId, duration: Duration, told: Told) -> String {
    let result = outcome.body.get();
    match told {
        Told::Execution => format!(
            r#"{{"executionId":"{}","durationMs":{},"result":{result}}}"#,
            shape::execution(execution),
            shape::millis(duration)
        ),
        Told::Result => format!(r#"{{"result":{result}}}"#),
    }
}

/// Hands on what the call says, until it says no more. Nothing is taken that there is no room for.
async fn pass_on(desk: &Desk, id: &Id, updates: &mut mpsc::Receiver<Update>) {
    loop {
        desk.outbox.room().await;
        let Some(update) = updates.recv().await else { return };
        let (r#type, more) = match update {
            Update::Progress(progress) => ("progress", Value::Object(shape::progress(&progress))),
            Update::Chunk(chunk) => ("chunk", json!({"chunk": chunk})),
            Update::Log(line) => {
                let mut told = Map::from_iter([("level".to_owned(), json!(line.level))]);
                if let Some(logger) = line.logger {
                    told.insert("logger".to_owned(), logger.into());
                }
                told.insert("data".to_owned(), line.data);
                ("log", told.into())
            }
            Update::Ask(ask) => {
                let question = |question: &toolyard_hub::Question| {
                    let mut told = Object::default();
                    told.set("key", to_raw(&question.key));
                    told.set("kind", to_raw(word(question.kind)));
                    told.set("params", question.params.clone());
                    told
                };
                let questions: Vec<Object> = ask.questions.iter().map(question).collect();
                // Before the client hears of it: its answer may be quick.
                desk.running.ask(id, ask);
                let asked = Asking { questions };
                desk.outbox.push(About { r#type: "ask", id, more: asked }.write());
                continue;
            }
            // Whoever is connected need not hang up.
            Update::Pause(_) => continue,
        };
        desk.outbox.push(About { r#type, id, more }.write());
    }
}

#[derive(serde::Serialize)]
struct Asking {
    questions: Vec<Object>,
}
