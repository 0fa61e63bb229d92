//! Settings of one document.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use toolyard_hub::{Secret, SourceName, ToolListing};

use crate::convert::ConvertSettings;
use crate::document::DocumentLocation;

/// An OpenAPI document as a source.
#[derive(Clone, PartialEq)]
pub struct DocumentSettings {
    /// The name of the source in this yard.
    pub name: SourceName,
    pub enabled: bool,
    pub location: DocumentLocation,
    /// The base URL of every operation. Overrides the document.
    pub base_url: Option<String>,
    /// Values for the variables in the document's server URLs.
    pub variables: BTreeMap<String, String>,
    /// Hosts that may be called although their address is private, with or without a port.
    pub allow_hosts: Vec<String>,
    /// Headers that are sent with every request.
    pub headers: BTreeMap<String, Secret>,
    /// Headers of the caller that are forwarded. Default: none.
    pub forward_headers: Vec<String>,
    pub auth: ApiAuthSettings,
    pub convert: ConvertSettings,
    pub references: ReferencePolicy,
    /// Globs over tool names. Default: all tools.
    pub enabled_tools: Option<Vec<String>>,
    /// Globs over tool names that are excluded. They take precedence over `enabled_tools`.
    pub disabled_tools: Vec<String>,
    /// Permissions required for every tool.
    pub permissions: Vec<String>,
    /// Additional permissions for the tools that a glob matches.
    pub tool_permissions: BTreeMap<String, Vec<String>>,
    pub listing: ToolListing,
    /// Time limit for loading the document.
    pub start_time: Duration,
    /// Time limit of a call, from the first attempt to the last byte.
    pub call_time: Duration,
    /// Size limit of a response, in bytes.
    pub largest_answer: usize,
    /// How often a document at a URL is checked for changes.
    pub reload_every: Duration,
}

impl DocumentSettings {
    /// Creates the default settings for a document.
    pub fn new(name: SourceName, location: DocumentLocation) -> Self {
        Self {
            name,
            enabled: true,
            location,
            base_url: None,
            variables: BTreeMap::new(),
            allow_hosts: Vec::new(),
            headers: BTreeMap::new(),
            forward_headers: Vec::new(),
            auth: ApiAuthSettings::default(),
            convert: ConvertSettings::default(),
            references: ReferencePolicy::default(),
            enabled_tools: None,
            disabled_tools: Vec::new(),
            permissions: Vec::new(),
            tool_permissions: BTreeMap::new(),
            listing: ToolListing::default(),
            start_time: Duration::from_secs(30),
            call_time: Duration::from_secs(120),
            largest_answer: 8 * 1024 * 1024,
            reload_every: Duration::from_secs(300),
        }
    }
}

/// Omits URLs because they may contain secrets.
impl fmt::Debug for DocumentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where `$ref`s may point to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferencePolicy {
    /// Only to other files below the document's folder.
    #[default]
    Files,
    Network,
}

/// Credentials for the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiAuthSettings {
    /// Credentials by the name of the security scheme in the document.
    pub schemes: BTreeMap<String, ApiCredential>,
    /// A token for every scheme that accepts a bearer token and has no credentials of its own.
    pub bearer: Option<Secret>,
    pub missing: MissingAuth,
}

/// How to handle a call whose credentials are not configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingAuth {
    /// Reject the call with an error that names the missing credentials.
    #[default]
    Refuse,
    /// Send the request without credentials: the server may authenticate it in another way.
    Send,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ApiCredential {
    /// An API key or a token.
    Token(Secret),
    Basic {
        username: Secret,
        password: Secret,
    },
    Client(ClientCredentials),
}

/// OAuth 2 client credentials, which are exchanged for access tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCredentials {
    pub id: Secret,
    pub secret: Secret,
    /// The token URL. Default: the one in the document.
    pub token_url: Option<String>,
    /// Scopes that are requested in addition to those that an operation needs.
    pub scopes: Vec<String>,
    pub sending: ClientAuthMethod,
}

/// How the client credentials are sent to the token URL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuthMethod {
    /// In the `Authorization` header.
    #[default]
    Header,
    Body,
}
