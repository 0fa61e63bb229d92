//! `openapi`: a document whose operations become tools, from the keys of a server to what the source obeys.

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

/// How to prove who we are with one security scheme of the document.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct SchemeKeys {
    /// The API key or the token. Variables are replaced.
    token: Option<ScalarText>,
    /// The name for basic authentication. Variables are replaced.
    username: Option<ScalarText>,
    /// The password for basic authentication. Variables are replaced.
    password: Option<ScalarText>,
    /// The client whose own credentials bring a token. Variables are replaced.
    client_id: Option<ScalarText>,
    /// The secret of that client. Variables are replaced.
    client_secret: Option<ScalarText>,
    /// Where the token comes from, if not from where the document says. Variables are replaced.
    token_url: Option<String>,
    /// What to ask for beside what an operation needs: a list, or one text with spaces.
    scopes: Option<TextList>,
    /// Where the client's credentials are sent to get a token: in a header or in the body.
    client_auth: Option<ClientAuthKey>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ClientAuthKey {
    Header,
    Body,
}

/// `refuse`: a call that needs what is not configured is not sent; `send`: it is sent without.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MissingAuthKey {
    Refuse,
    Send,
}

/// `files`: only other files below the document's folder are read; `network`: addresses too.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReferencesKey {
    Files,
    Network,
}

/// Which operations: globs, of which one must fit in every list that is there.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct FilterKeys {
    /// Globs over tags.
    tags: Option<Vec<String>>,
    /// Methods, such as `GET`.
    methods: Option<Vec<String>>,
    /// Globs over paths, such as `/admin/*`.
    paths: Option<Vec<String>>,
    /// Globs over operationIds.
    operations: Option<Vec<String>>,
}

/// How much room one tool may take.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct BudgetKeys {
    /// The largest input schema, in bytes.
    input_bytes: Option<usize>,
    /// The largest output schema, in bytes.
    output_bytes: Option<usize>,
    /// The longest description, in characters.
    description_characters: Option<usize>,
    /// A list of tools beyond this many bytes is warned about.
    heavy_bytes: Option<usize>,
}

/// The settings of a document. Nothing if there is a problem, which is in `origin` then.
pub(super) fn settings(
    keys: &ServerKeys,
    name: &SourceName,
    origin: &mut ServerSection<'_>,
) -> Option<DocumentSettings> {
    let said = keys.openapi.as_deref()?;
    for (other, there) in [("command", keys.command.is_some()), ("url", keys.url.is_some())] {
        if there {
            return origin.refuse(
                &[other],
                &format!("there is both an openapi document and a {other}"),
                "keep one of them",
            );
        }
    }
    if keys.oauth.is_some() {
        origin.add_error(&["oauth"], "an openapi document is authorised with `auth.SCHEME`".to_owned());
    }
    let location = location(said, origin);
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

fn location(said: &str, origin: &mut ServerSection<'_>) -> Option<DocumentLocation> {
    let text = origin.expand(said, &["openapi"])?;
    if text.trim().is_empty() {
        origin.add_error(&["openapi"], "the document is neither a file nor an address".to_owned());
        return None;
    }
    if has_http_scheme(&text) {
        if !is_http_url(&text) {
            origin.add_error(
                &["openapi"],
                "this is no address that starts with http:// or https://".to_owned(),
            );
        }
        return Some(DocumentLocation::Url(text));
    }
    origin.path(said, &["openapi"]).map(DocumentLocation::File)
}

pub(crate) fn has_http_scheme(text: &str) -> bool {
    let start = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    start.is_some_and(|scheme| ["http", "https"].contains(&scheme.as_str()))
}

fn expand_url(said: Option<&str>, key: &str, origin: &mut ServerSection<'_>) -> Option<String> {
    let url = origin.expand(said?, &[key])?;
    if !is_http_url(&url) {
        origin.add_error(&[key], "this is no address that starts with http:// or https://".to_owned());
    }
    Some(url)
}

fn auth(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> ApiAuthSettings {
    let bearer = keys.bearer_token_env_var.as_deref().and_then(|variable| {
        let token = origin.variable(variable, &["bearer_token_env_var"])?;
        if token.is_empty() || !is_header_value(&token) {
            let message = format!("the environment variable {variable} holds no token");
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
            origin.add_error(&["auth", name, key], format!("{key} has a character that cannot be sent"));
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
        let message = "this is no address that starts with http:// or https://";
        origin.add_error(&["auth", name, "token_url"], message.to_owned());
    }
    let said = [keys.token.is_some(), keys.username.is_some(), keys.client_id.is_some()];
    if said.iter().filter(|said| **said).count() > 1 {
        return origin.refuse(
            &["auth", name],
            "there is more than one way to prove who we are",
            "keep one of `token`, `username` and `client_id`",
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
            "there is neither a `token`, nor a `username`, nor a `client_id` with its `client_secret`"
                .to_owned(),
        );
    }
    None
}

fn convert(keys: &ServerKeys) -> ConvertSettings {
    let (include, exclude) =
        (keys.include.clone().unwrap_or_default(), keys.exclude.clone().unwrap_or_default());
    let list = |said: Option<Vec<String>>| said.unwrap_or_default();
    let usual = Budgets::default();
    let said = keys.budgets.clone().unwrap_or_default();
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
            input_bytes: said.input_bytes.unwrap_or(usual.input_bytes),
            output_bytes: said.output_bytes.unwrap_or(usual.output_bytes),
            description_characters: said.description_characters.unwrap_or(usual.description_characters),
            heavy_bytes: said.heavy_bytes.unwrap_or(usual.heavy_bytes),
        },
        output_schemas: match keys.output_schemas {
            Some(OutputSchemasKey::Off) => OutputSchemaMode::Omit,
            Some(OutputSchemasKey::Lenient) => OutputSchemaMode::Lenient,
            Some(OutputSchemasKey::On) | None => OutputSchemaMode::Exact,
        },
    }
}

/// A name for a document that nobody named: that of its file, or of its host where the file is called as all are.
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
