//! OpenAPI documents as sources of tools: a document becomes operations, and an operation a tool and the HTTP request
//! behind it.

mod operation;

pub use operation::{
    Argument, Body, Diagnostic, Encoding, FieldEncoding, Method, Operation, Place, Requirement, Scheme,
    SchemeKind, ServerUrl, Severity, Style, Variable,
};
