//! `openapi`: converts the keys of a server into the settings of an OpenAPI document.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::{Secret, SourceName, ToolListing};
use toolyard_openapi::{
    ApiAuthSettings, ApiCredential, Budgets, ClientAuthMethod, ClientCredentials, ConvertSettings,
    DocumentLocation, DocumentSettings, Filters, MissingAuth, OutputSchemaMode, ReferencePolicy,
};

use super::http_syntax::{is_header_value, is_http_url};
use super::keys::ServerKeys;
use super::server::{build_headers, permissions};
use super::server_section::ServerSection;
use super::values::{OutputSchemasKey, ScalarText, TextList};

/// Credentials for one security scheme of the OpenAPI document: `token`, or `username` and
/// `password`, or `client_id` and `client_secret`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct SchemeKeys {
    /// API key or token. Variables are expanded. Default: none.
    token: Option<ScalarText>,
    /// User name for HTTP basic authentication. Variables are expanded. Default: none.
    username: Option<ScalarText>,
    /// Password for HTTP basic authentication. Variables are expanded. Default: empty.
    password: Option<ScalarText>,
    /// Client ID for the OAuth 2.0 client credentials grant. Variables are expanded. Default: none.
    client_id: Option<ScalarText>,
    /// Client secret for the OAuth 2.0 client credentials grant. Variables are expanded. Default:
    /// none.
    client_secret: Option<ScalarText>,
    /// Token endpoint. Variables are expanded. Default: the `tokenUrl` in the document.
    token_url: Option<String>,
    /// Scopes to request in addition to those that an operation needs: a list, or one string with
    /// spaces. Default: none.
    scopes: Option<TextList>,
    /// How client credentials are sent to the token endpoint. Default: "header".
    client_auth: Option<ClientAuthKey>,
}

/// `header`: HTTP basic authentication. `body`: form parameters.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ClientAuthKey {
    Header,
    Body,
}

/// `refuse`: the call fails and no request is sent. `send`: the request is sent without
/// credentials.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MissingAuthKey {
    Refuse,
    Send,
}

/// `files`: only files below the document's directory are read. `network`: URLs are fetched, too.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReferencesKey {
    Files,
    Network,
}

/// Selects operations. `include` requires a match in every list that is present, `exclude` in any
/// of them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct FilterKeys {
    /// Glob patterns of tags. Default: not filtered by tag.
    tags: Option<Vec<String>>,
    /// HTTP methods, such as `GET`. Default: not filtered by method.
    methods: Option<Vec<String>>,
    /// Glob patterns of paths, such as `/admin/*`. Default: not filtered by path.
    paths: Option<Vec<String>>,
    /// Glob patterns of operationIds. Default: not filtered by operationId.
    operations: Option<Vec<String>>,
}

/// Size limits of generated tools.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct BudgetKeys {
    /// Maximum size of an input schema, in bytes. Default: 65536.
    input_bytes: Option<usize>,
    /// Maximum size of an output schema, in bytes. Default: 16384.
    output_bytes: Option<usize>,
    /// Maximum length of a description, in characters. Default: 2000.
    description_characters: Option<usize>,
    /// Size of the tool list, in bytes, above which a warning is issued. Default: 262144.
    heavy_bytes: Option<usize>,
}

/// Returns the settings of a document, or `None` after adding an error to `origin`.
pub(super) fn settings(
    keys: &ServerKeys,
    name: &SourceName,
    origin: &mut ServerSection<'_>,
) -> Option<DocumentSettings> {
    let document = keys.openapi.as_deref()?;
    for (other, there) in [("command", keys.command.is_some()), ("url", keys.url.is_some())] {
        if there {
            return origin.refuse(
                &[other],
                &format!("both `openapi` and `{other}` are set"),
                "remove one of them",
            );
        }
    }
    if keys.oauth.is_some() {
        origin.refuse::<()>(
            &["oauth"],
            "`oauth` is not supported for an OpenAPI document",
            "use `auth.SCHEME` instead",
        );
    }
    let location = location(document, origin);
    let base_url = expand_url(keys.base_url.as_deref(), "base_url", origin);
    let mut variables = BTreeMap::new();
    for (name, value) in keys.variables.iter().flatten() {
        if let Some(value) = origin.expand(&value.0, &["variables", name]) {
            variables.insert(name.clone(), value);
        }
    }
    let headers = build_headers(keys, origin);
    let auth = auth(keys, origin);
    if !origin.errors.is_empty() {
        return None;
    }
    let (permissions, tool_permissions) = permissions(keys);
    let usual = DocumentSettings::new(name.clone(), location?);
    Some(DocumentSettings {
        enabled: keys.enabled.unwrap_or(true),
        base_url,
        variables,
        allow_hosts: keys.allow_hosts.clone().unwrap_or_default(),
        headers,
        forward_headers: keys.forward_headers.clone().unwrap_or_default(),
        auth,
        convert: convert(keys),
        references: match keys.references {
            Some(ReferencesKey::Network) => ReferencePolicy::Network,
            Some(ReferencesKey::Files) | None => ReferencePolicy::Files,
        },
        enabled_tools: keys.enabled_tools.clone(),
        disabled_tools: keys.disabled_tools.clone().unwrap_or_default(),
        permissions,
        tool_permissions,
        listing: if keys.listed == Some(false) { ToolListing::Unlisted } else { ToolListing::Listed },
        start_time: keys.start_timeout.map_or(usual.start_time, |time| time.0),
        call_time: keys.call_timeout.map_or(usual.call_time, |time| time.0),
        largest_answer: keys.max_answer_bytes.unwrap_or(usual.largest_answer),
        reload_every: keys.reload_every.map_or(usual.reload_every, |time| time.0),
        ..usual
    })
}

