//! OpenAPI documents as sources of tools: a document becomes operations, and each operation becomes
//! a tool and the HTTP request behind it.

mod auth;
mod base_url;
mod clients;
mod convert;
mod document;
mod exchange;
#[cfg(test)]
mod fake_server;
mod fetch;
#[doc(hidden)]
pub mod fuzzing;
mod host_policy;
mod operation;
mod ordered_map;
mod request;
mod response;
mod settings;
mod source;
mod watch;

pub use clients::HttpClients;
pub use convert::{Budgets, Conversion, ConvertSettings, Filters, OutputSchemaMode, convert};
pub use document::{DocumentLimits, DocumentLocation, FetchFn, LoadError, LoadSettings, SpecDocument, load};
pub use fetch::document_fetcher;
pub use operation::{
    Argument, ArgumentLocation, BodyEncoding, Diagnostic, DiagnosticSeverity, FieldEncoding, Method,
    Operation, OperationBody, ParameterStyle, ResponseRule, ResultWrapping, SecurityRequirement,
    SecurityScheme, SecuritySchemeKind, ServerUrl, ServerVariable,
};
pub use settings::{
    ApiAuthSettings, ApiCredential, ClientAuthMethod, ClientCredentials, DocumentSettings, MissingAuth,
    ReferencePolicy,
};
pub use source::OpenApiSource;
