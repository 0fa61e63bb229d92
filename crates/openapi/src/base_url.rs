//! The base URL of an operation: the configured one, else the first usable server URL of the
//! document.

use std::collections::BTreeMap;

use reqwest::Url;

use crate::operation::{Operation, ServerUrl};
use crate::settings::DocumentSettings;

/// The suggestion for a document without a usable server URL.
pub(crate) const SAY_WHERE: &str = "set `base_url` for this server, or pass `--base-url`";
/// The suggestion for a server URL that needs the operator's permission.
pub(crate) const NAME_IT: &str =
    "if you trust this host, add it to `allow_hosts` of this server, set `base_url`, or pass `--base-url`";

/// Why an operation has no base URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BaseUrlError {
    #[error("`base_url` is not a valid URL")]
    BaseUrl,
    #[error("the document has no usable server URL")]
    NoAddress,
    #[error("the variable `{0}` of the document's server URL has no value")]
    Variable(String),
    #[error("the variable `{0}` of the document's server URL must be one of {1}")]
    NotAllowed(String, String),
}

/// Returns the URL that the operation's path is relative to.
pub(crate) fn resolve_base_url(
    operation: &Operation,
    settings: &DocumentSettings,
    document: Option<&Url>,
) -> Result<Url, BaseUrlError> {
    if let Some(base_url) = &settings.base_url {
        return Url::parse(base_url).map_err(|_| BaseUrlError::BaseUrl);
    }
    let mut first = None;
    for server in &operation.servers {
        match resolve_server_url(server, &settings.variables, document) {
            Ok(url) => return Ok(url),
            Err(why) => drop(first.get_or_insert(why)),
        }
    }
    Err(first.unwrap_or(BaseUrlError::NoAddress))
}

fn resolve_server_url(
    server: &ServerUrl,
    values: &BTreeMap<String, String>,
    document: Option<&Url>,
) -> Result<Url, BaseUrlError> {
    let text = expand_template(server, values)?;
    let url = match document {
        Some(document) => document.join(text.trim()),
        None => Url::parse(text.trim()),
    };
    url.ok().filter(|url| !url.cannot_be_a_base()).ok_or(BaseUrlError::NoAddress)
}

fn expand_template(server: &ServerUrl, values: &BTreeMap<String, String>) -> Result<String, BaseUrlError> {
    let mut text = String::with_capacity(server.template.len());
    let mut rest = server.template.as_str();
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 1..start + length];
        let known = server.variables.get(name);
        let value = match (values.get(name), known) {
            (Some(value), Some(known)) if !known.allowed.is_empty() && !known.allowed.contains(value) => {
                return Err(BaseUrlError::NotAllowed(name.to_owned(), known.allowed.join(", ")));
            }
            (Some(value), _) => value,
            (None, Some(known)) => &known.default,
            (None, None) => return Err(BaseUrlError::Variable(name.to_owned())),
        };
        text.push_str(&rest[..start]);
        text.push_str(value);
        rest = &rest[start + length + 1..];
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reqwest::Url;
    use toolyard_hub::SourceName;

    use super::{BaseUrlError, resolve_base_url};
    use crate::document::DocumentLocation;
    use crate::operation::{Method, Operation, ServerUrl, ServerVariable};
    use crate::request::fixtures::operation;
    use crate::settings::DocumentSettings;

    fn settings() -> DocumentSettings {
        DocumentSettings::new(SourceName::new("a"), DocumentLocation::File("a.yaml".into()))
    }

    fn at(templates: &[&str]) -> Operation {
        let variable =
            ServerVariable { default: "eu".to_owned(), allowed: vec!["eu".to_owned(), "us".to_owned()] };
        let free = ServerVariable { default: "443".to_owned(), allowed: Vec::new() };
        let variables = BTreeMap::from([("region".to_owned(), variable), ("port".to_owned(), free)]);
        let server =
            |template: &&str| ServerUrl { template: (*template).to_owned(), variables: variables.clone() };
        Operation { servers: templates.iter().map(server).collect(), ..operation(Method::Get, "/a") }
    }

    fn resolved(
        templates: &[&str],
        settings: &DocumentSettings,
        document: Option<&str>,
    ) -> Result<String, BaseUrlError> {
        let document = document.map(|document| Url::parse(document).unwrap());
        resolve_base_url(&at(templates), settings, document.as_ref()).map(|url| url.to_string())
    }

    #[test]
    fn variables_are_what_the_configuration_says_else_their_default() {
        let template = ["https://{region}.example.com:{port}/v1"];
        assert_eq!(resolved(&template, &settings(), None).unwrap(), "https://eu.example.com/v1");
        let with_variables = |pairs: &[(&str, &str)]| DocumentSettings {
            variables: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..settings()
        };
        let us = with_variables(&[("region", "us"), ("port", "8443"), ("other", "x")]);
        assert_eq!(resolved(&template, &us, None).unwrap(), "https://us.example.com:8443/v1");
        let wrong = resolved(&template, &with_variables(&[("region", "mars")]), None).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the variable `region` of the document's server URL must be one of eu, us"
        );
        assert_eq!(
            resolved(&["https://{who}.example.com"], &settings(), None),
            Err(BaseUrlError::Variable("who".to_owned()))
        );
    }

    #[test]
    fn a_relative_address_is_seen_from_the_document() {
        let document = Some("https://docs.example.com/api/openapi.yaml?x=1");
        for (template, expected) in [
            ("/", "https://docs.example.com/"),
            ("/v2", "https://docs.example.com/v2"),
            ("../v2/", "https://docs.example.com/v2/"),
            ("v2", "https://docs.example.com/api/v2"),
            ("//other.example.com/x", "https://other.example.com/x"),
            ("http://a.example/ ", "http://a.example/"),
        ] {
            assert_eq!(resolved(&[template], &settings(), document).unwrap(), expected, "{template}");
        }
    }

    #[test]
    fn the_first_address_that_is_one_is_taken() {
        assert_eq!(
            resolved(&["/v1", "https://a.example/v1", "https://b.example"], &settings(), None).unwrap(),
            "https://a.example/v1"
        );
        assert_eq!(resolved(&["/v1"], &settings(), None), Err(BaseUrlError::NoAddress));
        assert_eq!(resolved(&[], &settings(), None), Err(BaseUrlError::NoAddress));
        assert_eq!(resolved(&["mailto:a@b.c"], &settings(), None), Err(BaseUrlError::NoAddress));
        let overridden = DocumentSettings { base_url: Some("http://localhost:1/x".to_owned()), ..settings() };
        assert_eq!(
            resolved(&["https://a.example"], &overridden, Some("https://d.example")).unwrap(),
            "http://localhost:1/x"
        );
    }
}
