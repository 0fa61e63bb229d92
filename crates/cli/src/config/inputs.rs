//! What the command line names: configuration files, and documents that need none.

use std::path::PathBuf;

use toolyard_hub::SourceName;
use toolyard_openapi::{DocumentLocation, DocumentSettings};

use super::openapi::{document_name, has_http_scheme};
use super::{Config, Environment, ServerEntry, load_or_report};

/// What to serve, as the command line has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigInputs {
    pub(crate) files: Vec<PathBuf>,
    /// OpenAPI documents, files or addresses.
    pub(crate) documents: Vec<String>,
    /// Where the operations of these documents are, whatever they say.
    pub(crate) base_url: Option<String>,
    /// Only this server of all that.
    pub(crate) only: Option<String>,
}

impl ConfigInputs {
    pub(crate) fn from_files(files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::default() }
    }

    /// Reads all of it; nothing if it cannot be used, and the person who started us has been told why.
    pub(crate) fn load(&self) -> Option<Config> {
        // Whoever names a document and no configuration wants the document and nothing else.
        let mut config = match (self.files.is_empty(), self.documents.is_empty()) {
            (true, false) => Config::default(),
            _ => load_or_report(&self.files)?,
        };
        let folder = Environment::from_process();
        for document in &self.documents {
            let location = match has_http_scheme(document) {
                true => DocumentLocation::Url(document.clone()),
                false => DocumentLocation::File(folder.resolve(document, folder.folder())),
            };
            let name = free_name(&config, &document_name(document));
            let settings =
                DocumentSettings { base_url: self.base_url.clone(), ..DocumentSettings::new(name, location) };
            config.servers.push(ServerEntry::Document(Box::new(settings)));
        }
        if let Some(only) = &self.only {
            config.keep_only(only);
        }
        Some(config)
    }
}

fn free_name(config: &Config, wanted: &str) -> SourceName {
    let taken = |name: &str| config.servers.iter().any(|entry| entry.name().as_str() == name);
    let names =
        std::iter::once(wanted.to_owned()).chain((2_u32..).map(|number| format!("{wanted}-{number}")));
    let free = names.into_iter().find(|name| !(taken(name) || name == "demo" && config.demo));
    SourceName::new(free.unwrap_or_else(|| wanted.to_owned()))
}
