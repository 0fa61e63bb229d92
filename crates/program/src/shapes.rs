//! Converts JSON Schemas into shapes that programming languages can express. Used for the
//! signatures that programs see, and for the generated types of client libraries.

mod naming;
mod python;
mod schema;

pub use naming::{TypeNames, sanitize_description};
pub use python::{UnionSyntax, python_literal, python_string, python_type};
pub use schema::{RecordField, Shape, ShapeReader, TypeBody, TypeDeclaration};
