//! Tools that ask whoever calls them: with requests of their own in the legacy era, with `input_required` in the
//! modern one. What was said comes back as the result.

use serde_json::json;

use super::call::structured;
use super::rpc::{Params, Reply, Server, Way};

/// What is asked: a name for it, the method, and the params.
type Question = (&'static str, &'static str, &'static str);

const QUESTIONS: [Question; 3] = [
    ("elicit", "elicitation/create", FORM),
    ("sample", "sampling/createMessage", MODEL),
    ("roots", "roots/list", "{}"),
];

const FORM: &str = concat!(
    r#"{"message":"What is your name?","requestedSchema":{"type":"object","#,
    r#""properties":{"name":{"type":"string","title":"Name"}},"required":["name"]}}"#,
);

const MODEL: &str =
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say a word."}}],"maxTokens":10}"#;

impl Server {
    /// Asks the question that the tool is named for, or all of them.
    pub(super) async fn ask_tool_questions(&self, tool: &str, params: &Params, way: &Way) -> Reply {
        let asked = QUESTIONS.into_iter().filter(|(name, ..)| tool == "everything" || tool == *name);
        if params.is_modern() {
            return input_required(tool, asked.collect(), params);
        }
        let mut said = Vec::new();
        for (name, method, questions) in asked {
            said.push(format!(r#""{name}":{}"#, self.ask(way, method, questions).await));
        }
        answers_reply(&said)
    }
}

impl Server {
    /// Asks outside any call, and keeps what was said.
    pub(super) async fn ask_unprompted(&self, way: &Way) {
        let roots = self.ask(way, "roots/list", "{}").await;
        let elicit = self.ask(way, "elicitation/create", FORM).await;
        self.told.send_replace(Some(format!(r#"{{"roots":{roots},"elicit":{elicit}}}"#)));
    }

    /// What was said outside any call, once it was.
    pub(super) async fn unprompted_answers(&self) -> String {
        let mut told = self.told.subscribe();
        let said = told.wait_for(Option::is_some).await.ok().and_then(|said| said.clone());
        said.unwrap_or_default()
    }
}

fn input_required(tool: &str, asked: Vec<Question>, params: &Params) -> Reply {
    let state = format!("asked by {tool}");
    let Some(responses) = &params.input_responses else {
        let requests = asked
            .iter()
            .map(|(name, method, params)| format!(r#""{name}":{{"method":"{method}","params":{params}}}"#));
        let requests: Vec<_> = requests.collect();
        let (requests, state) = (requests.join(","), json!(state));
        return Reply::Result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":{state}}}"#
        ));
    };
    if params.request_state.as_ref() != Some(&state) {
        return Reply::Error(-32602, "another request state than the one that was given".to_owned());
    }
    let mut said = Vec::new();
    for (name, ..) in asked {
        match responses.get(name) {
            Some(response) => said.push(format!(r#""{name}":{response}"#)),
            None => return Reply::Error(-32602, format!("no response to {name}")),
        }
    }
    answers_reply(&said)
}

fn answers_reply(said: &[String]) -> Reply {
    let said = format!("{{{}}}", said.join(","));
    structured(&said, &said)
}
