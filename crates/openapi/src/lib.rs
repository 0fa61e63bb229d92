//! OpenAPI documents as sources of tools: a document becomes operations, and an operation a tool and the HTTP request
//! behind it.

mod convert;
mod document;
mod operation;
mod request;

pub use convert::{Budgets, Conversion, ConvertSettings, Filters, OutputSchemas, convert};
pub use document::{Document, Fetch, Limits, LoadError, LoadSettings, Location, load};
pub use operation::{
    Argument, Body, Diagnostic, Encoding, FieldEncoding, Method, Operation, Place, Requirement, Scheme,
    SchemeKind, ServerUrl, Severity, Style, Variable,
};
