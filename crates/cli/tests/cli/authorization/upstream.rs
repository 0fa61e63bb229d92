//! The servers behind the yard. Each offers the same items under its own names.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::json::from_text;
use toolyard_hub::{Principal, Raw, Yard};
use toolyard_sdk::{Context, NativeSource, Prompt, Resource, ResourceTemplate, Tool};
use toolyard_serve::{
    Auth, ConnectionLimits, ControlSettings, EndpointSettings, McpSettings, ServeAuthSettings, ServeSettings,
    bind,
};

/// A server in this process. It stops when this value is dropped.
pub(super) struct Upstream {
    pub(super) url: String,
    _serving: AbortOnDropHandle<()>,
}

impl Upstream {
    pub(super) async fn start(name: &'static str) -> Self {
        let door = ServeAuthSettings {
            auth: Auth::None(Principal::owner()),
            hosts: Vec::new(),
            origins: Vec::new(),
        };
        let settings = ServeSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            auth: door,
            mcp: McpSettings::default(),
            endpoint: EndpointSettings::default(),
            control: ControlSettings::default(),
            connections: ConnectionLimits::default(),
            builtin_endpoints: Vec::new(),
            drain: Duration::ZERO,
        };
        let bound = bind(Yard::with_sources([offer(name).into_source()]), settings).await.unwrap();
        let url = format!("http://{}/mcp", bound.address());
        let serving = AbortOnDropHandle::new(tokio::spawn(bound.serve(CancellationToken::new())));
        Self { url, _serving: serving }
    }
}

/// The answer that the tool `ask` asks for.
#[derive(Deserialize, JsonSchema)]
struct Name {
    #[allow(dead_code, reason = "only its schema is used")]
    name: String,
}

fn fixed_result() -> Raw {
    from_text(r#"{"content":[{"type":"text","text":"heard"}]}"#.to_owned())
}

fn offer(name: &'static str) -> NativeSource {
    let note = format!("{name}://note");
    let touched = note.clone();
    NativeSource::new("upstream")
        .tool(Tool::raw("echo", |_: Raw, ctx: Context| async move {
            ctx.report(1, 2, "half way");
            Ok(fixed_result())
        }))
        .tool(Tool::raw("restricted", |_: Raw, _: Context| async { Ok(fixed_result()) }))
        .tool(Tool::raw("wait", |_: Raw, _: Context| std::future::pending()))
        .tool(Tool::raw("ask", |_: Raw, ctx: Context| async move {
            ctx.elicit::<Name>("name", "Who is it?").await?;
            Ok(fixed_result())
        }))
        .tool(Tool::raw("touch", move |_: Raw, ctx: Context| {
            ctx.resource_updated(&touched);
            ctx.native().add_tool(Tool::raw("later", |_: Raw, _: Context| async { Ok(fixed_result()) }));
            async { Ok(fixed_result()) }
        }))
        .resource(Resource::text(note, format!("note of {name}"), "words"))
        .template(
            ResourceTemplate::new(
                format!("{name}://notes/{{n}}"),
                format!("notes of {name}"),
                |_, _| async { Ok("words") },
            )
            .complete_from("n", ["one", "two"]),
        )
        .prompt(
            Prompt::new("greet", |_, _| async { Ok("Say hello.") })
                .optional_argument("who", "Who is greeted.")
                .complete_from("who", ["world"]),
        )
}
