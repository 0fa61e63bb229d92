//! `read_resource`

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::json;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{ErrorKind, HubError, Raw, Schema, SourceTarget, UriTemplate, nearest};
use toolyard_suite::SavedRequest;
use toolyard_upstream::ServerListKind;

use super::{ToolInvocation, connection_answer, parse_result_object};
use crate::answer::{AnswerMetadata, TesterAnswer, now};
use crate::connection::{ConnectionCounts, TesterConnection};
use crate::definitions::{TesterTool, contract_violations};
use crate::error::TesterError;
use crate::rules;
use crate::tool_schemas::read_list;

/// The contract's schema for the resource in an answer.
static RESOURCE: LazyLock<Schema> =
    LazyLock::new(|| TesterTool::ReadResource.output_schema_part(&["properties", "resource"]));

/// Some servers omit the padding, and some leave trailing bits set.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

#[derive(Deserialize)]
struct Arguments {
    uri: String,
}

impl ToolInvocation<'_> {
    pub(super) async fn read_resource(&self) -> Result<TesterAnswer, TesterError> {
        let Arguments { uri } = self.parse_arguments()?;
        let connection = self.connection()?;
        let call = self.build_call(SourceTarget::Resource { uri: uri.clone() });
        let work = async {
            let result = connection.link.call(&call).await.result;
            connection.saved_calls.add(SavedRequest::Read { uri: uri.clone() }, &result);
            result
        };
        let outcome = match self.run_on_connection(&connection, work).await {
            Ok(outcome) => outcome,
            Err(fault) if fault.error.source_error().is_some() => {
                return Err(self.classify_read_error(&connection, &uri, fault).await);
            }
            Err(fault) => return Err(fault),
        };
        let result = parse_result_object(&connection, "resources/read", &outcome.body)?;
        connection.record_violations(&rules::check_resource(&result));
        ConnectionCounts::increment(&connection.counts.resources_read);
        let mut metadata = AnswerMetadata::default().with("retrieved_at", now());
        let (resource, size) = resource(&uri, &result);
        if let Some(size) = size {
            metadata = metadata.with("content_size", size);
        } else {
            metadata.add_note("the server's result has no readable contents");
        }
        let violations = contract_violations(&RESOURCE, &resource);
        let answer = match violations.first() {
            None => connection_answer(&connection).with("resource", resource),
            // The server's result is included unmodified, but not where the contract requires
            // something else.
            Some(first) => {
                metadata.add_note(format!("the server's result is malformed: {}", first.message()));
                let bare = to_raw(&json!({"uri": uri}));
                connection_answer(&connection).with("resource", bare).with("malformed", outcome.body)
            }
        };
        Ok(answer.with_metadata(metadata))
    }

    /// Classifies an error. Servers use many codes for unknown resources, so their lists decide
    /// whether a resource exists.
    async fn classify_read_error(
        &self,
        connection: &Arc<TesterConnection>,
        uri: &str,
        fault: TesterError,
    ) -> TesterError {
        if fault.error.kind() == ErrorKind::UnknownResource {
            let known = self
                .run_on_connection(connection, fetch_advertised_resources(connection))
                .await
                .unwrap_or_default();
            return TesterError { error: unknown_resource_error(&fault.error, uri, &known), ..fault };
        }
        match self.run_on_connection(connection, fetch_advertised_resources(connection)).await {
            Ok(known) if !known.has(uri) => {
                TesterError { error: unknown_resource_error(&fault.error, uri, &known), ..fault }
            }
            // The resource exists, or this cannot be determined. The error is then about something
            // else.
            Ok(_) | Err(_) => fault.with_kind(ErrorKind::ToolFailed),
        }
    }
}

/// The resources that the server advertises.
#[derive(Default)]
struct AdvertisedResources {
    uris: Vec<String>,
    templates: Vec<UriTemplate>,
}

impl AdvertisedResources {
    fn has(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known == uri)
            || self.templates.iter().any(|template| template.extract_values(uri).is_some())
    }
}

async fn fetch_advertised_resources(connection: &TesterConnection) -> Result<AdvertisedResources, HubError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Definition {
        uri: Option<String>,
        uri_template: Option<String>,
    }
    let read = |item: &Raw| serde_json::from_str::<Definition>(item.get()).ok();
    let (resources, _) = read_list(&connection.link, ServerListKind::Resources).await?;
    let (templates, _) = read_list(&connection.link, ServerListKind::Templates).await?;
    Ok(AdvertisedResources {
        uris: resources.items.iter().filter_map(|item| read(item)?.uri).collect(),
        templates: templates
            .items
            .iter()
            .filter_map(|item| Some(UriTemplate::parse(&read(item)?.uri_template?)))
            .collect(),
    })
}

fn unknown_resource_error(error: &HubError, uri: &str, known: &AdvertisedResources) -> HubError {
    let message = format!("the server has no resource {uri:?}: {}", error.message());
    let mut details = error.details().cloned().unwrap_or_else(|| json!({}));
    details["requested"] = uri.into();
    let error = HubError::new(ErrorKind::UnknownResource, message).with_details(details);
    match nearest(uri, known.uris.iter().map(String::as_str)) {
        Some(close) => error.with_suggestion(format!("did you mean `{close}`?")),
        None => error.with_suggestion("call list_resources to see the available resources"),
    }
}

/// Returns the resource in the form of the contract, and the size of its content in bytes if it has
/// any.
fn resource(uri: &str, result: &Object) -> (Raw, Option<usize>) {
    let contents: Option<Vec<Raw>> =
        result.get("contents").and_then(|contents| serde_json::from_str(contents.get()).ok());
    let first = contents.as_ref().and_then(|contents| Object::parse(contents.first()?).ok());
    let mut resource = Object::default();
    let own = |key: &str| first.as_ref().and_then(|first| first.get(key)).map(ToOwned::to_owned);
    resource.set("uri", own("uri").unwrap_or_else(|| to_raw(uri)));
    if let Some(kind) = own("mimeType") {
        resource.set("mimeType", kind);
    }
    let text = |raw: &Raw| serde_json::from_str::<String>(raw.get()).ok();
    let mut size = None;
    if let Some(content) = own("text") {
        size = text(&content).map(|text| text.len());
        resource.set("content", content);
    } else if let Some(content) = own("blob") {
        size = text(&content).and_then(|blob| Some(LENIENT.decode(blob).ok()?.len()));
        resource.set("content", content);
    }
    for (key, value) in result.members() {
        // Everything else from the server, unmodified.
        if !resource.contains(key) {
            resource.set(key, value.to_owned());
        }
    }
    (resource.to_raw(), size)
}
