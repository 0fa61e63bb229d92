//! OpenAPI documents as sources of tools: a document becomes operations, and an operation a tool and the HTTP request
//! behind it.

mod address;
mod answer;
mod auth;
mod clients;
mod convert;
mod document;
mod exchange;
#[cfg(test)]
mod fake;
mod fetch;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod operation;
mod ordered;
mod request;
mod server;
mod settings;
mod source;

pub use clients::Http;
pub use convert::{Budgets, Conversion, ConvertSettings, Filters, OutputSchemas, convert};
pub use document::{Document, Fetch, Limits, LoadError, LoadSettings, Location, load};
pub use fetch::fetching;
pub use operation::{
    AnswerRule, Argument, Body, Diagnostic, Encoding, FieldEncoding, Method, Operation, Place, Requirement,
    Scheme, SchemeKind, ServerUrl, Severity, Style, Variable, Wrapping,
};
pub use settings::{
    AuthSettings, ClientSending, ClientSettings, Credential, DocumentSettings, MissingAuth, References,
};
pub use source::OpenApi;
