//! Server URLs and security requirements of operations.

use std::collections::BTreeMap;

use crate::document::{SpecNode, SpecObject};

use super::location::{SpecPath, resolve_object};
use super::schema::SchemaConverter;
use crate::operation::{
    ArgumentLocation, SecurityRequirement, SecurityScheme, SecuritySchemeKind, ServerUrl, ServerVariable,
};

fn text<'a>(value: &'a SpecObject, key: &str) -> &'a str {
    value.get(key).and_then(SpecNode::as_str).unwrap_or_default()
}

impl SchemaConverter<'_> {
    /// Returns the most specific list of servers. Swagger has only one.
    pub(super) fn servers(&mut self, owners: [(&SpecObject, &SpecPath<'_>); 3]) -> Vec<ServerUrl> {
        for (owner, at) in owners {
            let Some(servers) = owner.get("servers") else { continue };
            let location = at.key("servers");
            let SpecNode::Array(servers) = servers else {
                self.report.warn(&location, "wrong-type", "`servers` is not an array; ignored");
                continue;
            };
            let found: Vec<ServerUrl> = servers
                .iter()
                .enumerate()
                .filter_map(|(n, server)| self.read_server(server, &location.index(n)))
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        let [_, _, (root, _)] = owners;
        if root.contains_key("swagger") {
            return swagger_servers(root);
        }
        vec![fixed_server("/")]
    }

    fn read_server(&mut self, server: &SpecNode, at: &SpecPath<'_>) -> Option<ServerUrl> {
        let Some(template) = server.get("url").and_then(SpecNode::as_str) else {
            self.report.warn(at, "no-url", "a server has no `url`; ignored");
            return None;
        };
        let mut variables = BTreeMap::new();
        if let Some(SpecNode::Object(described)) = server.get("variables") {
            for (name, variable) in described.iter() {
                let allowed: Vec<String> = variable
                    .get("enum")
                    .and_then(SpecNode::as_array)
                    .into_iter()
                    .flatten()
                    .map(scalar_text)
                    .collect();
                let default = variable.get("default").map(scalar_text);
                let default = default.or_else(|| allowed.first().cloned()).unwrap_or_else(|| {
                    self.report.warn(
                        at,
                        "no-default",
                        format!("the variable `{name}` of a server has no default"),
                    );
                    String::new()
                });
                variables.insert(name.to_owned(), ServerVariable { default, allowed });
            }
        }
        for name in template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        {
            if !variables.contains_key(name) {
                self.report.warn(
                    at,
                    "no-default",
                    format!("the variable `{name}` of a server is not defined"),
                );
            }
        }
        Some(ServerUrl { template: template.trim().to_owned(), variables })
    }

    /// Returns the security requirements of an operation: its own list, else the document's.
    pub(super) fn security(
        &mut self,
        owners: [(&SpecObject, &SpecPath<'_>); 2],
        schemes: &[SecurityScheme],
    ) -> Vec<Vec<SecurityRequirement>> {
        for (owner, at) in owners {
            let Some(security) = owner.get("security") else { continue };
            let location = at.key("security");
            let SpecNode::Array(choices) = security else {
                self.report.warn(&location, "wrong-type", "`security` is not an array; ignored");
                continue;
            };
            let mut found = Vec::new();
            for (n, choice) in choices.iter().enumerate() {
                let SpecNode::Object(choice) = choice else {
                    self.report.warn(
                        &location.index(n),
                        "wrong-type",
                        "a security requirement is not an object; ignored",
                    );
                    continue;
                };
                let mut all = Vec::new();
                for (scheme, scopes) in choice.iter() {
                    if !schemes.iter().any(|known| known.name == *scheme) {
                        let message = format!("the security scheme `{scheme}` is not defined");
                        self.report.warn(&location.index(n), "unknown-scheme", message);
                    }
                    let scopes = scopes.as_array().into_iter().flatten().filter_map(SpecNode::as_str);
                    all.push(SecurityRequirement {
                        scheme: scheme.to_owned(),
                        scopes: scopes.map(str::to_owned).collect(),
                    });
                }
                found.push(all);
            }
            return found;
        }
        Vec::new()
    }

    /// Returns the security schemes of the document.
    pub(super) fn security_schemes(&mut self) -> Vec<SecurityScheme> {
        let document = self.document;
        let places = ["/securityDefinitions", "/components/securitySchemes"];
        let found =
            places.iter().find_map(|place| Some((*place, document.root().pointer(place)?.as_object()?)));
        let Some((place, described)) = found else { return Vec::new() };
        let location = SpecPath::new(0, place);
        let mut schemes = Vec::new();
        for (name, value) in described.iter() {
            let at = location.key(name);
            let Some(found) = resolve_object(document, &mut self.report, value, &at, "a security scheme")
            else {
                continue;
            };
            let kind = self.read_security_scheme(found.members, &at);
            schemes.push(SecurityScheme { name: name.to_owned(), kind });
        }
        schemes
    }

    fn read_security_scheme(&mut self, scheme: &SpecObject, at: &SpecPath<'_>) -> SecuritySchemeKind {
        match text(scheme, "type").to_ascii_lowercase().as_str() {
            "basic" => SecuritySchemeKind::Basic,
            "apikey" => {
                let place = match text(scheme, "in") {
                    "query" => ArgumentLocation::Query,
                    "cookie" => ArgumentLocation::Cookie,
                    "header" => ArgumentLocation::Header,
                    other => {
                        let message =
                            format!("the API key has the invalid location `{other}`; assuming a header");
                        self.report.warn(at, "no-place", message);
                        ArgumentLocation::Header
                    }
                };
                SecuritySchemeKind::ApiKey { place, wire_name: text(scheme, "name").to_owned() }
            }
            "http" => match text(scheme, "scheme").to_ascii_lowercase().as_str() {
                "basic" => SecuritySchemeKind::Basic,
                "bearer" => SecuritySchemeKind::Bearer,
                _ => SecuritySchemeKind::Http { scheme: text(scheme, "scheme").to_owned() },
            },
            "oauth2" => client_credentials(scheme).unwrap_or(SecuritySchemeKind::Token),
            "openidconnect" => SecuritySchemeKind::Token,
            other => {
                self.report.note(
                    at,
                    "unknown-scheme",
                    format!("the security scheme type `{other}` is not supported"),
                );
                SecuritySchemeKind::Other { kind: other.to_owned() }
            }
        }
    }
}

fn client_credentials(scheme: &SpecObject) -> Option<SecuritySchemeKind> {
    let flow = scheme.get("flows").and_then(|flows| flows.get("clientCredentials")?.as_object());
    let flow = flow.or_else(|| (text(scheme, "flow") == "application").then_some(scheme))?;
    let scopes = flow.get("scopes").and_then(SpecNode::as_object);
    let scopes = scopes.map(|scopes| scopes.keys().map(str::to_owned).collect()).unwrap_or_default();
    Some(SecuritySchemeKind::ClientCredentials { token_url: text(flow, "tokenUrl").to_owned(), scopes })
}

fn fixed_server(template: &str) -> ServerUrl {
    ServerUrl { template: template.to_owned(), variables: BTreeMap::new() }
}

/// Formats a scalar for use in a URL.
fn scalar_text(value: &SpecNode) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns one server for each scheme, https first.
fn swagger_servers(root: &SpecObject) -> Vec<ServerUrl> {
    let base = root.get("basePath").and_then(SpecNode::as_str).unwrap_or_default().trim_end_matches('/');
    let base = if base.is_empty() || base.starts_with('/') { base.to_owned() } else { format!("/{base}") };
    let Some(host) = root.get("host").and_then(SpecNode::as_str).filter(|host| !host.is_empty()) else {
        return vec![fixed_server(if base.is_empty() { "/" } else { &base })];
    };
    let host = host.trim_end_matches('/');
    let host = host.split_once("://").map_or(host, |(_, host)| host);
    let schemes =
        root.get("schemes").and_then(SpecNode::as_array).into_iter().flatten().filter_map(SpecNode::as_str);
    let mut schemes: Vec<&str> = schemes.filter(|scheme| ["http", "https"].contains(scheme)).collect();
    if schemes.is_empty() {
        schemes.push("https");
    }
    schemes.sort_by_key(|scheme| *scheme != "https");
    schemes.dedup();
    schemes.iter().map(|scheme| fixed_server(&format!("{scheme}://{host}{base}"))).collect()
}
