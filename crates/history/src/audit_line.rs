//! Formatting of a call as one line of JSON. Untrusted text cannot break the line, send control
//! sequences to a terminal, or hide or reorder what is displayed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolyard_hub::json::from_text;
use toolyard_hub::printable::escape_json;
use toolyard_hub::{CallStatus, ErrorKind, FinishedCall, HubError, Raw, Timestamp};

use crate::audit::AuditArguments;

/// The beginning of every audit line, which identifies lines written by Toolyard.
pub(crate) const BEGINNING: &str = r#"{"time":""#;

/// Length limits of untrusted text, in characters.
const LONGEST_NAME: usize = 256;
const LONGEST_MESSAGE: usize = 1_000;
/// Size limit of the arguments, in bytes.
const MOST_ARGUMENTS: usize = 64 << 10;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditLine<'a> {
    time: String,
    id: String,
    principal: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<Cow<'a, str>>,
    kind: &'static str,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    priority: &'static str,
    made_by: &'static str,
    duration_ms: f64,
    ended: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<AuditLineError<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_left_out: Option<usize>,
}

#[derive(Serialize)]
struct AuditLineError<'a> {
    kind: &'static str,
    message: Cow<'a, str>,
}

/// Formats a record as a line, including the line break.
pub(crate) fn format_line(finished: &FinishedCall<'_>, arguments: AuditArguments) -> String {
    let record = finished.call;
    let arguments = finished.arguments.filter(|_| arguments == AuditArguments::Record);
    let large = arguments.map(|raw| raw.get().len()).filter(|bytes| *bytes > MOST_ARGUMENTS);
    let included = arguments.filter(|_| large.is_none());
    let line = AuditLine {
        time: Timestamp(record.accepted_at).to_string(),
        id: record.id.to_string(),
        principal: truncate(record.principal.id(), LONGEST_NAME),
        session_id: record.context.session_id.as_deref().map(|id| truncate(id, LONGEST_NAME)),
        user_id: record.context.user_id.as_deref().map(|id| truncate(id, LONGEST_NAME)),
        kind: record.kind.as_str(),
        name: truncate(&record.subject, LONGEST_NAME),
        server: record.source.as_ref().map(|source| source.as_str()),
        priority: record.priority.as_str(),
        made_by: record.context.origin.as_str(),
        // Rounded to microseconds, because a call may take less than a millisecond.
        duration_ms: (finished.duration.as_secs_f64() * 1e6).round() / 1e3,
        ended: CallStatus::from(finished.ended).as_str(),
        error: finished.error.map(|error| AuditLineError {
            kind: error.kind().as_str(),
            message: error_message(finished, error, LONGEST_MESSAGE),
        }),
        arguments: included.map(|raw| from_text(finished.redaction.redact_json(raw.get()))),
        arguments_left_out: large,
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    if text.bytes().any(|byte| byte >= 0x7f)
        && let Cow::Owned(escaped) = escape_json(&text)
    {
        text = escaped;
    }
    text.push('\n');
    text
}

/// Returns the message of an error with secrets redacted. A message about invalid arguments repeats
/// their values, so only the names of the fields are recorded.
pub(crate) fn error_message<'a>(
    finished: &FinishedCall<'_>,
    error: &'a HubError,
    most: usize,
) -> Cow<'a, str> {
    if error.kind() != ErrorKind::InvalidArguments {
        return match finished.redaction.redact_text(error.message()) {
            Cow::Borrowed(message) => truncate(message, most),
            Cow::Owned(hidden) => Cow::Owned(truncate(&hidden, most).into_owned()),
        };
    }
    let field =
        |violation: &Value| violation["field"].as_str().filter(|field| !field.is_empty()).map(str::to_owned);
    let details = error.details().unwrap_or(&Value::Null);
    let all = details["violations"].as_array().map(|all| all.iter().filter_map(field).collect());
    let all: Vec<String> = all.unwrap_or_else(|| field(details).into_iter().collect());
    let text = if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) };
    Cow::Owned(truncate(&format!("invalid arguments{text}"), most).into_owned())
}