fn location(document: &str, origin: &mut ServerSection<'_>) -> Option<DocumentLocation> {
    let text = origin.expand(document, &["openapi"])?;
    if text.trim().is_empty() {
        origin.add_error(&["openapi"], "`openapi` is empty, expected a file or a URL".to_owned());
        return None;
    }
    if has_http_scheme(&text) {
        if !is_http_url(&text) {
            origin.add_error(&["openapi"], "expected an http:// or https:// URL".to_owned());
        }
        return Some(DocumentLocation::Url(text));
    }
    origin.path(document, &["openapi"]).map(DocumentLocation::File)
}

pub(crate) fn has_http_scheme(text: &str) -> bool {
    let start = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    start.is_some_and(|scheme| ["http", "https"].contains(&scheme.as_str()))
}

fn expand_url(value: Option<&str>, key: &str, origin: &mut ServerSection<'_>) -> Option<String> {
    let url = origin.expand(value?, &[key])?;
    if !is_http_url(&url) {
        origin.add_error(&[key], "expected an http:// or https:// URL".to_owned());
    }
    Some(url)
}

fn auth(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> ApiAuthSettings {
    let bearer = keys.bearer_token_env_var.as_deref().and_then(|variable| {
        let token = origin.variable(variable, &["bearer_token_env_var"])?;
        if token.is_empty() || !is_header_value(&token) {
            let message = format!("the environment variable `{variable}` does not contain a valid token");
            origin.add_error(&["bearer_token_env_var"], message);
        }
        Some(Secret::new(token))
    });
    let mut schemes = BTreeMap::new();
    for (name, scheme) in keys.auth.iter().flatten() {
        if let Some(credential) = credential(name, scheme, origin) {
            schemes.insert(name.clone(), credential);
        }
    }
    let missing = match keys.missing_auth {
        Some(MissingAuthKey::Send) => MissingAuth::Send,
        Some(MissingAuthKey::Refuse) | None => MissingAuth::Refuse,
    };
    ApiAuthSettings { schemes, bearer, missing }
}

fn credential(name: &str, keys: &SchemeKeys, origin: &mut ServerSection<'_>) -> Option<ApiCredential> {
    let mut expand = |key: &str, value: Option<&ScalarText>| {
        let value = value?;
        let text = origin.expand(&value.0, &["auth", name, key])?;
        if !is_header_value(&text) {
            origin.add_error(
                &["auth", name, key],
                format!("`{key}` contains a character that is not allowed in an HTTP header"),
            );
        }
        Some(Secret::new(text))
    };
    let token = expand("token", keys.token.as_ref());
    let (username, password) =
        (expand("username", keys.username.as_ref()), expand("password", keys.password.as_ref()));
    let (id, secret) =
        (expand("client_id", keys.client_id.as_ref()), expand("client_secret", keys.client_secret.as_ref()));
    let token_url =
        keys.token_url.as_deref().and_then(|url| origin.expand(url, &["auth", name, "token_url"]));
    if token_url.as_deref().is_some_and(|url| !is_http_url(url)) {
        let message = "expected an http:// or https:// URL";
        origin.add_error(&["auth", name, "token_url"], message.to_owned());
    }
    let kinds = [keys.token.is_some(), keys.username.is_some(), keys.client_id.is_some()];
    if kinds.iter().filter(|is_set| **is_set).count() > 1 {
        return origin.refuse(
            &["auth", name],
            "more than one kind of credentials is set",
            "keep only one of `token`, `username` and `client_id`",
        );
    }
    if let Some(token) = token {
        return Some(ApiCredential::Token(token));
    }
    if keys.username.is_some() {
        let password = if keys.password.is_some() { password? } else { Secret::default() };
        return Some(ApiCredential::Basic { username: username?, password });
    }
    if keys.client_id.is_some() && keys.client_secret.is_some() {
        let sending = match keys.client_auth {
            Some(ClientAuthKey::Body) => ClientAuthMethod::Body,
            Some(ClientAuthKey::Header) | None => ClientAuthMethod::Header,
        };
        let scopes = keys.scopes.clone().unwrap_or_default().0;
        return Some(ApiCredential::Client(ClientCredentials {
            id: id?,
            secret: secret?,
            token_url,
            scopes,
            sending,
        }));
    }
    if keys.token.is_none() {
        origin.add_error(
            &["auth", name],
            "credentials require a `token`, a `username`, or a `client_id` with a `client_secret`".to_owned(),
        );
    }
    None
}

fn convert(keys: &ServerKeys) -> ConvertSettings {
    let (include, exclude) =
        (keys.include.clone().unwrap_or_default(), keys.exclude.clone().unwrap_or_default());
    let list = |names: Option<Vec<String>>| names.unwrap_or_default();
    let defaults = Budgets::default();
    let budgets = keys.budgets.clone().unwrap_or_default();
    ConvertSettings {
        filters: Filters {
            include_tags: list(include.tags),
            exclude_tags: list(exclude.tags),
            include_methods: list(include.methods),
            exclude_methods: list(exclude.methods),
            include_paths: list(include.paths),
            exclude_paths: list(exclude.paths),
            include_operations: list(include.operations),
            exclude_operations: list(exclude.operations),
        },
        renames: keys.rename.clone().unwrap_or_default(),
        descriptions: keys.describe.clone().unwrap_or_default(),
        budgets: Budgets {
            input_bytes: budgets.input_bytes.unwrap_or(defaults.input_bytes),
            output_bytes: budgets.output_bytes.unwrap_or(defaults.output_bytes),
            description_characters: budgets.description_characters.unwrap_or(defaults.description_characters),
            heavy_bytes: budgets.heavy_bytes.unwrap_or(defaults.heavy_bytes),
        },
        output_schemas: match keys.output_schemas {
            Some(OutputSchemasKey::Off) => OutputSchemaMode::Omit,
            Some(OutputSchemasKey::Lenient) => OutputSchemaMode::Lenient,
            Some(OutputSchemasKey::On) | None => OutputSchemaMode::Exact,
        },
    }
}

/// Returns a name for a document without a configured one: derived from its file name, or from its
/// directory or host if the file name is generic.
pub(crate) fn document_name(document: &str) -> String {
    const USUAL: [&str; 8] = ["openapi", "swagger", "api", "api-docs", "index", "spec", "docs", "v3"];
    let path = document.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match path.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or((Some(rest), ""), |(host, path)| (Some(host), path)),
        None => (None, path),
    };
    let stem = |part: &str| {
        Path::new(part).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned()
    };
    let parts = path.split('/').rev().map(stem).filter(|part| !part.is_empty() && part != "..");
    let found = parts.into_iter().find(|part| !USUAL.contains(&part.to_ascii_lowercase().as_str()));
    let of_host = || {
        host.map(|host| {
            host.split(['@', ':'])
                .next_back()
                .map_or(host, |_| host.split(':').next().unwrap_or(host))
                .to_owned()
        })
    };
    let name = found.or_else(of_host).unwrap_or_else(|| "api".to_owned());
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = name.chars().map(plain).take(32).collect();
    if name.trim_matches('_').is_empty() { "api".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::document_name;

    #[test]
    fn a_document_is_called_after_what_is_particular_about_it() {
        for (document, name) in [
            ("petstore.yaml", "petstore"),
            ("./specs/github.v3.json", "github_v3"),
            ("shop/openapi.yaml", "shop"),
            ("openapi.json", "api"),
            ("https://api.example.com/v3/api-docs?x=1", "api_example_com"),
            ("https://petstore3.swagger.io/api/v3/openapi.json", "petstore3_swagger_io"),
            ("https://example.com/specs/weather.json", "weather"),
            ("http://localhost:8000/openapi.json", "localhost"),
            ("", "api"),
            ("???", "api"),
        ] {
            assert_eq!(document_name(document), name, "{document}");
        }
    }
}
