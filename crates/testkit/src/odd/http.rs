//! A misbehaving server over streamable HTTP, with sessions in the legacy era and without in the
//! modern one.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::rpc::{Message, Out, ReplySender, Server, flood};
use super::{Eras, Kind};

const QUEUE: usize = 16;
const SESSION: &str = "mcp-session-id";
/// The number of calls after which `forgets-session` drops a session.
const CALLS: u64 = 10;

/// Stream content that is not a message.
const NOISE: &str = ": hello\n\nevent: log\ndata: not a message\n\ndata: {\"level\":\"info\"}\n\nid: 7\n\n";

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) async fn serve(server: Arc<Server>, announce: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    announce(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(respond(server, request).await) }
            });
            // If the client disconnects, there is nowhere to report that.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn respond(server: Arc<Server>, request: Request<Incoming>) -> Response<Body> {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (session, method, name) = (header(SESSION), header("mcp-method"), header("mcp-name"));
    let last = header("last-event-id");
    match *request.method() {
        Method::POST => {}
        Method::GET if server.kind() == Kind::Floods => {
            return events(start(|channel| async move { flood(&channel, None).await }), None, "");
        }
        Method::GET if server.kind() == Kind::Dual => {
            let answer = last.and_then(|last| server.seen.take_polled(&last));
            return match answer {
                Some(answer) => fixed_events(format!("id: polled\ndata: {answer}\n\n")),
                None => plain(405, ""),
            };
        }
        Method::DELETE if session.as_ref().is_some_and(|session| server.seen.close(session)) => {
            return plain(200, "");
        }
        _ => return plain(405, ""),
    }
    let Ok(body) = request.into_body().collect().await else { return plain(400, "") };
    let Ok(message) = serde_json::from_slice::<Message>(&body.to_bytes()) else {
        return refuse(400, None, -32700, "not a message");
    };
    let params = message.params();
    let refuse = |status, code, why: &str| refuse(status, message.id.as_deref(), code, why);
    let mirrored =
        method == message.method && (params.name.is_empty() || name.is_some_and(|name| name == params.name));
    let opened = match (server.kind().eras(), params.is_modern(), message.method.as_deref()) {
        (Eras::Modern | Eras::Both, true, _) if !mirrored => {
            return refuse(400, -32020, "headers do not match the body");
        }
        (Eras::Modern | Eras::Both, true, _) => None,
        (Eras::Modern, false, _) => return refuse(404, -32601, "this server supports only 2026-07-28"),
        (_, _, Some("initialize")) => Some(server.seen.open()),
        (_, _, method) => {
            let Some(session) = session else { return refuse(400, -32000, "no session: initialize first") };
            let forgets = server.kind() == Kind::ForgetsSession && method == Some("tools/call");
            if !server.seen.is_open(&session) || (forgets && server.seen.count_call(&session) > CALLS) {
                server.seen.close(&session);
                return refuse(404, -32001, "no such session");
            }
            None
        }
    };
    let polls = server.kind() == Kind::Dual && params.name == "poll" && !params.is_modern();
    if let (true, Some(id)) = (polls, &message.id) {
        let content = serde_json::json!([{"type": "text", "text": "polled"}]);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content}}}}}"#);
        // Longer than any test. The answer is sent as soon as the client reconnects.
        return fixed_events(format!("id: {}\nretry: 600000\ndata: \n\n", server.seen.keep_polled(answer)));
    }
    let is_request = message.id.is_some() && message.method.is_some();
    let noise = if server.kind() == Kind::Noisy { NOISE } else { "" };
    let mut running = start(|channel| async move { server.handle(message, channel).await });
    let mut response = match (is_request, running.outgoing.recv().await) {
        (true, Some(Out::Answers(text, status))) if noise.is_empty() => json(status, text),
        (true, Some(first)) => events(running, Some(first), noise),
        (true, None) | (false, _) => plain(202, ""),
    };
    if let Some(Ok(session)) = opened.map(|session| session.try_into()) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// A running task. It ends when its output is no longer read.
struct Running {
    outgoing: mpsc::Receiver<Out>,
    _task: AbortOnDropHandle<()>,
}

fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(ReplySender) -> F) -> Running {
    let (out, outgoing) = mpsc::channel(QUEUE);
    let task = AbortOnDropHandle::new(tokio::spawn(work(ReplySender { out, standing: false })));
    Running { outgoing, _task: task }
}

/// A stream of events that ends with the answer.
fn events(running: Running, first: Option<Out>, noise: &'static str) -> Response<Body> {
    let noise = stream::iter([noise.to_owned()]);
    let rest = stream::unfold((running, first), |(mut running, first)| async move {
        let next = match first {
            Some(first) => first,
            None => running.outgoing.recv().await?,
        };
        let (Out::Says(text) | Out::Answers(text, _)) = next;
        Some((format!("data: {text}\n\n"), (running, None)))
    });
    let frames = noise.chain(rest).map(|text| Ok(Frame::data(Bytes::from(text))));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("text/event-stream"));
    response
}

/// Returns a stream that ends after this text.
fn fixed_events(text: String) -> Response<Body> {
    let mut response = plain(200, text);
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("text/event-stream"));
    response
}

fn json(status: u16, text: String) -> Response<Body> {
    let mut response = plain(status, text);
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}

fn refuse(status: u16, id: Option<&RawValue>, code: i64, message: &str) -> Response<Body> {
    let error = serde_json::json!({"code": code, "message": message});
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    json(status, format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#))
}

fn plain(status: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap_or_default();
    response
}
