//! Loads the document and, breadth first, the files that it refers to: from below its own folder,
//! or from the network if that is enabled. For files that cannot be loaded, the reason is stored
//! for the diagnostics of their references.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use url::Url;

use super::parse::{self, ParseContext, ParseRefusal};
use super::references::{FileLink, FileLinks, collect_references};
use super::{DocumentLocation, LoadError, LoadSettings, SpecFile};
use crate::operation::Diagnostic;

pub(super) struct FileSet {
    pub(super) parts: Vec<SpecFile>,
    pub(super) addresses: FileLinks,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) files: Vec<PathBuf>,
}

/// The address of one file, which its references are relative to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Address {
    File(PathBuf),
    Url(Url),
    InMemory,
}

pub(super) fn collect_files(
    location: &DocumentLocation,
    settings: &LoadSettings,
) -> Result<FileSet, LoadError> {
    let mut gatherer = FileCollector::open(location, settings)?;
    let mut at = 0;
    while at < gatherer.parts.len() {
        gatherer.load_references(at);
        at += 1;
    }
    let mut files: Vec<PathBuf> = gatherer
        .known
        .into_keys()
        .filter_map(|address| if let Address::File(path) = address { Some(path) } else { None })
        .collect();
    files.sort();
    Ok(FileSet {
        files,
        parts: gatherer.parts,
        addresses: gatherer.found,
        diagnostics: gatherer.reading.diagnostics,
    })
}

struct FileCollector<'a> {
    settings: &'a LoadSettings,
    /// Other files must be below this folder.
    folder: Option<PathBuf>,
    parts: Vec<SpecFile>,
    places: Vec<Address>,
    known: HashMap<Address, Result<usize, String>>,
    found: FileLinks,
    reading: ParseContext,
    bytes_left: usize,
}

impl<'a> FileCollector<'a> {
    fn open(location: &DocumentLocation, settings: &'a LoadSettings) -> Result<Self, LoadError> {
        let limits = settings.limits;
        let unreadable = |name: &str, reason: String| LoadError::Unreadable { name: name.to_owned(), reason };
        let (name, bytes, address, folder) = match location {
            DocumentLocation::Text { text, folder } => {
                let folder = folder.as_deref().and_then(|folder| folder.canonicalize().ok());
                let address = match &folder {
                    Some(folder) => Address::File(folder.join("document")),
                    None => Address::InMemory,
                };
                ("the document".to_owned(), text.clone().into_bytes(), address, folder)
            }
            DocumentLocation::File(path) => {
                let name = path.display().to_string();
                let bytes = read_file(path, limits.bytes).map_err(|error| match error {
                    FileReadError::TooLarge => {
                        LoadError::TooLarge { name: name.clone(), limit: limits.bytes }
                    }
                    FileReadError::Other(reason) => unreadable(&name, reason),
                })?;
                let path = path.canonicalize().map_err(|error| unreadable(&name, error.to_string()))?;
                let folder = path.parent().map(Path::to_path_buf);
                (name, bytes, Address::File(path), folder)
            }
            DocumentLocation::Url(url) => {
                let parsed = Url::parse(url).map_err(|error| unreadable(url, error.to_string()))?;
                let no_network = || unreadable(url, "network access is not available".to_owned());
                let fetch = settings.fetch.as_ref().ok_or_else(no_network)?;
                let bytes = fetch(url).map_err(|reason| unreadable(url, reason))?;
                (url.clone(), bytes, Address::Url(parsed), None)
            }
        };
        if bytes.len() > limits.bytes {
            return Err(LoadError::TooLarge { name, limit: limits.bytes });
        }
        let mut reading = ParseContext { depth: limits.depth, left: limits.values, diagnostics: Vec::new() };
        let value = parse::read(&bytes, &mut reading).map_err(|refusal| match refusal {
            ParseRefusal::TooManyValues => {
                LoadError::TooManyValues { name: name.clone(), limit: limits.values }
            }
            ParseRefusal::Syntax(reason) => LoadError::NotReadAsJsonOrYaml { name: name.clone(), reason },
        })?;
        parse::check(&name, &value, &mut reading)?;
        let known = HashMap::from([(address.clone(), Ok(0))]);
        Ok(Self {
            settings,
            folder,
            parts: vec![SpecFile { name: String::new(), value }],
            places: vec![address],
            known,
            found: FileLinks::default(),
            reading,
            bytes_left: limits.bytes - bytes.len(),
        })
    }

