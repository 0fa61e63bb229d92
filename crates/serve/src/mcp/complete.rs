//! `completion/complete`.

use serde::Deserialize;
use toolyard_hub::{Principal, Reference, What};
use toolyard_wire::{Inbound, Raw, RpcError};

use super::call::{Repeated, Subject};
use super::{Front, params};

#[derive(Deserialize)]
struct Complete {
    #[serde(rename = "ref")]
    reference: Ref,
    argument: Argument,
    context: Option<Raw>,
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

impl Front {
    pub(super) async fn complete(&self, request: Inbound<Principal>) -> Result<Raw, RpcError> {
        let read: Complete = params(&request.method, request.params.as_deref())?;
        let reference = match read.reference {
            Ref::Prompt { name } => Reference::Prompt(name),
            Ref::Resource { uri } => Reference::Template(uri),
        };
        let Argument { name: argument, value } = read.argument;
        let what = What::Completion { reference, argument, value, context: read.context };
        self.carry_out(request, what, Subject::Completion, Repeated::default()).await
    }
}
