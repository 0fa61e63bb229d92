//! What the servers of a command offer, for the commands about definitions.

use tokio_util::sync::CancellationToken;
use toolyard_definitions::{OfferProfile, ServerOffer};
use toolyard_hub::{Source, SourceName, SourceState, YardScope};
use toolyard_upstream::{ServerListKind, TransportSettings};

use super::{
    CommandError, OneShotOptions, OneShotYard, ServerSelection, ServerSelectionArgs, UnavailableServer,
};

/// Shorter values are not masked: they occur in ordinary text.
const SHORTEST_SECRET: usize = 6;

/// Starts the servers, reads what they offer, and stops them. All of them must be available.
pub(crate) async fn collect_offers(
    which: &ServerSelectionArgs,
    stop: &CancellationToken,
) -> Result<Vec<ServerOffer>, CommandError> {
    let wish = OneShotOptions::new(ServerSelection::All, &ServerListKind::ALL);
    let visit = OneShotYard::open(which, wish, stop).await?;
    visit.unavailable.iter().for_each(UnavailableServer::report_error);
    let failure = visit.unavailable.first().map(UnavailableServer::exit);
    let offers = visit.offers();
    visit.close().await;
    match failure {
        Some(exit) => Err(CommandError::AlreadyReported(exit)),
        None => Ok(offers),
    }
}

impl OneShotYard {
    /// Returns the offers of all servers that are ready. Credentials that the servers were started
    /// with are masked.
    pub(crate) fn offers(&self) -> Vec<ServerOffer> {
        let secrets = self.server_secrets();
        let ready = self.sources().filter(|source| source.status().state == SourceState::Ready);
        let offers = ready.map(|source| {
            let name = source.name();
            let profile = self.upstreams().find(|upstream| upstream.name() == name);
            let profile = profile.and_then(|upstream| upstream.profile()).map(|profile| OfferProfile {
                info: profile.info,
                capabilities: Some(profile.capabilities),
                instructions: profile.instructions,
            });
            ServerOffer::from_source(name.as_str(), &source.offer(), profile.unwrap_or_default())
        });
        offers.chain(self.demo_offer()).map(|offer| offer.masked(&secrets)).collect()
    }

    /// The demo tools are part of the yard itself.
    fn demo_offer(&self) -> Option<ServerOffer> {
        let name = SourceName::new("demo");
        if !self.yard.has_source(&name) || self.sources().any(|source| *source.name() == name) {
            return None;
        }
        let view = self.yard.view(&self.principal).with_scope(YardScope::Source(name.clone()));
        Some(ServerOffer {
            name: name.to_string(),
            profile: Some(OfferProfile::default()),
            tools: Some(view.tools().map(|tool| tool.definition.clone()).collect()),
            prompts: Some(view.prompts().map(|prompt| prompt.definition.clone()).collect()),
            resources: Some(view.resources().map(|resource| resource.definition.clone()).collect()),
            templates: Some(view.templates().map(|template| template.definition.clone()).collect()),
        })
    }

    /// The values of headers and environment variables that carry credentials, each with the text
    /// that replaces it.
    fn server_secrets(&self) -> Vec<(String, String)> {
        let mut secrets = Vec::new();
        for upstream in self.upstreams() {
            let (entries, kind) = match &upstream.settings().transport {
                TransportSettings::Command(command) => (&command.env, "variable"),
                TransportSettings::Url(url) => (&url.headers, "header"),
            };
            for (name, value) in entries.iter().filter(|(name, _)| toolyard_config::carries_credentials(name))
            {
                let label = format!("[{kind} {name}]");
                // Without the scheme, such as `Bearer`.
                let value = value.reveal();
                let token = value.rsplit(' ').next().unwrap_or_default();
                for text in [value, token].into_iter().filter(|text| text.len() >= SHORTEST_SECRET) {
                    secrets.push((text.to_owned(), label.clone()));
                }
            }
        }
        secrets
    }
}
