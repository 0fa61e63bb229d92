//! Progress, streaming, hooks, permissions, questions and state in one MCP server over stdio.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_sdk::hooks::{BoxFuture, HookCall, HookDecision, Hooks};
use toolyard_sdk::{
    Context, ElicitResult, ErrorKind, HubError, Json, LogLevel, NativeSource, Outcome, Resource, Tool,
    ToolError, Yard, serve, tool,
};

#[derive(Deserialize, JsonSchema)]
struct Job {
    /// The planks to saw.
    planks: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Sawn {
    /// The number of planks.
    planks: usize,
}

/// Saws planks one after the other. Reports progress and streams every plank.
#[tool(version = "2.0.0", category = "wood", tags = ["saw", "plank"], destructive = true, open_world = false)]
async fn saw(params: Job, ctx: Context) -> Result<Json<Sawn>, ToolError> {
    if let Some(plank) = params.planks.iter().find(|plank| plank.contains("nail")) {
        return Err(ToolError::invalid("planks", "would break the saw", plank));
    }
    let stream = ctx.stream();
    let total = u32::try_from(params.planks.len())?;
    for (done, plank) in (1..).zip(&params.planks) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stream.write(json!({"sawn": plank})).await;
        ctx.report(done, total, format!("sawed {plank}"));
    }
    stream.end();
    ctx.log(LogLevel::Info, json!({"planks": total}));
    Ok(Json(Sawn { planks: params.planks.len() }))
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The product to build.
    product: Product,
    /// The number of pieces.
    #[schemars(range(min = 1, max = 10))]
    number: u8,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Product {
    /// A chair with four legs
    Chair,
    /// A table for six
    Table,
}

/// Asks with a form what to build, and builds it.
#[tool]
async fn build(ctx: Context) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Order>("order", "What should we build?").await? {
        ElicitResult::Accepted(order) => format!("Built {} x {:?}.", order.number, order.product),
        ElicitResult::Declined | ElicitResult::Cancelled => "Nothing was built.".to_owned(),
    })
}

/// Empties the workshop. Requires the permission `admin`.
#[tool(permissions = ["admin"], destructive = true, hooks = OpeningHours { closed: false })]
async fn sweep() -> Result<&'static str, ToolError> {
    Ok("The floor is clean.")
}

/// Rejects calls while the workshop is closed.
struct OpeningHours {
    closed: bool,
}

impl Hooks for OpeningHours {
    fn before<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        let closed = || {
            HubError::new(ErrorKind::Forbidden, "the workshop is closed")
                .with_suggestion("come back tomorrow")
        };
        Box::pin(std::future::ready(if self.closed { Err(closed()) } else { Ok(HookDecision::Pass) }))
    }
}

/// Keeps a diary of finished calls, which is also a resource.
#[derive(Default)]
struct Diary {
    lines: Mutex<Vec<String>>,
}

impl Diary {
    fn write(&self, line: String) {
        self.lines.lock().push(line);
    }

    fn read(&self) -> String {
        self.lines.lock().join("\n")
    }
}

impl Hooks for Diary {
    fn after<'a>(&'a self, call: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        self.write(format!(
            "{} by {}, failed: {}",
            call.record.tool_name(),
            call.record.principal.id(),
            outcome.failed
        ));
        Box::pin(std::future::ready(()))
    }

    fn on_error<'a>(&'a self, call: HookCall<'a>, error: &'a HubError) -> BoxFuture<'a, ()> {
        self.write(format!("{} by {}: {error}", call.record.tool_name(), call.record.principal.id()));
        Box::pin(std::future::ready(()))
    }
}

/// Creates a tool from a closure with state.
fn ticket() -> Tool {
    let next = AtomicU64::new(1);
    let draw = move || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("You are number {number}.")) }
    };
    Tool::new("ticket", draw).description("Draws a queue number.")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let diary = Arc::new(Diary::default());
    let reading = Arc::clone(&diary);
    let read = move |_| {
        let text = reading.read();
        async move { Ok(text) }
    };
    let source = NativeSource::new("workshop")
        .tool(saw().hooks(diary))
        .tools([build(), sweep(), ticket()])
        .resource(Resource::dynamic("workshop://diary", "diary", read).mime_type("text/plain"));
    serve::stdio(Yard::with_sources([source.into_source()])).await
}
