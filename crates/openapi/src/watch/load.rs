//! Loads the document from a file or a URL; a URL is requested conditionally. Parsing and
//! conversion run on a blocking thread.

use std::sync::Arc;

use http::header::{ETAG, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{RequestBuilder, Url};
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolyard_hub::{DefinitionBudget, SourceOffer};

use super::file_versions::FileVersions;
use super::offer::{allowed_hosts, build_offer, served_warnings};
use crate::clients::HttpClients;
use crate::convert::convert;
use crate::document::{DocumentLocation, FetchFn, LoadSettings, load};
use crate::fetch;
use crate::host_policy::{AllowedHosts, redact_url};
use crate::settings::{DocumentSettings, ReferencePolicy};
use crate::source::{DocumentVersion, OpenApiState};

/// State between two loads.
#[derive(Debug, Default)]
pub(super) struct DocumentLoader {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

pub(super) enum LoadOutcome {
    /// The document has not changed.
    Unchanged,
    New(Box<LoadedDocument>),
}

pub(super) struct LoadedDocument {
    pub(super) served: DocumentVersion,
    pub(super) offer: SourceOffer,
    pub(super) warnings: Vec<String>,
    pub(super) file_versions: FileVersions,
}

impl DocumentLoader {
    pub(super) async fn load(&mut self, inner: &Arc<OpenApiState>) -> Result<LoadOutcome, String> {
        let settings = &inner.settings;
        let named = allowed_hosts(settings);
        let bringing = async {
            let (location, main) = match &settings.location {
                DocumentLocation::Url(url) => {
                    let url = Url::parse(url).map_err(|_| "the URL of the document is invalid".to_owned())?;
                    match self.fetch_main(inner, &named, url).await? {
                        None => return Ok(LoadOutcome::Unchanged),
                        Some((url, bytes)) => (DocumentLocation::Url(url.to_string()), Some((url, bytes))),
                    }
                }
                other => (other.clone(), None),
            };
            let definitions = inner.definitions.clone();
            let http = inner.http.clone();
            let work = ConversionJob { settings: settings.clone(), named, location, main, http, definitions };
            let runtime = Handle::current();
            let done = tokio::task::spawn_blocking(move || work.convert(&runtime)).await;
            done.map_err(|_| "the document loader panicked".to_owned())?
                .map(|new| LoadOutcome::New(Box::new(new)))
        };
        let brought = timeout(settings.start_time, bringing).await;
        let brought = brought.unwrap_or_else(|_| {
            Err(format!("loading the document timed out after {:?}", settings.start_time))
        });
        if brought.is_err() {
            // A document that could not be used must be fetched again even if it has not changed.
            *self = Self::default();
        }
        brought
    }

    async fn fetch_main(
        &mut self,
        inner: &OpenApiState,
        named: &AllowedHosts,
        url: Url,
    ) -> Result<Option<(Url, Vec<u8>)>, String> {
        let settings = &inner.settings;
        let own = settings.base_url.as_deref().and_then(|base| Url::parse(base).ok());
        let dressed = |url: &Url, mut request: RequestBuilder| {
            // The headers for the API are also sent for the document if both have the same origin.
            if own.as_ref().is_some_and(|own| own.origin() == url.origin()) {
                for (name, value) in &settings.headers {
                    request = request.header(name, value.reveal());
                }
            }
            if inner.is_serving() {
                if let Some(etag) = &self.etag {
                    request = request.header(IF_NONE_MATCH, etag);
                }
                if let Some(modified) = &self.modified {
                    request = request.header(IF_MODIFIED_SINCE, modified);
                }
            }
            request
        };
        let (url, answer) = fetch::get_following_redirects(&inner.http, named, url, dressed).await?;
        let status = answer.status();
        if status.as_u16() == 304 {
            return Ok(None);
        }
        if !status.is_success() {
            return Err(format!("{} returned HTTP {}", redact_url(&url), status.as_u16()));
        }
        let (etag, modified) =
            (answer.headers().get(ETAG).cloned(), answer.headers().get(LAST_MODIFIED).cloned());
        let bytes = fetch::read_body(answer).await?;
        (self.etag, self.modified) = (etag, modified);
        Ok(Some((url, bytes)))
    }
}

/// The work for the blocking thread.
struct ConversionJob {
    settings: DocumentSettings,
    named: AllowedHosts,
    location: DocumentLocation,
    /// The document itself, if it was fetched from a URL.
    main: Option<(Url, Vec<u8>)>,
    http: HttpClients,
    definitions: DefinitionBudget,
}

impl ConversionJob {
    fn convert(self, runtime: &Handle) -> Result<LoadedDocument, String> {
        let Self { settings, named, location, main, http, definitions } = self;
        let network = settings.references == ReferencePolicy::Network;
        // File versions are recorded before the files are read, so that a change in between is
        // detected.
        let mut stamps = match &location {
            DocumentLocation::File(path) => FileVersions::read(std::slice::from_ref(path)),
            DocumentLocation::Url(_) | DocumentLocation::Text { .. } => FileVersions::default(),
        };
        let document_url = main.as_ref().map(|(url, _)| url.clone());
        let fetch = reference_fetcher(main, named.clone(), http, runtime.clone());
        let loading = LoadSettings {
            fetch: Some(fetch),
            follow_network_references: network,
            ..LoadSettings::default()
        };
        let document = load(&location, &loading).map_err(|error| error.to_string())?;
        if document.files().len() > 1 {
            let first = stamps.clone();
            stamps = FileVersions::read(document.files());
            stamps.restore_earlier(first);
        }
        let conversion = convert(&document, &settings.convert);
        let warnings = served_warnings(&conversion, &settings, document_url.as_ref(), &named);
        let mut reserved = definitions.reserve();
        for operation in &conversion.operations {
            reserved.grow(operation.definition.get().len()).map_err(|over| format!("it {over}"))?;
        }
        let offer =
            SourceOffer { reserved: Some(reserved), ..build_offer(&conversion.operations, &settings) };
        let operations =
            conversion.operations.into_iter().map(|operation| (operation.name.clone(), operation));
        let served = DocumentVersion {
            operations: operations.collect(),
            schemes: conversion.schemes,
            document: document_url,
            named,
        };
        Ok(LoadedDocument { served, offer, warnings, file_versions: stamps })
    }
}

/// Returns a function that fetches the files that the document refers to. The document itself is
/// already in memory.
fn reference_fetcher(
    main: Option<(Url, Vec<u8>)>,
    named: AllowedHosts,
    http: HttpClients,
    runtime: Handle,
) -> Arc<FetchFn> {
    let others = fetch::blocking_fetcher(named, http, runtime);
    Arc::new(move |address: &str| match &main {
        Some((url, bytes)) if url.as_str() == address => Ok(bytes.clone()),
        _ => others(address),
    })
}
