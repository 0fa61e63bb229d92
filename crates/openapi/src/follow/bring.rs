//! Brings the document here: from a file, or from an address, which is only asked whether there is a newer one. Reading
//! and converting take place on a thread that nobody waits for.

use std::sync::Arc;

use http::header::{ACCEPT, ETAG, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION};
use reqwest::Url;
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolyard_hub::Offer;

use super::offer::{named, offer, served_warnings};
use super::stamp::Stamps;
use crate::address::{Named, shown};
use crate::clients::{Http, reason};
use crate::convert::convert;
use crate::document::{Fetch, Limits, LoadSettings, Location, load};
use crate::settings::{DocumentSettings, References};
use crate::source::{Inner, Served};

const MOST_REDIRECTS: usize = 5;

/// What is remembered from one time to the next.
#[derive(Debug, Default)]
pub(super) struct Bringing {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

pub(super) enum Brought {
    /// It is what it was.
    Same,
    New(Box<New>),
}

pub(super) struct New {
    pub(super) served: Served,
    pub(super) offer: Offer,
    pub(super) warnings: Vec<String>,
    pub(super) stamps: Stamps,
}

impl Bringing {
    pub(super) async fn bring(&mut self, inner: &Arc<Inner>) -> Result<Brought, String> {
        let settings = &inner.settings;
        let named = named(settings);
        let bringing = async {
            let (location, main) = match &settings.location {
                Location::Url(url) => {
                    let url = Url::parse(url).map_err(|_| "its address is none".to_owned())?;
                    match self.fetch_main(inner, &named, url).await? {
                        None => return Ok(Brought::Same),
                        Some((url, bytes)) => (Location::Url(url.to_string()), Some((url, bytes))),
                    }
                }
                other => (other.clone(), None),
            };
            let work = Work { settings: settings.clone(), named, location, main, http: inner.http.clone() };
            let runtime = Handle::current();
            let done = tokio::task::spawn_blocking(move || work.convert(&runtime)).await;
            done.map_err(|_| "reading it crashed".to_owned())?.map(|new| Brought::New(Box::new(new)))
        };
        let brought = timeout(settings.start_time, bringing).await;
        let brought =
            brought.unwrap_or_else(|_| Err(format!("it did not come within {:?}", settings.start_time)));
        if brought.is_err() {
            // Whatever could not be used must be sent again, also if it has not changed.
            *self = Self::default();
        }
        brought
    }

    async fn fetch_main(
        &mut self,
        inner: &Inner,
        named: &Named,
        url: Url,
    ) -> Result<Option<(Url, Vec<u8>)>, String> {
        let settings = &inner.settings;
        let own = settings.base_url.as_deref().and_then(|base| Url::parse(base).ok());
        let mut url = url;
        for _ in 0..=MOST_REDIRECTS {
            let reach = named.reach(&url).map_err(|error| error.to_string())?;
            let mut request = inner.http.client(reach).get(url.clone()).header(ACCEPT, DOCUMENTS);
            // What is for the API is for the document too where both are the same server.
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
            let answer =
                request.send().await.map_err(|error| format!("{}: {}", shown(&url), reason(&error)))?;
            let status = answer.status();
            if status.as_u16() == 304 {
                return Ok(None);
            }
            if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
                && let Some(location) = answer.headers().get(LOCATION)
            {
                let target = location.to_str().ok().and_then(|location| url.join(location).ok());
                url = target.ok_or_else(|| format!("{} leads to no address", shown(&url)))?;
                continue;
            }
            if !status.is_success() {
                return Err(format!("{} answered {}", shown(&url), status.as_u16()));
            }
            let (etag, modified) =
                (answer.headers().get(ETAG).cloned(), answer.headers().get(LAST_MODIFIED).cloned());
            let bytes = read(answer, Limits::default().bytes).await?;
            (self.etag, self.modified) = (etag, modified);
            return Ok(Some((url, bytes)));
        }
        Err(format!("{} led elsewhere more than {MOST_REDIRECTS} times", shown(&url)))
    }
}

const DOCUMENTS: &str = "application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5";

async fn read(mut answer: reqwest::Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| reason(&error))? {
        if bytes.len() + piece.len() > most {
            return Err(format!("it is larger than the {most} bytes that are allowed"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// What the thread needs.
struct Work {
    settings: DocumentSettings,
    named: Named,
    location: Location,
    /// The document itself, where it came from an address.
    main: Option<(Url, Vec<u8>)>,
    http: Http,
}

impl Work {
    fn convert(self, runtime: &Handle) -> Result<New, String> {
        let Self { settings, named, location, main, http } = self;
        let network = settings.references == References::Network;
        // Files are looked at before they are read: a change in between is then seen as one, never missed.
        let mut stamps = match &location {
            Location::File(path) => Stamps::of(std::slice::from_ref(path)),
            Location::Url(_) | Location::Text { .. } => Stamps::default(),
        };
        let document_url = main.as_ref().map(|(url, _)| url.clone());
        let fetch = others(main, named.clone(), http, runtime.clone());
        let loading = LoadSettings {
            fetch: Some(fetch),
            follow_network_references: network,
            ..LoadSettings::default()
        };
        let document = load(&location, &loading).map_err(|error| error.to_string())?;
        if document.files().len() > 1 {
            let first = stamps.clone();
            stamps = Stamps::of(document.files());
            stamps.keep(first);
        }
        let conversion = convert(&document, &settings.convert);
        let warnings = served_warnings(&conversion, &settings, document_url.as_ref(), &named);
        let offer = offer(&conversion.operations, &settings);
        let operations =
            conversion.operations.into_iter().map(|operation| (operation.name.clone(), operation));
        let served = Served {
            operations: operations.collect(),
            schemes: conversion.schemes,
            document: document_url,
            named,
        };
        Ok(New { served, offer, warnings, stamps })
    }
}

/// What brings the document itself, which is here already, and what else it refers to.
fn others(main: Option<(Url, Vec<u8>)>, named: Named, http: Http, runtime: Handle) -> Arc<Fetch> {
    Arc::new(move |address: &str| {
        if let Some((url, bytes)) = &main
            && url.as_str() == address
        {
            return Ok(bytes.clone());
        }
        let url = Url::parse(address).map_err(|_| "it is no address".to_owned())?;
        let reach = named.reach(&url).map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let answer = http.client(reach).get(url.clone()).header(ACCEPT, DOCUMENTS).send().await;
            let answer = answer.map_err(|error| reason(&error))?;
            if !answer.status().is_success() {
                return Err(format!("{} answered {}", shown(&url), answer.status().as_u16()));
            }
            read(answer, Limits::default().bytes).await
        })
    })
}
