//! Tools that ask their caller: with requests of their own in the legacy era, and with
//! `input_required` in the modern one. The answers come back as the result.

use serde_json::json;

use super::call::structured;
use super::rpc::{Params, Reply, ReplySender, Server};

/// A question: its name, the method, and the params.
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
    pub(super) async fn ask_tool_questions(
        &self,
        tool: &str,
        params: &Params,
        channel: &ReplySender,
    ) -> Reply {
        let questions = QUESTIONS.into_iter().filter(|(name, ..)| tool == "everything" || tool == *name);
        if params.is_modern() {
            return input_required(tool, questions.collect(), params);
        }
        let mut answers = Vec::new();
        for (name, method, params) in questions {
            answers.push(format!(r#""{name}":{}"#, self.ask(channel, method, params).await));
        }
        answers_reply(&answers)
    }
}

impl Server {
    /// Asks outside any call, and stores the answers.
    pub(super) async fn ask_unprompted(&self, channel: &ReplySender) {
        let roots = self.ask(channel, "roots/list", "{}").await;
        let elicit = self.ask(channel, "elicitation/create", FORM).await;
        self.unprompted.send_replace(Some(format!(r#"{{"roots":{roots},"elicit":{elicit}}}"#)));
    }

    /// Waits for the answers to the questions outside any call.
    pub(super) async fn unprompted_answers(&self) -> String {
        let mut receiver = self.unprompted.subscribe();
        let answers = receiver.wait_for(Option::is_some).await.ok().and_then(|answers| answers.clone());
        answers.unwrap_or_default()
    }
}

fn input_required(tool: &str, questions: Vec<Question>, params: &Params) -> Reply {
    let state = format!("asked by {tool}");
    let Some(responses) = &params.input_responses else {
        let requests = questions
            .iter()
            .map(|(name, method, params)| format!(r#""{name}":{{"method":"{method}","params":{params}}}"#));
        let requests: Vec<_> = requests.collect();
        let (requests, state) = (requests.join(","), json!(state));
        return Reply::Result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":{state}}}"#
        ));
    };
    if params.request_state.as_ref() != Some(&state) {
        return Reply::Error(-32602, "the request state differs from the one that was sent".to_owned());
    }
    let mut answers = Vec::new();
    for (name, ..) in questions {
        match responses.get(name) {
            Some(response) => answers.push(format!(r#""{name}":{response}"#)),
            None => return Reply::Error(-32602, format!("no response to {name}")),
        }
    }
    answers_reply(&answers)
}

fn answers_reply(answers: &[String]) -> Reply {
    let answers = format!("{{{}}}", answers.join(","));
    structured(&answers, &answers)
}