    /// Collects the references of one file and loads the files that they name.
    fn load_references(&mut self, at: usize) {
        let Some(part) = self.parts.get(at) else { return };
        let names = collect_references(at, &part.value, &mut self.found);
        for name in names {
            if self.found.is_id(&name) {
                continue;
            }
            let link = match self.load_cached(at, &name) {
                Ok(part) => FileLink::Part(part),
                Err(reason) => FileLink::Missing(reason),
            };
            self.found.link(at, name, link);
        }
    }

    fn load_cached(&mut self, from: usize, name: &str) -> Result<usize, String> {
        let address = self.resolve_address(from, name)?;
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let read = self.read(&address);
        self.known.insert(address, read.clone());
        read
    }

    fn resolve_address(&self, from: usize, name: &str) -> Result<Address, String> {
        let base = self.places.get(from).unwrap_or(&Address::InMemory);
        if let Ok(url) = Url::parse(name)
            && ["http", "https"].contains(&url.scheme())
        {
            return Ok(Address::Url(url));
        }
        match base {
            Address::Url(base) => match base.join(name) {
                Ok(url) if ["http", "https"].contains(&url.scheme()) => Ok(Address::Url(url)),
                Ok(url) => Err(format!("the URL scheme `{}` is not supported", url.scheme())),
                Err(error) => Err(error.to_string()),
            },
            Address::File(base) => {
                let folder = self.folder.as_deref().ok_or("references to other files are disabled")?;
                let decoded = super::references::percent_decode(name);
                let path = base.parent().unwrap_or(folder).join(decoded);
                // Symbolic links are resolved first: a link that leaves the folder is rejected.
                let path = path.canonicalize().map_err(|error| error.to_string())?;
                if !path.starts_with(folder) {
                    return Err("the file is outside the document's folder".to_owned());
                }
                Ok(Address::File(path))
            }
            Address::InMemory => Err("the document has no folder to read other files from".to_owned()),
        }
    }

    fn read(&mut self, address: &Address) -> Result<usize, String> {
        if self.parts.len() >= self.settings.limits.files {
            return Err(format!("the limit of {} files is exceeded", self.settings.limits.files));
        }
        let (name, bytes) = match address {
            Address::File(path) => {
                let bytes = read_file(path, self.bytes_left).map_err(|error| match error {
                    FileReadError::TooLarge => "the total size limit of all files is exceeded".to_owned(),
                    FileReadError::Other(reason) => reason,
                })?;
                let shown = self.folder.as_deref().and_then(|folder| path.strip_prefix(folder).ok());
                (shown.unwrap_or(path).display().to_string(), bytes)
            }
            Address::Url(url) if self.settings.follow_network_references => {
                let fetch = self.settings.fetch.as_ref().ok_or("network access is not available")?;
                (url.to_string(), fetch(url.as_str())?)
            }
            Address::Url(_) => return Err("network references are disabled".to_owned()),
            Address::InMemory => return Err("the document has no location".to_owned()),
        };
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes.len())
            .ok_or("the total size limit of all files is exceeded")?;
        let found = self.reading.diagnostics.len();
        let value = parse::read(&bytes, &mut self.reading).map_err(|refusal| match refusal {
            ParseRefusal::TooManyValues => "the limit for the number of values is exceeded".to_owned(),
            ParseRefusal::Syntax(reason) => reason,
        })?;
        for diagnostic in self.reading.diagnostics.iter_mut().skip(found) {
            diagnostic.pointer = format!("{name}#{}", diagnostic.pointer);
        }
        self.parts.push(SpecFile { name, value });
        self.places.push(address.clone());
        Ok(self.parts.len() - 1)
    }
}

enum FileReadError {
    TooLarge,
    Other(String),
}

/// Reads a file up to a size limit. The limit also bounds pipes and devices, which may be endless.
fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>, FileReadError> {
    use std::io::Read;
    let other = |error: std::io::Error| FileReadError::Other(error.to_string());
    let file = std::fs::File::open(path).map_err(other)?;
    let about = file.metadata().map_err(other)?;
    if about.is_dir() {
        return Err(FileReadError::Other("it is a directory".to_owned()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0).min(limit));
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(other)?;
    if bytes.len() > limit {
        return Err(FileReadError::TooLarge);
    }
    Ok(bytes)
}
