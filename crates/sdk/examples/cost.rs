//! The cost of a call. Makes calls through one front, with client and server on one thread, and
//! prints the number of allocations. `tests/cost/run` also runs it under callgrind to count
//! instructions.
#![allow(clippy::print_stdout, reason = "the measurement is the output")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed measurement must stop")]

use std::net::SocketAddr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use toolyard_sdk::call::{CallRequest, CallTarget, Principal};
use toolyard_sdk::{Json, NativeSource, ToolError, Yard, tool};
use toolyard_serve::{BearerToken, HttpOptions, StdioOptions, serve_streams};

/// Calls before the measurement, which fill buffers and tables and compile the schemas.
const WARM_UP: usize = 64;
const TOKEN: &str = "cost";
const ARGUMENTS: &str = r#"{"city":"Lisbon","days":3}"#;

#[derive(Deserialize, JsonSchema)]
struct ForecastParams {
    city: String,
    days: u32,
}

#[derive(Serialize, JsonSchema)]
struct Forecast {
    city: String,
    degrees: Vec<u32>,
}

/// Returns the weather forecast for the next days.
#[tool(read_only = true)]
async fn forecast(params: ForecastParams) -> Result<Json<Forecast>, ToolError> {
    Ok(Json(Forecast { city: params.city, degrees: (20..20 + params.days).collect() }))
}

/// A client of one front.
enum Client {
    Native(Arc<Yard>),
    /// Repeats the same request over one connection.
    Http {
        stream: TcpStream,
        request: Vec<u8>,
    },
    Control(TcpStream),
    Stdio(DuplexStream),
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, front, calls] = arguments.as_slice() else { panic!("usage: cost FRONT CALLS") };
    let calls: usize = calls.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut client, mut buffer) = (runtime.block_on(Client::connect(front)), vec![0; 1 << 16]);
    runtime.block_on(client.call(WARM_UP, &mut buffer));
    let spent = allocation_counter::measure(|| runtime.block_on(client.call(calls, &mut buffer)));
    println!("{}", spent.count_total);
}

