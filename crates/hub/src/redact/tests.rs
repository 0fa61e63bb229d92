//! What is redacted, what is preserved, and that everything a yard shows or records is redacted.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use proptest::prelude::proptest;
use serde_json::value::RawValue;

use super::Redaction;
use crate::error::{ErrorKind, HubError};
use crate::events::YardEvent;
use crate::fake::{resource_request, templates};
use crate::manage::{TranscriptDirection, TranscriptEntry};
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::source::{Source, SourceCall, SourceNotifier, SourceOffer};
use crate::status::{SourceState, SourceStatus};
use crate::yard::{Yard, YardSettings};
use crate::{BoxFuture, FinishedCall, Recorder, SourceName};

fn redaction() -> Redaction {
    Redaction::with_extra_words(["ssn", " Iban-Number"])
}

#[track_caller]
fn check(json: &str, expected: &str) {
    let redacted = redaction().redact_json(json);
    assert_eq!(redacted, expected);
    serde_json::from_str::<&RawValue>(&redacted).unwrap();
}

#[track_caller]
fn check_text(text: &str, expected: &str) {
    let redacted = redaction().redact_text(text).into_owned();
    assert_eq!(redacted, expected);
    assert_eq!(redaction().redact_text(&redacted), expected, "redaction is idempotent");
}

