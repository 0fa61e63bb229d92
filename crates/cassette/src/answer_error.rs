//! What a replay answers to a request that the recording cannot answer.

use serde_json::{Value, json};
use toolyard_wire::{RequestId, RpcError, code};

use crate::tape::{Exchange, Tape};

/// How much of the params a message shows, in characters.
const SHOWN: usize = 300;

/// Returns the error for a request that was not recorded. It names the nearest one that was.
pub(crate) fn unmatched(tape: &Tape, method: &str, params: &Value) -> RpcError {
    let same_method: Vec<&Exchange> =
        tape.requests().filter(|exchange| exchange.trigger.method == method).collect();
    let nearest = same_method.iter().copied().reduce(|best, next| {
        if likeness(params, &next.trigger.params) > likeness(params, &best.trigger.params) {
            next
        } else {
            best
        }
    });
    let Some(nearest) = nearest else {
        let mut methods: Vec<&str> = Vec::new();
        for exchange in tape.requests() {
            if !methods.contains(&exchange.trigger.method.as_str()) {
                methods.push(&exchange.trigger.method);
            }
        }
        let message =
            format!("the recording has no `{method}` request, only: {}", shorten(&methods.join(", ")));
        return RpcError::new(code::METHOD_NOT_FOUND, message);
    };
    let asked = shorten(&params.to_string());
    let near = shorten(&nearest.trigger.params.to_string());
    let message = format!(
        "the recording has no `{method}` request with the params {asked}; the nearest, in line {}, has {near}",
        nearest.line
    );
    let data = json!({
        "asked": {"method": method, "params": params},
        "nearest": {"line": nearest.line, "params": nearest.trigger.params},
    });
    RpcError::new(code::INVALID_PARAMS, message).with_data(data)
}

/// Returns the error for a request whose answer was not recorded.
pub(crate) fn unanswered(exchange: &Exchange) -> RpcError {
    let message = format!(
        "the recording ends before the answer to the `{}` request in line {}",
        exchange.trigger.method, exchange.line
    );
    RpcError::new(code::INTERNAL, message)
}

/// Returns the error for a request whose answer depends on one of the client.
pub(crate) fn lost_answer() -> RpcError {
    let message = "the client did not answer a request that it answered in the recording".to_owned();
    RpcError::new(code::INTERNAL, message)
}

/// Returns the error that stands for an HTTP response without a message.
pub(crate) fn http_error(status: u16, body: &str) -> RpcError {
    let message =
        format!("the recorded server responded with HTTP status {status}: {}", shorten(body.trim()));
    RpcError::new(code::INTERNAL, message)
}

/// Writes an error response. `id` is `None` if the ID of the request could not be read.
pub(crate) fn write_error_response(id: Option<&RequestId>, error: &RpcError) -> String {
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        body["data"] = data.clone();
    }
    match id {
        Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{body}}}"#, id.as_json()),
        None => format!(r#"{{"jsonrpc":"2.0","error":{body}}}"#),
    }
}

/// How similar two params are: the target counts more than the arguments.
fn likeness(asked: &Value, recorded: &Value) -> f64 {
    let is_same = |key: &str| asked.get(key).is_some() && asked.get(key) == recorded.get(key);
    let target = ["name", "uri", "ref"].iter().filter(|key| is_same(key)).count();
    let target = if target > 0 { 2.0 } else { 0.0 };
    let shown = |value: &Value| value.to_string().chars().take(SHOWN).collect::<String>();
    target + strsim::jaro_winkler(&shown(asked), &shown(recorded))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::unmatched;
    use crate::tape::tests::tape;

    #[test]
    fn the_error_names_the_nearest_recorded_request() {
        let tape = tape(&[
            r#"> {"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}"#,
            r#"> {"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"bye"}}}"#,
            r#"> {"id":3,"method":"tools/call","params":{"name":"add","arguments":{"message":"hallo"}}}"#,
        ]);
        let asked = json!({"name": "echo", "arguments": {"message": "hallo"}});
        let error = unmatched(&tape, "tools/call", &asked);
        assert_eq!(error.code, -32602);
        assert_eq!(
            error.message,
            r#"the recording has no `tools/call` request with the params {"name":"echo","arguments":{"message":"hallo"}}; the nearest, in line 2, has {"name":"echo","arguments":{"message":"hello"}}"#
        );
        assert_eq!(error.data.unwrap()["nearest"]["line"], 2);
        let error = unmatched(&tape, "prompts/get", &json!({}));
        let expect = "the recording has no `prompts/get` request, only: tools/call";
        assert_eq!((error.code, error.message.as_str()), (-32601, expect));
    }
}