impl Client {
    async fn connect(front: &str) -> Self {
        let yard = Yard::with_sources([NativeSource::new("weather").tool(forecast()).into_source()]);
        if front == "native" {
            return Self::Native(yard);
        }
        if front == "stdio" {
            let (client, server) = tokio::io::duplex(1 << 16);
            let streams = tokio::io::split(server);
            tokio::spawn(serve_streams(yard, StdioOptions::default(), streams, std::future::pending()));
            let mut client = Self::Stdio(client);
            client.initialize_stdio().await;
            return client;
        }
        let address = serve(yard).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!("authorization: Bearer {TOKEN}\r\nhost: {address}\r\n");
        match front {
            "mcp-legacy" => {
                let session = initialize_http(&mut stream, &head).await;
                let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
                let body = call_message("");
                Self::Http { stream, request: post("/mcp", &format!("{head}{headers}"), &body) }
            }
            "mcp-modern" => {
                let headers =
                    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: forecast\r\n";
                let meta = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"cost","version":"1"}}"#;
                let body = call_message(meta);
                Self::Http { stream, request: post("/mcp", &format!("{head}{headers}"), &body) }
            }
            "rest" => {
                let body = format!(r#"{{"params":{ARGUMENTS}}}"#);
                Self::Http { stream, request: post("/mcp/tools/forecast/execute", &head, &body) }
            }
            "control" => {
                let upgrade = format!(
                    "GET /control HTTP/1.1\r\n{head}connection: upgrade\r\nupgrade: websocket\r\n\
                     sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
                     sec-websocket-protocol: toolyard.control.v1\r\n\r\n"
                );
                stream.write_all(upgrade.as_bytes()).await.unwrap();
                let mut buffer = vec![0; 1 << 16];
                let switched = read_head(&mut stream, &mut buffer).await;
                assert!(
                    buffer.starts_with(b"HTTP/1.1 101"),
                    "{}",
                    String::from_utf8_lossy(&buffer[..switched])
                );
                let mut client = Self::Control(stream);
                client.receive_frame(&mut buffer).await;
                client
            }
            _ => panic!("unknown front {front}"),
        }
    }

    async fn call(&mut self, calls: usize, buffer: &mut [u8]) {
        for number in 0..calls {
            match self {
                Self::Native(yard) => {
                    let arguments =
                        Some(serde_json::value::RawValue::from_string(ARGUMENTS.to_owned()).unwrap());
                    let target = CallTarget::Tool { name: "forecast".to_owned(), arguments };
                    yard.call(CallRequest::new(target, Principal::owner())).await.unwrap();
                }
                Self::Http { stream, request } => {
                    stream.write_all(request).await.unwrap();
                    let read = read_response(stream, buffer).await;
                    assert!(
                        buffer.starts_with(b"HTTP/1.1 200"),
                        "{}",
                        String::from_utf8_lossy(&buffer[..read])
                    );
                }
                Self::Control(_) => {
                    let text = format!(
                        r#"{{"id":{number},"subtype":"mcp_call","tool":"forecast","arguments":{ARGUMENTS}}}"#
                    );
                    self.send_frame(text.as_bytes()).await;
                    let read = self.receive_frame(buffer).await;
                    assert!(
                        buffer.starts_with(b"{\"type\":\"response\""),
                        "{}",
                        String::from_utf8_lossy(&buffer[..read])
                    );
                }
                Self::Stdio(stream) => {
                    stream.write_all(call_message("").as_bytes()).await.unwrap();
                    stream.write_all(b"\n").await.unwrap();
                    read_line(stream, buffer).await;
                }
            }
        }
    }

    async fn initialize_stdio(&mut self) {
        let Self::Stdio(stream) = self else { return };
        let text = format!("{INITIALIZE}\n{INITIALIZED}\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        read_line(stream, &mut vec![0; 1 << 16]).await;
    }

    /// Sends a text frame with a zero mask.
    async fn send_frame(&mut self, text: &[u8]) {
        let Self::Control(stream) = self else { return };
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        let frame = [&[0x81, 0xfe], length.as_slice(), &[0; 4], text].concat();
        stream.write_all(&frame).await.unwrap();
    }

    async fn receive_frame(&mut self, buffer: &mut [u8]) -> usize {
        let Self::Control(stream) = self else { return 0 };
        let mut head = [0; 2];
        stream.read_exact(&mut head).await.unwrap();
        let length = match head[1] {
            126 => usize::from(stream.read_u16().await.unwrap()),
            127 => usize::try_from(stream.read_u64().await.unwrap()).unwrap(),
            short => usize::from(short),
        };
        stream.read_exact(&mut buffer[..length]).await.unwrap();
        length
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cost","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

async fn serve(yard: Arc<Yard>) -> SocketAddr {
    let options = HttpOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tokens: vec![BearerToken::new(TOKEN, Principal::owner())],
        ..HttpOptions::default()
    };
    let server = toolyard_serve::http_with(yard, options).await.unwrap();
    let address = server.url().trim_start_matches("http://").parse().unwrap();
    tokio::spawn(server.serve_until(std::future::pending()));
    address
}

fn call_message(meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"forecast","arguments":{ARGUMENTS}{meta}}}}}"#
    )
}

fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\n{headers}content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Initializes a session and returns its id.
async fn initialize_http(stream: &mut TcpStream, head: &str) -> String {
    let mut buffer = vec![0; 1 << 16];
    stream.write_all(&post("/mcp", head, INITIALIZE)).await.unwrap();
    let read = read_response(stream, &mut buffer).await;
    let answer = String::from_utf8_lossy(&buffer[..read]).into_owned();
    let line = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("{head}mcp-session-id: {line}\r\nmcp-protocol-version: 2025-11-25\r\n");
    stream.write_all(&post("/mcp", &headers, INITIALIZED)).await.unwrap();
    read_response(stream, &mut buffer).await;
    line.to_owned()
}

/// Reads to the end of the head and returns the number of bytes.
async fn read_head(stream: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    let mut read = 0;
    while !buffer[..read].ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut buffer[read..=read]).await.unwrap();
        read += 1;
    }
    read
}

/// Reads one response. A response without `content-length` has no body.
async fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    let mut read = 0;
    loop {
        read += stream.read(&mut buffer[read..]).await.unwrap();
        let Some(end) = buffer[..read].windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end]).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if read >= end + 4 + length {
            return read;
        }
    }
}

async fn read_line(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), buffer: &mut [u8]) {
    let mut read = 0;
    while !buffer[..read].ends_with(b"\n") {
        read += stream.read(&mut buffer[read..]).await.unwrap();
    }
}
