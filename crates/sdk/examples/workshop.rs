//! Progress, streaming, hooks, permissions, questions and state, in one server on standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_sdk::hub::{BoxFuture, ErrorKind, HookCall, HookDecision, Hooks, HubError, Outcome, Yard};
use toolyard_sdk::{Context, ElicitResult, Json, LogLevel, NativeSource, Resource, Tool, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct Job {
    /// What to saw.
    planks: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Sawn {
    /// How many planks were sawn.
    planks: usize,
}

/// Saws planks, one after the other. Reports progress and sends every plank ahead.
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
    /// What to build.
    product: Product,
    /// How many of them.
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

/// Asks what to build, with a form, and builds it.
#[tool]
async fn build(ctx: Context) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Order>("order", "What shall we build?").await? {
        ElicitResult::Accepted(order) => format!("Built {} x {:?}.", order.number, order.product),
        ElicitResult::Declined | ElicitResult::Cancelled => "Nothing was built.".to_owned(),
    })
}

/// Empties the workshop. Only those with the permission `admin` see it.
#[tool(permissions = ["admin"], destructive = true, hooks = OpeningHours { closed: false })]
async fn sweep() -> Result<&'static str, ToolError> {
    Ok("The floor is clean.")
}

/// Refuses calls while the workshop is closed.
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

/// Keeps a diary of calls that ended, which can be read as a resource.
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

/// A closure can be a tool, too, and hold on to state.
fn ticket() -> Tool {
    let next = AtomicU64::new(1);
    let draw = move || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("You are number {number}.")) }
    };
    Tool::new("ticket", draw).description("Gives you a place in the queue.")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let diary = Arc::new(Diary::default());
    let reading = Arc::clone(&diary);
    let read = move |_| {
        let text = reading.read();
        async move { Ok(text) }
    };
    let native = NativeSource::new("workshop")
        .tool(saw().hooks(diary))
        .tools([build(), sweep(), ticket()])
        .resource(Resource::dynamic("workshop://diary", "diary", read).mime_type("text/plain"));
    toolyard_serve::stdio(Yard::with_sources([native.into_source()])).await
}
