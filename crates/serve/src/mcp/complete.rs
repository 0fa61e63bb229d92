//! `completion/complete`.

use serde::Deserialize;
use toolyard_hub::{CallTarget, CompletionReference, Principal};
use toolyard_wire::{InboundRequest, RawJson, RpcError};

use super::call::{InputResponses, McpCallKind};
use super::{McpFront, params};

#[derive(Deserialize)]
struct Complete {
    #[serde(rename = "ref")]
    reference: Ref,
    argument: Argument,
    context: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Ref {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

impl McpFront {
    pub(super) async fn complete(&self, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let complete: Complete = params(&request.method, request.params.as_deref())?;
        let reference = match complete.reference {
            Ref::Prompt { name } => CompletionReference::Prompt(name),
            Ref::Resource { uri } => CompletionReference::Template(uri),
        };
        let Argument { name: argument, value } = complete.argument;
        let target = CallTarget::Completion { reference, argument, value, context: complete.context };
        self.run_call(request, target, None, McpCallKind::Completion, InputResponses::default()).await
    }
}