/// Truncates untrusted text to `most` characters.
pub(crate) fn truncate(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::LazyLock;
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};
    use toolyard_hub::json::from_text;
    use toolyard_hub::printable::is_deceptive;
    use toolyard_hub::{
        CallEndReason, CallOrigin, CallRecord, EntryKind, ErrorKind, ExecutionId, FinishedCall, HubError,
        Permissions, Principal, Priority, Raw, Redaction, SourceName,
    };

    use super::{error_message, format_line};
    use crate::audit::AuditArguments;

    static REDACTION: LazyLock<Redaction> = LazyLock::new(Redaction::default);

    /// A finished call to record.
    pub(crate) struct SampleCall {
        pub(crate) call: CallRecord,
        pub(crate) ended: CallEndReason,
        pub(crate) error: Option<HubError>,
        pub(crate) arguments: Option<Raw>,
    }

    impl SampleCall {
        pub(crate) fn finished(&self) -> FinishedCall<'_> {
            FinishedCall {
                call: &self.call,
                duration: Duration::from_nanos(1_234_567),
                ended: self.ended,
                error: self.error.as_ref(),
                outcome: None,
                redaction: &REDACTION,
                arguments: self.arguments.as_deref(),
            }
        }

        /// Returns the call with a changed record.
        pub(crate) fn with(mut self, change: impl FnOnce(&mut CallRecord)) -> Self {
            change(&mut self.call);
            self
        }
    }

    /// Returns a successful call by `ada`.
    pub(crate) fn sample(subject: &str) -> SampleCall {
        let ada = Principal::new("ada", Permissions::All);
        let call = CallRecord {
            accepted_at: UNIX_EPOCH + Duration::from_millis(1_705_314_600_007),
            ..CallRecord::new(ExecutionId::from_bytes([7; 16]), EntryKind::Tool, subject, ada)
        };
        SampleCall { call, ended: CallEndReason::Succeeded, error: None, arguments: None }
    }

    #[test]
    fn a_line_contains_the_caller_the_tool_the_time_the_duration_and_the_result() {
        let call = SampleCall {
            ended: CallEndReason::Error(ErrorKind::TimedOut),
            error: Some(HubError::new(ErrorKind::TimedOut, "too slow")),
            arguments: Some(from_text("{\"a\": 1,\n\"token\":\"x\"}".to_owned())),
            ..sample("mcp__s__work").with(|call| {
                call.source = Some(SourceName::new("s"));
                call.context.session_id = Some("s1".into());
                call.context.user_id = Some("u1".into());
                call.context.origin = CallOrigin::Program;
                call.priority = Priority::High;
            })
        };
        let beginning = concat!(
            r#"{"time":"2024-01-15T10:30:00.007Z","id":"07070707070707070707070707070707","principal":"ada","#,
            r#""sessionId":"s1","userId":"u1","kind":"tool","name":"mcp__s__work","server":"s","priority":"high","#,
            r#""madeBy":"program","durationMs":1.235,"ended":"failed","error":{"kind":"timed out","message":"too slow"}"#,
        );
        assert_eq!(format_line(&call.finished(), AuditArguments::Omit), format!("{beginning}}}\n"));
        assert_eq!(
            format_line(&call.finished(), AuditArguments::Record),
            format!("{beginning},\"arguments\":{{\"a\":1,\"token\":\"[redacted]\"}}}}\n")
        );
    }

    #[test]
    fn untrusted_text_cannot_break_a_line_or_hide_in_it() {
        let hostile = "x\"}\n{\"time\":\"\r\n\u{2028}\u{2029}\u{85}\u{1b}[2J\u{9b}\u{7f}\0é\
            \u{202e}gpj\u{2066}\u{61c}\u{200b}\u{200f}\u{feff}\u{ad}\u{e0041}👩";
        let call = SampleCall {
            error: Some(HubError::new(ErrorKind::ToolFailed, hostile)),
            arguments: Some(from_text(format!("{{\n\"k\\n\":\r\n{}}}", json!(hostile)))),
            ..sample(hostile).with(|call| {
                call.principal = Principal::new(hostile, Permissions::All);
                call.context.session_id = Some(hostile.into());
                call.context.user_id = Some(hostile.into());
            })
        };
        let text = format_line(&call.finished(), AuditArguments::Record);
        assert_eq!(text.find(is_deceptive), Some(text.len() - 1), "{text:?}");
        // Independent of the list of deceptive characters.
        let is_expected = |letter: char| matches!(letter, ' '..='~' | 'é' | '👩');
        assert!(text.trim_end_matches('\n').chars().all(is_expected), "{text:?}");
        let read: Value = serde_json::from_str(&text).unwrap();
        for key in ["principal", "sessionId", "userId", "name"] {
            assert_eq!(read[key], hostile);
        }
        assert_eq!(
            (&read["error"]["message"], &read["arguments"]),
            (&json!(hostile), &json!({"k\n": hostile}))
        );
    }

    #[test]
    fn messages_about_invalid_arguments_do_not_repeat_their_values() {
        let error = |details: Value| {
            HubError::new(ErrorKind::InvalidArguments, r#"pin: "hunter2" is not of type "integer""#)
                .with_details(details)
        };
        for (details, message) in [
            (
                json!({"field": "pin", "violations": [{"field": "pin", "reason": "\"hunter2\" is bad"}, {"field": "a.b"}]}),
                "invalid arguments: pin, a.b",
            ),
            (json!({"field": "pin", "reason": "hunter2"}), "invalid arguments: pin"),
            (json!({"field": "", "provided": "hunter2"}), "invalid arguments"),
            (json!("hunter2"), "invalid arguments"),
        ] {
            assert_eq!(error_message(&sample("x").finished(), &error(details), 100), message);
        }
    }

    #[test]
    fn error_messages_are_recorded_without_secrets() {
        let error = HubError::new(ErrorKind::CannotConnect, "no answer from http://h/sse?token=hunter2&x=1");
        let call = SampleCall {
            ended: CallEndReason::Error(ErrorKind::CannotConnect),
            error: Some(error),
            ..sample("x")
        };
        let read: Value = serde_json::from_str(&format_line(&call.finished(), AuditArguments::Omit)).unwrap();
        assert_eq!(read["error"]["message"], "no answer from http://h/sse?token=[redacted]&x=1");
    }

    #[test]
    fn the_length_of_a_line_is_limited() {
        let long = "é".repeat(100_000);
        let call = SampleCall {
            error: Some(HubError::new(ErrorKind::ToolFailed, long.clone())),
            arguments: Some(from_text(json!({"a": long}).to_string())),
            ..sample(&long).with(|call| {
                call.context.session_id = Some(long.as_str().into());
                call.context.user_id = Some(long.as_str().into());
            })
        };
        let text = format_line(&call.finished(), AuditArguments::Record);
        assert!(text.len() < 10_000, "{}", text.len());
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((read.get("arguments"), &read["argumentsLeftOut"]), (None, &json!(200_008)));
        assert_eq!(read["name"], format!("{}…", "é".repeat(256)));
    }
}
