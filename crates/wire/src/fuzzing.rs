//! Entry points for the fuzz targets in `fuzz/` and for the test that replays their corpus. Nothing
//! else calls them. Each one accepts arbitrary bytes and panics if an invariant is violated.
#![allow(clippy::panic, reason = "the fuzzer looks for violated invariants")]

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::client::events::{SseEvent, SseReader};
use crate::header;
use crate::message::{self, InvalidMessage, Packet, RpcMessage, parse};
use crate::meta::{Meta, RoutingParams};

/// JSON-RPC messages: every accepted message survives a round trip unchanged, and every rejected
/// one has a response.
pub fn message(bytes: &[u8]) {
    match parse(bytes) {
        Ok(Packet::Single(message)) => check_message(&message),
        Ok(Packet::Batch(messages)) => {
            assert!((1..=100).contains(&messages.len()), "{} messages in a batch", messages.len());
            for message in messages {
                match message {
                    Ok(message) => check_message(&message),
                    Err(refusal) => check_refusal(&refusal),
                }
            }
        }
        Err(refusal) => check_refusal(&refusal),
    }
}

fn check_message(message: &RpcMessage) {
    let written = match message {
        RpcMessage::Request(request) => {
            let _ = Meta::read(request.params.as_deref());
            let _ = RoutingParams::read(request.params.as_deref());
            request.params.as_ref().map(|params| message::write_request(&request.id, "m", params))
        }
        RpcMessage::Notification(notification) => {
            notification.params.as_ref().map(|params| message::write_notification("m", params))
        }
        RpcMessage::Response(response) => match &response.result {
            Ok(result) => Some(message::write_result(&response.id, result)),
            Err(_) => None,
        },
    };
    let Some(written) = written else { return };
    assert!(!written.contains(['\n', '\r']), "message is not one line: {written:?}");
    let read = match parse(written.as_bytes()) {
        Ok(Packet::Single(read)) => read,
        other => panic!("{written:?} is parsed as {other:?}"),
    };
    let (before, after) = (payload(message), payload(&read));
    assert_eq!(before, after, "message changed in a round trip");
}

/// Returns the ID and the payload, with line breaks between members replaced by spaces.
fn payload(message: &RpcMessage) -> (Option<String>, Option<String>) {
    let one_line = |raw: &RawValue| raw.get().replace(['\n', '\r'], " ");
    match message {
        RpcMessage::Request(request) => {
            (Some(request.id.as_json().to_owned()), request.params.as_deref().map(one_line))
        }
        RpcMessage::Notification(notification) => (None, notification.params.as_deref().map(one_line)),
        RpcMessage::Response(response) => {
            let (Ok(raw) | Err(raw)) = &response.result;
            (Some(response.id.as_json().to_owned()), Some(one_line(raw)))
        }
    }
}

fn check_refusal(refusal: &InvalidMessage) {
    let answer = message::write_error(refusal.id.as_ref(), &refusal.error);
    assert!(!answer.contains(['\n', '\r']), "response is not one line: {answer:?}");
    assert!(
        serde_json::from_str::<serde_json::Value>(&answer).is_ok(),
        "response is invalid JSON: {answer:?}"
    );
}

/// Server-sent events: the events do not depend on how the bytes are split, and memory stays within
/// the limit. The first byte is the size of the chunks.
pub fn events(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let size = usize::from(*size).max(1);
    let whole = read_events(bytes, bytes.len().max(1), usize::MAX);
    assert_eq!(whole, read_events(bytes, size, usize::MAX), "events depend on how the bytes are split");
    let longest = 64;
    for event in read_events(bytes, size, longest) {
        let length = event.data.len();
        assert!(length <= 3 * (longest + size), "an event of {length} bytes from chunks of {size}");
    }
}

/// Returns the events before the end or the first error.
fn read_events(bytes: &[u8], size: usize, longest: usize) -> Vec<SseEvent> {
    let pieces: Vec<_> =
        bytes.chunks(size).map(|piece| Ok::<_, String>(Bytes::copy_from_slice(piece))).collect();
    let mut events = SseReader::new(futures_util::stream::iter(pieces), longest);
    let mut seen = Vec::new();
    // The stream is always ready, so `next` never waits.
    while let Some(Ok(Some(event))) = events.next().now_or_never() {
        seen.push(event);
    }
    seen
}

/// Mirrored headers: `Name: value` lines, an empty line, and `{"schema": …, "arguments": …,
/// "method": …}`. Headers that are written for an accepted schema must pass the check.
pub fn mirrored_headers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, "{}"));
    let headers = read_head(head);
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let raw = |value: &serde_json::Value| serde_json::value::to_raw_value(value).ok();
    let (Some(schema), Some(arguments)) = (raw(&body["schema"]), raw(&body["arguments"])) else { return };
    let method = body["method"].as_str().unwrap_or("tools/call");
    let _ = header::check_method(&headers, method);
    let _ = header::check_params(&headers, &schema, Some(&arguments));
    if let Ok(meta) = Meta::read(Some(&arguments)) {
        let _ = header::check_version(&headers, &meta);
    }
    if let Ok(heading) = RoutingParams::read(Some(&arguments)) {
        let _ = header::check_name(&headers, method, &heading);
    }
    if let Some(name) = body["arguments"]["name"].as_str() {
        let mut ours = HeaderMap::new();
        header::mirror_name(&mut ours, name);
        if let Ok(heading) = RoutingParams::read(Some(&arguments)) {
            let checked = header::check_name(&ours, "tools/call", &heading);
            assert!(checked.is_ok(), "{name:?} is mirrored as {ours:?}");
        }
    }
    if header::check_annotations(&schema).is_ok() {
        let mut ours = HeaderMap::new();
        if header::mirror_params(&mut ours, &schema, &arguments).is_ok() {
            let checked = header::check_params(&ours, &schema, Some(&arguments));
            assert!(checked.is_ok(), "{arguments} under {schema} is mirrored as {ours:?}");
        }
    }
}

/// Parses the lines that are valid headers. Other lines are skipped, because an HTTP library would
/// reject them.
fn read_head(head: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.trim_start().as_bytes()))
        {
            headers.append(name, value);
        }
    }
    headers
}
