//! JSON Schemas as shapes that programming languages can say: for the signatures that programs see, and for whoever writes
//! types for client libraries.

mod naming;
mod python;
mod schema;

pub use naming::{Names, prose};
pub use python::{Unions, literal, python, quoted};
pub use schema::{Body, Declared, Field, Reader, Shape};
