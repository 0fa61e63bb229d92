//! What is configured about one document.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use toolyard_hub::{Secret, SourceName, ToolListing};

use crate::convert::ConvertSettings;
use crate::document::DocumentLocation;

/// One document as a source.
#[derive(Clone, PartialEq)]
pub struct DocumentSettings {
    /// Its name in this yard.
    pub name: SourceName,
    pub enabled: bool,
    pub location: DocumentLocation,
    /// Where every operation is, whatever the document says.
    pub base_url: Option<String>,
    /// For the variables in the document's addresses.
    pub variables: BTreeMap<String, String>,
    /// Hosts that may be called though their address is private, with or without a port.
    pub allow_hosts: Vec<String>,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    /// Headers of our own callers that are handed on. None unless named.
    pub forward_headers: Vec<String>,
    pub auth: ApiAuthSettings,
    pub convert: ConvertSettings,
    pub references: ReferencePolicy,
    /// Globs over the names of tools; everything where this is not said.
    pub enabled_tools: Option<Vec<String>>,
    /// Globs over the names of tools; these win.
    pub disabled_tools: Vec<String>,
    /// Needed for every tool.
    pub permissions: Vec<String>,
    /// Needed beside those for the tools that a glob picks.
    pub tool_permissions: BTreeMap<String, Vec<String>>,
    pub listing: ToolListing,
    /// How long the document may take to come.
    pub start_time: Duration,
    /// How long a call may take, from the first try to the last byte.
    pub call_time: Duration,
    /// The largest answer that is read, in bytes.
    pub largest_answer: usize,
    /// How often a document at an address is asked for anew.
    pub reload_every: Duration,
}

impl DocumentSettings {
    /// A document with nothing out of the ordinary.
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

/// Addresses may hold secrets, so they are not shown.
impl fmt::Debug for DocumentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether `$ref`s may lead to other addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferencePolicy {
    /// Only to other files below the document's folder.
    #[default]
    Files,
    Network,
}

/// How we prove who we are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiAuthSettings {
    /// By the name that the document gives to a scheme.
    pub schemes: BTreeMap<String, ApiCredential>,
    /// For every scheme that takes a bearer token and has nothing of its own.
    pub bearer: Option<Secret>,
    pub missing: MissingAuth,
}

/// What becomes of a call that needs what is not configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingAuth {
    /// It is refused, with a word on what is missing.
    #[default]
    Refuse,
    /// It is sent without: the server may know us in another way.
    Send,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ApiCredential {
    /// An API key, or a token.
    Token(Secret),
    Basic {
        username: Secret,
        password: Secret,
    },
    Client(ClientCredentials),
}

/// What gets a token by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCredentials {
    pub id: Secret,
    pub secret: Secret,
    /// Where the token comes from, if not from where the document says.
    pub token_url: Option<String>,
    /// Asked for beside what an operation needs.
    pub scopes: Vec<String>,
    pub sending: ClientAuthMethod,
}

/// How the client's own credentials are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuthMethod {
    /// In the `Authorization` header.
    #[default]
    Header,
    Body,
}
