//! One operation of a document: the tool that it becomes, and the table from its arguments to the request. The schema
//! that is shown and the request that is sent are both made from this table.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use toolyard_hub::json::Object;
use toolyard_hub::{Raw, Schema};

/// One operation, ready to be offered and called.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The tool's name within the document.
    pub name: String,
    /// The tool as MCP has it.
    pub definition: Raw,
    pub method: Method,
    /// The path with its `{parameters}`, as the document has it.
    pub path: String,
    /// Where it is, the nearest list of the document: operation, path, document. Never empty: `/` stands for none.
    pub servers: Vec<ServerUrl>,
    pub arguments: Vec<Argument>,
    pub body: Option<OperationBody>,
    /// Which answers are put into `{"result": …}`, in the output schema and in results alike.
    pub wrapping: ResultWrapping,
    /// The tool's output schema, compiled when the first answer is checked against it.
    pub output: Arc<OnceLock<Option<Schema>>>,
    /// Where the document has the schemas that the output schema was made from.
    pub response_rules: Vec<ResponseRule>,
    /// What the operation asks to be sent with `Accept`, best first.
    pub produces: Vec<String>,
    /// Any of these will do; none at all means that nothing is needed, and so does an empty one.
    pub security: Vec<Vec<SecurityRequirement>>,
    pub tags: Vec<String>,
    pub operation_id: Option<String>,
}

impl Operation {
    /// What the tool says about its results, if it says anything.
    pub(crate) fn output_schema(&self) -> Option<&Schema> {
        let read = || {
            let mut definition = Object::parse(&self.definition).ok()?;
            definition.remove("outputSchema").map(Schema::new)
        };
        self.output.get_or_init(read).as_ref()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Head,
    Options,
    Trace,
    Put,
    Post,
    Patch,
    Delete,
    /// New in 3.2.
    Query,
    /// One of 3.2's `additionalOperations`, as it is sent.
    Other(String),
}

impl Method {
    /// As it is sent.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Query => "QUERY",
            Self::Other(name) => name,
        }
    }
}

/// An address that may have variables in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub template: String,
    pub variables: BTreeMap<String, ServerVariable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVariable {
    pub default: String,
    pub allowed: Vec<String>,
}

/// One argument of the tool, and where it goes.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The property of the input schema.
    pub property: String,
    pub place: ArgumentLocation,
    pub wire_name: String,
    pub style: ParameterStyle,
    pub explode: bool,
    pub allow_reserved: bool,
    pub required: bool,
    /// The media type where the parameter is described by `content` instead of a style.
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentLocation {
    Path,
    Query,
    /// The whole query string (3.2).
    QueryString,
    Header,
    Cookie,
    /// The whole body.
    Body,
    /// One member of a body that is an object.
    BodyField,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterStyle {
    Form,
    Simple,
    Label,
    Matrix,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// Swagger's `tsv`.
    TabDelimited,
}

/// The body that the arguments make up.
#[derive(Debug, Clone)]
pub struct OperationBody {
    pub media_type: String,
    pub encoding: BodyEncoding,
    pub required: bool,
    /// How single members of a form are written, by wire name.
    pub fields: BTreeMap<String, FieldEncoding>,
    /// Whether members of other names are files.
    pub more_files: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyEncoding {
    Json,
    Form,
    Multipart,
    /// The argument is a text that is sent as it is.
    Text,
    /// The argument is base64 or a data URI, and its bytes are sent.
    Bytes,
}

/// How one member of a form or multipart body is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldEncoding {
    pub content_type: Option<String>,
    pub style: Option<ParameterStyle>,
    pub explode: Option<bool>,
    pub allow_reserved: bool,
    /// Whether it is a file: base64 or a data URI, or an object with `data`, `filename` and `content_type`.
    pub file: bool,
}

/// Which answers are put into `{"result": …}`, since structured content has to be an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultWrapping {
    /// None: all of them are JSON objects.
    #[default]
    Never,
    /// Those that are not JSON objects.
    Others,
    /// All of them.
    Always,
}

/// The schema of one good response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRule {
    /// As the document has it: `200`, `2XX`, `default`.
    pub status: String,
    /// A JSON pointer into the document.
    pub pointer: String,
    /// Which of several schemas it is, in the order of the output schema's `anyOf`.
    pub branch: usize,
}

/// A security scheme that an operation asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct SecurityRequirement {
    pub scheme: String,
    pub scopes: Vec<String>,
}

/// A security scheme of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct SecurityScheme {
    pub name: String,
    pub kind: SecuritySchemeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SecuritySchemeKind {
    ApiKey {
        place: ArgumentLocation,
        wire_name: String,
    },
    Basic,
    Bearer,
    /// Another scheme of the `Authorization` header.
    Http {
        scheme: String,
    },
    ClientCredentials {
        token_url: String,
        scopes: Vec<String>,
    },
    /// Any other flow of OAuth 2, or OpenID Connect: the configuration has a token.
    Token,
    /// What cannot be done here, such as a client's certificate.
    Other {
        kind: String,
    },
}

/// What was found out about a document while it was read, at its place.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Diagnostic {
    pub severity: DiagnosticSeverity,
    /// A JSON pointer into the document.
    pub pointer: String,
    /// A fixed word for this kind of finding.
    pub code: &'static str,
    pub message: String,
    /// The operation that it is about, as `GET /pets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSeverity {
    Note,
    Warning,
    Error,
}
