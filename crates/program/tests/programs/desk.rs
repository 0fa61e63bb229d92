//! A yard with a few tools, and functions that run scripts in it. All tests that only run scripts
//! share it, because every engine first attacks its own sandbox, which takes a while.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ErrorKind, HubError,
    Outcome, Permissions, Principal, Source, SourceCall, SourceError, SourceName, SourceOffer, SourceTarget,
    ToolListing, ToolOffer, Yard, YardSettings,
};
use toolyard_program::{META, ProgramSettings, ProgramSource};

use super::fixture::engine;

/// The result of a script.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) text: String,
    pub(crate) failed: bool,
    pub(crate) meta: Value,
    /// The progress that the caller received.
    pub(crate) progress: Vec<(f64, Option<String>)>,
}

/// Runs a script.
pub(crate) fn ran(code: &str) -> Answered {
    ran_for(code, Duration::from_secs(60))
}

/// Runs a script with a time limit.
pub(crate) fn ran_for(code: &str, time: Duration) -> Answered {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    static DESK: OnceLock<Arc<Yard>> = OnceLock::new();
    let code = code.to_owned();
    // Spawned, so that the scripts of two tests run in parallel.
    RUNTIME.block_on(async {
        let desk = Arc::clone(DESK.get_or_init(yard));
        tokio::spawn(async move { run(&desk, &code, time).await }).await.unwrap()
    })
}

/// Returns the text that `write_file` wrote to a path.
pub(crate) fn written(path: &str) -> Option<String> {
    WRITTEN.lock().get(path).cloned()
}

static WRITTEN: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

fn yard() -> Arc<Yard> {
    let yard = Yard::new(YardSettings::default());
    yard.add(Arc::new(Shop::new()));
    let settings = ProgramSettings { output: 1_000, ..ProgramSettings::default() };
    yard.add(ProgramSource::new(&yard, engine(), settings) as Arc<dyn Source>);
    yard
}

async fn run(yard: &Arc<Yard>, code: &str, time: Duration) -> Answered {
    let arguments = json!({"code": code, "timeout_ms": u64::try_from(time.as_millis()).unwrap()});
    let target = CallTarget::Tool { name: "execute_program".to_owned(), arguments: Some(to_raw(&arguments)) };
    let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
    let principal = Principal::new("ada", Permissions::All);
    let outcome = yard.call(CallRequest { client, ..CallRequest::new(target, principal) }).await.unwrap();
    let mut progress = Vec::new();
    while let Ok(update) = updates.try_recv() {
        if let CallerUpdate::Progress(report) = update {
            progress.push((report.progress, report.message));
        }
    }
    let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
    let text = body["content"][0]["text"].as_str().unwrap().to_owned();
    Answered { text, failed: outcome.failed, meta: body["_meta"][META].clone(), progress }
}

/// A server with a few tools.
struct Shop {
    name: SourceName,
    offer: Arc<SourceOffer>,
}

impl Shop {
    fn new() -> Self {
        let tool = |name: &str, parameters: &[&str]| ToolOffer {
            definition: to_raw(&json!({
                "name": name,
                "inputSchema": {
                    "type": "object",
                    "properties": parameters.iter().map(|&name| (name.to_owned(), json!({}))).collect::<Map<_, _>>(),
                    "required": parameters,
                },
            })),
            permissions: Vec::new(),
            metadata: Map::new(),
            hooks: Vec::new(),
            listing: ToolListing::Listed,
        };
        let tools = vec![
            tool("write_file", &["path", "text"]),
            tool("slow", &["ms"]),
            tool("get_customer", &["customer_id"]),
            tool("list_orders", &[]),
            tool("missing_page", &[]),
            tool("refuse", &[]),
        ];
        Self {
            name: SourceName::new("shop"),
            offer: Arc::new(SourceOffer { tools, ..SourceOffer::default() }),
        }
    }
}

impl Source for Shop {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async move {
            let SourceTarget::Tool { name, arguments } = call.target else { panic!("only tools") };
            let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
            let word = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
            let data = |value: Value| Ok(Outcome::success(to_raw(&json!({"structuredContent": value}))));
            match name.as_str() {
                "write_file" => {
                    // A program that does not wait has ended by then.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    WRITTEN.lock().insert(word("path"), word("text"));
                    data(json!({"written": word("path")}))
                }
                "slow" => {
                    tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap())).await;
                    data(json!({"slept": arguments["ms"]}))
                }
                "get_customer" => data(json!({"id": arguments["customer_id"], "name": "Ann"})),
                "list_orders" => data(json!([{"id": 1}, {"id": 2}])),
                // The format of tools of OpenAPI documents.
                "missing_page" => {
                    let text = "HTTP 404 Not Found\nretry-after: 7\n\n{\"reason\":\"gone\"}";
                    let http = json!({"status": 404, "headers": {"retry-after": "7"}});
                    Ok(Outcome::failure(to_raw(&json!({
                        "content": [{"type": "text", "text": text}],
                        "isError": true,
                        "_meta": {"dev.toolyard/http": http},
                    }))))
                }
                "refuse" => {
                    let data = Some(json!({"field": "x"}));
                    let origin = SourceError { code: -32099, message: "refused".to_owned(), data };
                    Err(HubError::new(ErrorKind::ToolFailed, "refused").with_source_error(origin))
                }
                other => Err(HubError::new(ErrorKind::UnknownTool, format!("unknown tool {other}"))),
            }
        })
    }
}
