//! One operation of a document: its tool, and the mapping from the tool's arguments to the HTTP
//! request. The input schema and the request are both derived from this mapping.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use toolyard_hub::json::Object;
use toolyard_hub::{Raw, Schema};

/// An operation that can be offered as a tool and called.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The tool name within the document.
    pub name: String,
    /// The MCP tool definition.
    pub definition: Raw,
    pub method: Method,
    /// The path template of the document, with its `{parameters}`.
    pub path: String,
    /// The most specific server list of the document: operation, path, then document. Never empty:
    /// `/` stands for a missing list.
    pub servers: Vec<ServerUrl>,
    pub arguments: Vec<Argument>,
    pub body: Option<OperationBody>,
    /// Which responses are wrapped in `{"result": …}`, both in the output schema and in results.
    pub wrapping: ResultWrapping,
    /// The validator of the output schema, compiled for the first response.
    pub output: Arc<OnceLock<Option<Schema>>>,
    /// The response schemas of the document that the output schema was built from.
    pub response_rules: Vec<ResponseRule>,
    /// The media types for `Accept`, in order of preference.
    pub produces: Vec<String>,
    /// Alternative security requirements. If the list is empty or contains an empty alternative, no
    /// credentials are needed.
    pub security: Vec<Vec<SecurityRequirement>>,
    pub tags: Vec<String>,
    pub operation_id: Option<String>,
}

impl Operation {
    /// Returns the output schema of the tool, if it has one.
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
    /// New in OpenAPI 3.2.
    Query,
    /// A method of `additionalOperations` (OpenAPI 3.2), in the spelling that is sent.
    Other(String),
}

impl Method {
    /// Returns the method in the spelling that is sent.
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

/// A server URL that may contain variables.
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

/// One argument of the tool and its location in the request.
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
    /// The media type of a parameter that is described by `content` instead of a style.
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentLocation {
    Path,
    Query,
    /// The whole query string (OpenAPI 3.2).
    QueryString,
    Header,
    Cookie,
    /// The whole body.
    Body,
    /// One member of an object body.
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
    /// The `tsv` collection format of Swagger 2.0.
    TabDelimited,
}

/// How the arguments form the request body.
#[derive(Debug, Clone)]
pub struct OperationBody {
    pub media_type: String,
    pub encoding: BodyEncoding,
    pub required: bool,
    /// How single members of a form are encoded, by wire name.
    pub fields: BTreeMap<String, FieldEncoding>,
    /// Whether additional members are files.
    pub more_files: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyEncoding {
    Json,
    Form,
    Multipart,
    /// The argument is a string that is sent unchanged.
    Text,
    /// The argument is base64 or a data URI, and its decoded bytes are sent.
    Bytes,
}

/// How one member of a form or multipart body is encoded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldEncoding {
    pub content_type: Option<String>,
    pub style: Option<ParameterStyle>,
    pub explode: Option<bool>,
    pub allow_reserved: bool,
    /// Whether the member is a file: base64, a data URI, or an object with `data`, `filename` and
    /// `content_type`.
    pub file: bool,
}

/// Which responses are wrapped in `{"result": …}`. Structured content has to be an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultWrapping {
    /// None: every response is a JSON object.
    #[default]
    Never,
    /// Responses that are not JSON objects.
    Others,
    /// Every response.
    Always,
}

/// The schema of one successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRule {
    /// The status key of the document: `200`, `2XX` or `default`.
    pub status: String,
    /// JSON pointer into the document.
    pub pointer: String,
    /// The index in the `anyOf` of the output schema, if there are several schemas.
    pub branch: usize,
}

/// A security scheme that an operation requires.
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
    /// Another OAuth 2 flow, or OpenID Connect: the configuration provides the token.
    Token,
    /// An unsupported scheme, such as a client certificate.
    Other {
        kind: String,
    },
}

/// A problem or remark about a document, with its location.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Diagnostic {
    pub severity: DiagnosticSeverity,
    /// JSON pointer into the document.
    pub pointer: String,
    /// A fixed code for this kind of diagnostic.
    pub code: &'static str,
    pub message: String,
    /// The affected operation, such as `GET /pets`.
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
