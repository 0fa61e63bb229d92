//! A call in formats that can be pasted elsewhere: a command line, a curl request, a JSON-RPC
//! message.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_hub::CallTarget;
use toolyard_hub::json::{Object, to_raw};

use crate::calls::CallSpec;
use crate::message::UiSettings;

/// The address used when the address of the yard is unknown.
const USUAL: &str = "http://127.0.0.1:8080/";
/// In double quotes, so that the shell expands the token.
const AUTHORIZATION: &str = r#""Authorization: Bearer $TOOLYARD_TOKEN""#;

/// Returns the call as a shell command, including the options needed to reach the same servers.
pub(crate) fn as_command(subject: &CallSpec, settings: &UiSettings) -> String {
    let (verb, name) = match &subject.target {
        CallTarget::Tool { name, .. } => ("call", name),
        CallTarget::Prompt { name, .. } => ("prompt", name),
        CallTarget::Resource { uri } => ("read", uri),
        CallTarget::Completion { .. } => ("complete", &subject.raw_name),
    };
    let mut words = vec!["toolyard".to_owned(), verb.to_owned(), name.clone()];
    if let Some(arguments) = subject.arguments() {
        words.extend(argument_words(arguments));
    }
    words.extend_from_slice(&settings.call_args);
    let mut line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    if let Some(yard) = &settings.yard {
        line.push_str(&format!(" --url {} --header {AUTHORIZATION}", quote(&yard_url(yard, "mcp"))));
    }
    line
}

/// Returns the arguments one by one where the command line can express that, otherwise all of them
/// as JSON.
fn argument_words(arguments: &RawValue) -> Vec<String> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('-')
            && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
    };
    match Object::parse(arguments) {
        Ok(object) if object.members().all(|(name, _)| plain(name)) => {
            let pair = |(name, value): (&str, &RawValue)| match serde_json::from_str::<String>(value.get()) {
                Ok(text) => format!("{name}={text}"),
                Err(_) => format!("{name}:={}", value.get()),
            };
            object.members().map(pair).collect()
        }
        _ => vec!["--args".to_owned(), arguments.get().to_owned()],
    }
}

/// Returns the call as a REST request to a served yard. Only tools can be called that way.
pub(crate) fn as_curl(subject: &CallSpec, settings: &UiSettings) -> Option<String> {
    let CallTarget::Tool { name, arguments } = &subject.target else { return None };
    let mut body = Object::default();
    body.set("params", arguments.clone().unwrap_or_else(|| to_raw(&json!({}))));
    let body = quote(body.to_raw().get());
    let yard = settings.yard.as_deref().unwrap_or(USUAL);
    let address = quote(&yard_url(yard, &format!("mcp/tools/{name}/execute")));
    Some(format!("curl -H {AUTHORIZATION} -H 'Content-Type: application/json' -d {body} {address}"))
}

/// Returns the call as the JSON-RPC request that the server receives.
pub(crate) fn as_message(subject: &CallSpec) -> String {
    let (method, params) = match &subject.target {
        CallTarget::Tool { .. } => ("tools/call", name_and_arguments(subject)),
        CallTarget::Prompt { .. } => ("prompts/get", name_and_arguments(subject)),
        CallTarget::Resource { uri } => {
            let mut params = Object::default();
            params.set("uri", to_raw(uri));
            ("resources/read", params)
        }
        CallTarget::Completion { .. } => ("completion/complete", Object::default()),
    };
    let mut message = Object::default();
    message.set("jsonrpc", to_raw("2.0"));
    message.set("id", to_raw(&1));
    message.set("method", to_raw(method));
    message.set("params", params.to_raw());
    message.to_raw().get().to_owned()
}

/// Returns a URL below the address of the yard.
fn yard_url(yard: &str, path: &str) -> String {
    format!("{}/{path}", yard.trim_end_matches('/'))
}

fn name_and_arguments(subject: &CallSpec) -> Object {
    let mut params = Object::default();
    params.set("name", to_raw(&subject.raw_name));
    params.set(
        "arguments",
        subject.arguments().cloned().unwrap_or_else(|| to_raw(&Value::Object(Default::default()))),
    );
    params
}

fn quote(word: &str) -> String {
    // Quotes that no shell needs make the line harder to read.
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // No shell accepts a NUL byte, so it is removed.
    let word = word.replace('\0', "");
    shlex::try_quote(&word).map(|quoted| quoted.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use toolyard_hub::json::from_text;
    use toolyard_hub::{CallTarget, SourceName};

    use super::{as_command, as_curl, as_message};
    use crate::calls::CallSpec;
    use crate::message::UiSettings;

    fn tool(arguments: &str) -> CallSpec {
        let what = CallTarget::Tool {
            name: "mcp__s__t".to_owned(),
            arguments: Some(from_text(arguments.to_owned())),
        };
        CallSpec { source: SourceName::new("s"), raw_name: "t".to_owned(), target: what }
    }

    fn with(call_words: &[&str], yard: Option<&str>) -> UiSettings {
        let call_words = call_words.iter().map(|word| (*word).to_owned()).collect();
        UiSettings { call_args: call_words, yard: yard.map(str::to_owned), ..UiSettings::default() }
    }

    #[test]
    fn a_call_is_written_for_the_shell() {
        let more = with(&["--config", "a b.toml"], None);
        assert_eq!(
            as_command(&tool(r#"{"message":"it's $HOME","n":2,"deep":{"a":[1]}}"#), &more),
            r#"toolyard call mcp__s__t "message=it's "'$HOME' n:=2 'deep:={"a":[1]}' --config 'a b.toml'"#
        );
        assert_eq!(
            as_command(&tool(r#"{"a=b":1}"#), &with(&[], None)),
            r#"toolyard call mcp__s__t --args '{"a=b":1}'"#
        );
        assert_eq!(
            as_command(&tool(r#"{"a":1}"#), &with(&[], Some("http://127.0.0.1:9/yard/"))),
            r#"toolyard call mcp__s__t a:=1 --url http://127.0.0.1:9/yard/mcp --header "Authorization: Bearer $TOOLYARD_TOKEN""#
        );
    }

    #[test]
    fn a_call_is_written_for_curl_and_as_a_message() {
        let curl = |yard| as_curl(&tool(r#"{"a": 12345678901234567890123}"#), &with(&[], yard)).unwrap();
        let line = |address: &str| {
            format!(
                "curl -H \"Authorization: Bearer $TOOLYARD_TOKEN\" -H 'Content-Type: application/json' -d '{{\"params\":{{\"a\": 12345678901234567890123}}}}' {address}"
            )
        };
        assert_eq!(curl(None), line("http://127.0.0.1:8080/mcp/tools/mcp__s__t/execute"));
        assert_eq!(curl(Some("https://a.example")), line("https://a.example/mcp/tools/mcp__s__t/execute"));
        assert_eq!(
            as_message(&tool(r#"{"a":1e400}"#)),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1e400}}}"#
        );
        let read = CallSpec { target: CallTarget::Resource { uri: "a://b".to_owned() }, ..tool("{}") };
        assert_eq!(as_curl(&read, &with(&[], None)), None);
        assert_eq!(as_command(&read, &with(&[], None)), "toolyard read a://b");
    }
}