#[test]
fn what_is_called_like_a_secret_is_hidden_however_it_is_written() {
    for key in [
        "password",
        "PASSWORD",
        "dbPassword",
        "api_key",
        "API-Key",
        "apiKey",
        "X-Auth-Token",
        "Set-Cookie",
        "max_tokens",
        "auth",
        "X-Auth",
        "basic_auth",
        "oauth2",
        "authData",
        "jwt",
        "idJWT",
        "jwtAssertion",
        "session",
        "sessionId",
        "SESSION_ID",
        "mcp-session-id",
        "JSESSIONID",
        "PHPSESSID",
        "otp",
        "otpCode",
        "user_otp",
        "userOTP",
        "TOTP",
        "cookie",
        "cookies",
    ] {
        check(&format!(r#"{{"{key}":"hunter2"}}"#), &format!(r#"{{"{key}":"[redacted]"}}"#));
    }
    check(r#"{"SSN":1,"iban_number":"x"}"#, r#"{"SSN":"[redacted]","iban_number":"[redacted]"}"#);
    // A key written with escapes is the same key.
    check(r#"{"pass\u0077ord":"x"}"#, r#"{"pass\u0077ord":"[redacted]"}"#);
}

#[test]
fn keys_that_only_sound_like_secrets_are_kept() {
    for key in [
        "author",
        "authors",
        "authority",
        "authored_by",
        "coauthor",
        "auth_type",
        "authMethod",
        "auth_url",
        "sessions",
        "session_count",
        "sessionTimeout",
        "session_state",
        "obsession",
        "hotplug",
        "adopted",
        "laptop",
        "otp_required",
        "progressToken",
        "name",
        "",
    ] {
        let json = format!(r#"{{"{key}":"x"}}"#);
        check(&json, &json);
    }
}

#[test]
fn a_secret_may_be_anything_and_anywhere() {
    check(
        r#"{"a":[{"secret":{"x":["}",{"y":"\"]"}]},"b":1},2],"token":[1,[2]],"c":"token"}"#,
        r#"{"a":[{"secret":"[redacted]","b":1},2],"token":"[redacted]","c":"token"}"#,
    );
}

#[test]
fn everything_else_is_preserved_on_one_line() {
    check(
        "{\n  \"z\" : 9007199254740993123,\r\n\t\"a\": [ 1e400 , -0.10, true, null, {} , [] ],\n \"s\": \"two  \\n{,}: \\\\\"\n}\n",
        r#"{"z":9007199254740993123,"a":[1e400,-0.10,true,null,{},[]],"s":"two  \n{,}: \\"}"#,
    );
    check(r#"["password","x"]"#, r#"["password","x"]"#);
    check("\"password\"", "\"password\"");
}

#[test]
fn texts_inside_json_are_searched_too() {
    check(
        r#"{"url":"https://x.example/a?token=abc&page=2","n":"caf\u00e9: 1"}"#,
        r#"{"url":"https://x.example/a?token=[redacted]&page=2","n":"caf\u00e9: 1"}"#,
    );
    check(
        r#"{"head":"Authorization: Bearer abc.def\r\nHost: x"}"#,
        r#"{"head":"Authorization: [redacted]\r\nHost: x"}"#,
    );
    check(r#"{"text":"{\"token\":\"abc\",\"n\":1}"}"#, r#"{"text":"{\"token\":\"[redacted]\",\"n\":1}"}"#);
}

#[test]
fn a_message_that_was_cut_hides_what_is_left_of_a_secret() {
    for (cut, expected) in [
        (r#"{"a":1,"token":"abc"#, r#"{"a":1,"token":"[redacted]""#),
        (r#"{"a":1,"tok"#, r#"{"a":1,"tok:"[redacted]""#),
        (r#"{"url":"http://x/?token=abc"#, r#"{"url":"http://x/?token=[redacted]"#),
    ] {
        assert_eq!(redaction().redact_message(cut), expected);
    }
}

#[test]
fn parameters_headers_and_passwords_in_a_line_are_hidden() {
    check_text("GET /sse?token=abc123&page=2 HTTP/1.1", "GET /sse?token=[redacted]&page=2 HTTP/1.1");
    check_text(
        "connecting to http://h/?a=1&api_key=k#top",
        "connecting to http://h/?a=1&api_key=[redacted]#top",
    );
    check_text("http://ada:hunter2@h:8080/x", "http://ada:[redacted]@h:8080/x");
    check_text("Authorization: Bearer abc", "Authorization: [redacted]");
    check_text("authorization: Basic YWRhOng=", "authorization: [redacted]");
    check_text("Cookie: a=1; b=2", "Cookie: [redacted]");
    check_text("Set-Cookie: sid=abc; Path=/", "Set-Cookie: [redacted]");
    check_text("X-Api-Key: k1 and more", "X-Api-Key: [redacted] and more");
    check_text("-H 'Authorization: Bearer abc' -d x", "-H 'Authorization: [redacted]' -d x");
    check_text(
        "not connected server=files token=abc tries=3",
        "not connected server=files token=[redacted] tries=3",
    );
    check_text(r#"headers={"x-auth": "abc", "n": 1}"#, r#"headers={"x-auth": "[redacted]", "n": 1}"#);
    check_text("password: hunter2", "password: [redacted]");
    check_text("PASSWORD = hunter2", "PASSWORD = [redacted]");
    check_text("otp=123456, jwt=x.y.z; session=s1", "otp=[redacted], jwt=[redacted]; session=[redacted]");
    check_text("got Bearer abcDEF123 from it", "got Bearer [redacted] from it");
    check_text("it sent eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ. twice", "it sent [redacted] twice");
    check_text("iban-number=DE1", "iban-number=[redacted]");
}

#[test]
fn ordinary_lines_stay_as_they_were() {
    for text in [
        "",
        "listening on http://127.0.0.1:8080/mcp",
        "toolyard_upstream::auth: not connected",
        "it wants authorization: log in with `toolyard login x`",
        "basic authentication is off, bearer authentication is on",
        "author=ada session_count=3 page=2",
        "a == b, x:y, é=ü, :, =, ==",
        "no session: initialize first",
        "key=value",
    ] {
        check_text(text, text);
    }
}

/// A source that includes secrets wherever it can.
struct Telltale {
    name: SourceName,
    offer: Arc<SourceOffer>,
    feed: OnceLock<SourceNotifier>,
}

const SECRET_URL: &str = "http://h/?token=hunter2&ssn=hunter2";

impl Source for Telltale {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn attach(&self, feed: SourceNotifier) {
        let _ = self.feed.set(feed);
    }

    fn status(&self) -> SourceStatus {
        let (reason, stderr) = (Some(SECRET_URL.to_owned()), vec![SECRET_URL.to_owned()]);
        SourceStatus { reason, stderr, ..SourceStatus::new(SourceState::Retrying, true) }
    }

    fn transcript(&self, _after: Option<u64>) -> Vec<TranscriptEntry> {
        let texts = [r#"{"params":{"jwt":"hunter2","url":"http://h/?ssn=hunter2"}}"#, "Cookie: hunter2"];
        let entry = |text: &str| {
            let (at, direction) = (SystemTime::now(), TranscriptDirection::ToSource);
            TranscriptEntry { number: 1, at, direction, text: text.to_owned() }
        };
        texts.map(entry).into()
    }

    fn call<'a>(&'a self, _call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async { Err(HubError::new(ErrorKind::ConnectionLost, SECRET_URL)) })
    }
}

/// Stores what a history would store.
#[derive(Default)]
struct Keeps(Mutex<Vec<String>>);

impl Recorder for Keeps {
    fn record(&self, finished: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>> {
        let error = finished.error.map(HubError::message).unwrap_or_default();
        let kept = format!("{} {}", finished.call.subject, finished.redaction.redact_text(error));
        self.0.lock().push(kept);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn what_a_yard_shows_and_records_has_no_secrets_in_it() {
    let keeps = Arc::new(Keeps::default());
    let settings = YardSettings {
        redaction: Redaction::with_extra_words(["ssn"]),
        recorder: Some(Arc::clone(&keeps) as _),
        ..YardSettings::default()
    };
    let yard = Yard::new(settings);
    let offer = Arc::new(templates(&["http://h/{?token,ssn}"]));
    let source = Arc::new(Telltale { name: SourceName::new("s"), offer, feed: OnceLock::new() });
    yard.add(Arc::clone(&source) as _);
    let (mut events, mut stderr) = (yard.events().subscribe(), yard.events().subscribe_stderr());
    source.feed.get().unwrap().stderr(SECRET_URL);
    yard.call(resource_request(SECRET_URL)).await.unwrap_err();

    let mut shown: Vec<String> = keeps.0.lock().clone();
    let status = yard.status(&source.name).unwrap();
    shown.extend(status.reason.into_iter().chain(status.stderr));
    let transcript = yard.transcript(&Principal::owner(), "s", None).unwrap();
    shown.extend(transcript.into_iter().map(|entry| entry.text));
    shown.push(stderr.try_recv().unwrap().line.clone());
    while let Ok(event) = events.try_recv() {
        match &*event {
            YardEvent::CallStarted(call) => shown.push(call.subject.to_string()),
            YardEvent::CallEnded { error, .. } => shown.extend(error.clone()),
            _ => {}
        }
    }
    let hidden = "http://h/?token=[redacted]&ssn=[redacted]";
    let expected = [
        &format!("{hidden} {hidden}"),
        hidden,
        hidden,
        r#"{"params":{"jwt":"[redacted]","url":"http://h/?ssn=[redacted]"}}"#,
        "Cookie: [redacted]",
        hidden,
        hidden,
        hidden,
    ];
    assert_eq!(shown, expected);
}

proptest! {
    #[test]
    fn any_text_can_be_tried(text in ".*") {
        let _ = redaction().redact_json(&text);
        let _ = redaction().redact_text(&text);
    }

    #[test]
    fn text_made_of_marks_can_be_tried(text in r#"([\[\]{}:,"'\\a1é =&?@/]|token|Bearer |eyJ|://)*"#) {
        let _ = redaction().redact_json(&text);
        let _ = redaction().redact_text(&text);
    }

    #[test]
    fn a_parameter_is_hidden_whatever_stands_around_it(before in "[a-z ]{0,9}", value in "[A-Za-z0-9%._~-]{1,20}") {
        let text = format!("{before} http://h/p?x=1&access_token={value}&y=2");
        let expected = format!("{before} http://h/p?x=1&access_token=[redacted]&y=2");
        assert_eq!(redaction().redact_text(&text), expected);
    }
}
