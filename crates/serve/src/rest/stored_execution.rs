//! A finished execution as text, which replicas share for requests with the same idempotency key.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolyard_hub::json::to_raw;
use toolyard_hub::{CallDetails, ErrorKind, ExecutionId, HubError, Outcome, SourceError};

use super::executions::{Chunks, Execution, ExecutionInfo, ExecutionOutcome};
use super::response::{StartTime, execution_name};

#[derive(Serialize, Deserialize)]
struct StoredExecution {
    /// The digits of the execution ID.
    id: String,
    /// When the call started, as a Unix time in microseconds, and how long it took.
    began: u64,
    micros: u64,
    answer: StoredAnswer,
    chunks: Vec<Value>,
    dropped_chunks: usize,
    violations: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredAnswer {
    Outcome { body: Box<RawValue>, failed: bool, modern: bool },
    Error(Box<StoredError>),
}

#[derive(Serialize, Deserialize)]
struct StoredError {
    kind: String,
    message: String,
    suggestion: Option<String>,
    details: Option<Value>,
    retry_micros: Option<u64>,
    origin: Option<StoredOrigin>,
}

#[derive(Serialize, Deserialize)]
struct StoredOrigin {
    code: i64,
    message: String,
    data: Option<Value>,
}

/// Writes a finished execution.
pub(super) fn save(execution: &Execution, ending: &ExecutionOutcome) -> String {
    let began = execution.info.began.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let stored = StoredExecution {
        id: execution.info.call.to_string(),
        began: micros(began),
        micros: micros(ending.duration),
        answer: match &ending.answer {
            Ok(outcome) => StoredAnswer::Outcome {
                body: outcome.body.clone(),
                failed: outcome.failed,
                modern: outcome.modern,
            },
            Err(error) => StoredAnswer::Error(Box::new(save_error(error))),
        },
        chunks: ending.chunks.values.clone(),
        dropped_chunks: ending.chunks.dropped,
        violations: execution.details.result_violations().to_vec(),
    };
    to_raw(&stored).get().to_owned()
}

fn save_error(error: &HubError) -> StoredError {
    let origin = error.source_error().cloned();
    StoredError {
        kind: error.kind().as_str().to_owned(),
        message: error.message().to_owned(),
        suggestion: error.suggestion().map(ToOwned::to_owned),
        details: error.details().cloned(),
        retry_micros: error.retry_after().map(micros),
        origin: origin.map(|SourceError { code, message, data }| StoredOrigin { code, message, data }),
    }
}

/// Reads a finished execution that the request would have repeated. Returns `None` if the text was
/// written by a version that stores other fields.
pub(super) fn load(text: &str, request: &ExecutionInfo) -> Option<Execution> {
    let stored: StoredExecution = serde_json::from_str(text).ok()?;
    let call: ExecutionId = stored.id.parse().ok()?;
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(stored.began))?;
    let about = ExecutionInfo {
        id: execution_name(call),
        call,
        tool: request.tool.clone(),
        server: request.server.clone(),
        principal: request.principal.clone(),
        session_id: request.session_id.as_ref().map(Arc::clone),
        user_id: request.user_id.as_ref().map(Arc::clone),
        began: StartTime { at, clock: Instant::now() },
    };
    let answer = match stored.answer {
        StoredAnswer::Outcome { body, failed, modern } => Ok(Outcome { body, failed, modern }),
        StoredAnswer::Error(error) => Err(load_error(*error)?),
    };
    let chunks = Chunks::restored(stored.chunks, stored.dropped_chunks);
    let ending = ExecutionOutcome { answer, chunks, duration: Duration::from_micros(stored.micros) };
    Some(Execution::finished(about, CallDetails::with_result_violations(stored.violations), ending))
}

fn load_error(stored: StoredError) -> Option<HubError> {
    let mut error = HubError::new(ErrorKind::from_words(&stored.kind)?, stored.message);
    if let Some(suggestion) = stored.suggestion {
        error = error.with_suggestion(suggestion);
    }
    if let Some(details) = stored.details {
        error = error.with_details(details);
    }
    if let Some(wait) = stored.retry_micros {
        error = error.with_retry_after(Duration::from_micros(wait));
    }
    if let Some(StoredOrigin { code, message, data }) = stored.origin {
        error = error.with_source_error(SourceError { code, message, data });
    }
    Some(error)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolyard_hub::json::{from_text, to_raw};
    use toolyard_hub::{ErrorKind, HubError, Outcome, SourceError};

    use super::{load, save};
    use crate::rest::execute::{ChunkDelivery, envelope};
    use crate::rest::execute_request::ContentDetail;
    use crate::rest::executions::tests::execution;
    use crate::rest::executions::{Chunks, Execution, Executions, RetentionLimits};

    fn body(execution: &Execution) -> String {
        let ending = Arc::clone(execution.outcome().unwrap());
        match envelope(execution, &ending, ContentDetail::Full, ChunkDelivery::InEnvelope) {
            Ok(text) | Err((_, text)) => text,
        }
    }

    #[test]
    fn a_stored_execution_has_the_same_response() {
        let origin = SourceError { code: -32050, message: "no paper".to_owned(), data: Some(json!([2])) };
        let error = HubError::new(ErrorKind::ToolFailed, "printer: no paper")
            .with_suggestion("fill it up")
            .with_details(json!({"tray": 1}))
            .with_source_error(origin);
        let exact = r#"{"content":[{"type":"text","text":"ü"}],"structuredContent":{"b":1.0,"a":10000000000000000000001}}"#;
        let answers = [
            Ok(Outcome::success(from_text(exact.to_owned()))),
            Ok(Outcome::failure(to_raw(&json!({"content": [], "isError": true})))),
            Err(error),
        ];
        let time = std::time::Duration::from_secs(60);
        let executions = Executions::new(RetentionLimits { running: 9, most: 9, bytes: 1_000_000, time });
        for answer in answers {
            let first = execution();
            let mut chunks = Chunks::default();
            chunks.add(json!({"piece": 1}), 1_000);
            chunks.add(json!("too long"), 0);
            executions.end(&first, answer, chunks);
            let stored = save(&first, first.outcome().unwrap());
            let again = load(&stored, &execution().info).unwrap();
            assert_eq!(body(&again), body(&first));
        }
        assert!(load("{}", &execution().info).is_none());
    }
}
