//! Determines which files are loaded, in which order, and which values take precedence. See
//! docs/reference/configuration.md for the rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toolyard_cluster::ClusterSettings;
use toolyard_history::{AuditDestination, HistoryDestination};
use toolyard_hooks::HookSettings;
use toolyard_hub::{Redaction, ResultCheck, ResultChecks};
use toolyard_program::ProgramSource;

use super::Config;
use super::access::{self, Access};
use super::cluster;
use super::connections::validate_proxies;
use super::document::{ConfigDocument, Syntax};
use super::environment::Environment;
use super::expand::{SecretNames, VariableExpander};
use super::files::ConfigFileReader;
use super::format::{self, ConfigFormat};
use super::hook;
use super::keys::ConfigKeys;
use super::limits::{BoundKeys, SettingProblem};
use super::problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
use super::records::{self, AuditPlan, HistoryPlan, RecordPlan};
use super::server::{ServerEntry, build_entry};
use super::server_section::ServerSection;
use super::tree::decode::{DecodeReport, decode};
use super::tree::{ConfigKey, ConfigNode, Span};

pub const FILE: &str = "toolyard.toml";

/// Loads the named files, or the default file, or else configures the demo yard. Errors of a single
/// server are part of the configuration. Errors of a file or of a top-level key fail the whole
/// load.
pub(super) fn load(named: &[PathBuf], around: &Environment) -> Result<Config, ConfigProblems> {
    load_from(ConfigFileReader::default(), named, around)
}

/// Loads with a given file reader, which need not read from disk.
pub(super) fn load_from(
    files: ConfigFileReader,
    named: &[PathBuf],
    around: &Environment,
) -> Result<Config, ConfigProblems> {
    let mut loading = ConfigLoader { files, ..ConfigLoader::new(around) };
    let paths = if named.is_empty() { default_paths(around) } else { named.to_vec() };
    if paths.is_empty() {
        loading.keys.demo = Some(true);
    }
    for path in &paths {
        loading.load_file(path);
    }
    loading.finish()
}

/// `./toolyard.toml`, or else the one in the user's configuration directory, or else none.
fn default_paths(around: &Environment) -> Vec<PathBuf> {
    let users = around.config_home().map(|folder| folder.join("toolyard").join(FILE));
    let known = [Some(PathBuf::from(FILE)), users];
    known.into_iter().flatten().find(|path| around.folder().join(path).is_file()).into_iter().collect()
}

/// Loads only the servers of a file of any format.
pub fn load_servers_from(path: &Path, around: &Environment) -> Result<Config, ConfigProblems> {
    let mut loading = ConfigLoader::new(around);
    loading.import(path);
    loading.finish()
}

/// Returns the file that is loaded by default, if it exists.
pub fn default_config_file(around: &Environment) -> Option<PathBuf> {
    default_paths(around).pop().map(|path| around.folder().join(path))
}

struct ConfigLoader<'a> {
    environment: &'a Environment,
    files: ConfigFileReader,
    keys: ConfigKeys,
    access: Access,
    hooks: Vec<HookSettings>,
    cluster: Option<ClusterSettings>,
    /// Whether there is a database for records, valid or not.
    has_database: bool,
    audit: Option<RecordPlan<AuditPlan>>,
    redaction: Redaction,
    history: Option<RecordPlan<HistoryPlan>>,
    problems: Vec<ConfigProblem>,
    servers: Vec<Candidate>,
    secrets: SecretNames,
}

/// A server, until a file with higher precedence defines one of the same name.
struct Candidate {
    /// The name in its file.
    key: String,
    /// Where the name is written.
    location: (Rc<ConfigDocument>, Span),
    entry: ServerEntry,
    limits: Option<BoundKeys>,
    check_results: Option<ResultCheck>,
    warnings: Vec<ConfigProblem>,
}

/// A parsed file.
struct ParsedFile {
    document: Rc<ConfigDocument>,
    root: ConfigNode,
    syntax: Syntax,
}

impl<'a> ConfigLoader<'a> {
    fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            files: ConfigFileReader::default(),
            keys: ConfigKeys::default(),
            access: Access::default(),
            hooks: Vec::new(),
            cluster: None,
            has_database: false,
            audit: None,
            redaction: Redaction::default(),
            history: None,
            problems: Vec::new(),
            servers: Vec::new(),
            secrets: SecretNames::default(),
        }
    }

    fn load_file(&mut self, path: &Path) {
        let Some(read) = self.read(path, ProblemSeverity::Error) else { return };
        match format::detect_format(read.syntax, &read.root) {
            Some(ConfigFormat::Toolyard) => self.load_toolyard(path, &read),
            Some(form) => self.load_servers(form, &read),
            None => {
                let message = "the file contains no servers: expected the key `mcpServers` or `servers`";
                self.problems.push(ConfigProblem::for_file(ProblemSeverity::Error, path.to_owned(), message));
            }
        }
    }

    fn read(&mut self, path: &Path, if_absent: ProblemSeverity) -> Option<ParsedFile> {
        let text = match self.files.read(&self.environment.folder().join(path)) {
            Ok(text) => text,
            Err(error) => {
                let absent = error.kind() == std::io::ErrorKind::NotFound;
                let severity = if absent { if_absent } else { ProblemSeverity::Error };
                let message = format!("cannot read the file: {error}");
                self.problems.push(ConfigProblem::for_file(severity, path.to_owned(), message));
                return None;
            }
        };
        let syntax = format::detect_syntax(path, &text);
        match ConfigDocument::parse(path, &text, syntax) {
            Ok((document, root)) => Some(ParsedFile { document: Rc::new(document), root, syntax }),
            Err(mut problems) => {
                self.problems.append(&mut problems);
                None
            }
        }
    }

    fn load_toolyard(&mut self, path: &Path, read: &ParsedFile) {
        let apart: Vec<&ConfigNode> = read.root.get("servers").into_iter().collect();
        let (keys, findings) = decode::<ConfigKeys>(&read.root, &apart);
        let mut keys = keys.unwrap_or_default();
        let folder = format::project_folder(path, self.environment.folder());
        self.problems.extend(findings.errors.iter().map(|fault| read.document.decode_problem(fault)));
        self.problems.extend(unknown(&read.document, &findings));
        let mut nonsense = keys.limits.validate();
        nonsense.extend(keys.programs.validate());
        nonsense.extend(keys.lint.validate());
        nonsense.extend(keys.connections.validate());
        nonsense.extend(validate_proxies(keys.trusted_proxies.as_deref().unwrap_or_default()));
        keys.programs.resolve(self.environment, &folder);
        if let Some(tokens) = keys.tokens.take() {
            self.access.tokens = access::build_tokens(tokens, &mut nonsense);
        }
        if let Some(jwt) = keys.jwt.take() {
            let read = |file: &str| {
                let path = self.environment.resolve(file, &folder);
                self.files.read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
            };
            self.access.jwt = access::build_jwt(jwt, read, &mut nonsense);
        }
        if let Some(hooks) = keys.hooks.take() {
            let (around, inputs) = (self.environment, BTreeMap::new());
            let (rule, secrets) = (ConfigFormat::Toolyard.rule(), &self.secrets);
            let references =
                VariableExpander { environment: around, folder: &folder, inputs: &inputs, rule, secrets };
            self.hooks = hook::build_hooks(hooks, &references, &mut nonsense);
        }
        if let Some(cluster) = keys.cluster.take() {
            let (around, inputs) = (self.environment, BTreeMap::new());
            let (rule, secrets) = (ConfigFormat::Toolyard.rule(), &self.secrets);
            let references =
                VariableExpander { environment: around, folder: &folder, inputs: &inputs, rule, secrets };
            self.has_database = cluster.has_database();
            self.cluster = cluster::build_cluster(cluster, &references, &mut nonsense);
        }
        let problem_at = |place: &[&str], severity, message: &str| {
            let node = place.iter().try_fold(&read.root, |node, step| node.child(step));
            read.document.problem(severity, &node.unwrap_or(&read.root).span, message)
        };
        if let Some(audit) = keys.audit.take() {
            self.redaction = audit.redaction();
            let plan = records::plan_audit(audit, self.environment, &folder, &mut nonsense, problem_at);
            self.audit = Some(plan);
        }
        if let Some(history) = keys.history.take() {
            self.history =
                records::plan_history(history, self.environment, &folder, &mut nonsense, problem_at);
        }
        for SettingProblem { severity, path: place, message: why, suggestion } in nonsense {
            let node = place.iter().try_fold(&read.root, |node, step| node.child(step));
            // A missing value was left out because it is invalid, and is already reported.
            if node.is_none() && !findings.errors.is_empty() {
                continue;
            }
            let node = node.unwrap_or(&read.root);
            let message = format!("`{}` {why}", place.join("."));
            let problem = read.document.problem(severity, &node.span, message);
            self.problems.push(problem.with_suggestion(suggestion.map(str::to_owned)));
        }
        for import in keys.imports.iter().flatten() {
            self.import(&self.environment.resolve(import, &folder));
        }
        self.keys = keys.with_fallback(std::mem::take(&mut self.keys));
        self.load_servers(ConfigFormat::Toolyard, read);
    }

    /// Loads only the servers of a file. A missing file is only a warning.
    fn import(&mut self, path: &Path) {
        let Some(read) = self.read(path, ProblemSeverity::Warning) else { return };
        if let Some(form) = format::detect_format(read.syntax, &read.root) {
            self.load_servers(form, &read);
        }
    }

    fn load_servers(&mut self, form: ConfigFormat, read: &ParsedFile) {
        let inputs = form.inputs(&read.root);
        let folder = format::project_folder(&read.document.path, self.environment.folder());
        let (around, rule, secrets) = (self.environment, form.rule(), &self.secrets);
        let references =
            VariableExpander { environment: around, folder: &folder, inputs: &inputs, rule, secrets };
        for table in form.tables(&read.root, self.environment.folder()) {
            if !table.is_table() {
                let message = "expected a table of servers by name";
                self.problems.push(read.document.problem(ProblemSeverity::Error, &table.span, message));
            }
            for (key, node) in table.entries() {
                let candidate = candidate(form, &read.document, (key, node), &references, &self.files);
                match self.servers.iter_mut().find(|earlier| earlier.key == key.name) {
                    Some(earlier) => *earlier = candidate,
                    None => self.servers.push(candidate),
                }
            }
        }
    }

    fn finish(mut self) -> Result<Config, ConfigProblems> {
        self.report_duplicate_names();
        let (audit, history) = self.resolve_records();
        let fatal = self.problems.iter().any(|problem| problem.severity == ProblemSeverity::Error);
        let mut problems = self.problems;
        for server in &self.servers {
            problems.extend(server.warnings.iter().cloned());
            if let ServerEntry::Broken(broken) = &server.entry
                && broken.enabled
            {
                problems.extend(broken.problems.iter().cloned());
            }
        }
        sort_by_location(&mut problems);
        if fatal {
            return Err(ConfigProblems(problems));
        }
        Ok(Config {
            listen: self.keys.listen.map(|listen| listen.0),
            auth: self.keys.auth,
            hosts: self.keys.hosts.unwrap_or_default(),
            origins: self.keys.origins.unwrap_or_default(),
            connections: self
                .keys
                .connections
                .limits(self.keys.trusted_proxies.as_deref().unwrap_or_default()),
            permissions: self.keys.permissions,
            demo: self.keys.demo.unwrap_or(false),
            access: self.access,
            hooks: self.hooks,
            cluster: self.cluster,
            audit,
            redaction: self.redaction,
            history,
            results: ResultChecks {
                default: self.keys.check_results.map(Into::into).unwrap_or_default(),
                sources: self
                    .servers
                    .iter()
                    .filter_map(|server| Some((server.entry.name().clone(), server.check_results?)))
                    .collect(),
            },
            bounds: self
                .servers
                .iter()
                .filter_map(|server| {
                    Some((server.entry.name().clone(), server.limits.as_ref()?.scoped_limits()))
                })
                .collect(),
            limits: self.keys.limits,
            lint: self.keys.lint,
            tester: self.keys.tester,
            programs: self.keys.programs,
            servers: self.servers.into_iter().map(|server| server.entry).collect(),
            problems,
            secret_variables: self.secrets.into_names(),
            digest: self.files.digest(),
            files: self.files.into_snapshots(),
        })
    }

    /// Decides where records are stored, now that all files have been read.
    fn resolve_records(&mut self) -> (Option<AuditDestination>, Option<HistoryDestination>) {
        let database = self.cluster.as_ref().and_then(|cluster| cluster.postgres.clone());
        if self.has_database && database.is_none() {
            // What is wrong with the database has been reported.
            return (None, None);
        }
        let (database, problems) = (database.as_ref(), &mut self.problems);
        let audit = self.audit.take().and_then(|plan| plan.resolve(database, problems));
        let history = self.history.take().and_then(|plan| plan.resolve(database, problems));
        (audit, history)
    }

    /// Reports sources with the same name, which clients could not tell apart.
    fn report_duplicate_names(&mut self) {
        let mut taken: Vec<&str> = Vec::new();
        if self.keys.demo == Some(true) {
            taken.push("demo");
        }
        if self.keys.programs.is_enabled() {
            taken.push(ProgramSource::NAME);
        }
        for server in &self.servers {
            let name = server.entry.name().as_str();
            if taken.contains(&name) {
                let message = format!("the name `{name}` is already used by another source");
                let suggestion = Some("set `alias` to rename one of them".to_owned());
                let (document, span) = &server.location;
                let problem =
                    document.problem(ProblemSeverity::Error, span, message).with_server(&server.key);
                self.problems.push(problem.with_suggestion(suggestion));
            }
            taken.push(name);
        }
    }
}

fn candidate(
    form: ConfigFormat,
    document: &Rc<ConfigDocument>,
    (key, node): (&ConfigKey, &ConfigNode),
    references: &VariableExpander<'_>,
    files: &ConfigFileReader,
) -> Candidate {
    let (mut keys, findings) = form.decode_server(node);
    let errors =
        findings.errors.iter().map(|fault| document.decode_problem(fault).with_server(&key.name)).collect();
    let mut origin = ServerSection { document, key, node, references, files, errors, warnings: Vec::new() };
    let limits = keys.limits.take();
    for SettingProblem { path: place, message: why, .. } in
        limits.iter().flat_map(|limits| limits.validate(&["limits"]))
    {
        let steps: Vec<&str> = place.iter().map(String::as_str).collect();
        origin.add_error(&steps, format!("`{}` {why}", place.join(".")));
    }
    let check_results = keys.check_results.map(Into::into);
    let entry = build_entry(keys, &mut origin);
    let unknown = unknown(document, &findings).map(|problem| problem.with_server(&key.name));
    Candidate {
        key: key.name.clone(),
        location: (Rc::clone(document), key.span.clone()),
        check_results,
        entry,
        limits,
        warnings: unknown.chain(origin.warnings).collect(),
    }
}

fn unknown<'a>(
    document: &'a ConfigDocument,
    findings: &'a DecodeReport,
) -> impl Iterator<Item = ConfigProblem> + 'a {
    findings.unknown.iter().map(|unknown| {
        let message = format!("unknown key `{}`", unknown.key.name);
        document
            .problem(ProblemSeverity::Warning, &unknown.key.span, message)
            .with_suggestion(unknown.suggestion.clone())
    })
}

/// Sorts by position in the file. Files keep the order in which they were loaded.
fn sort_by_location(problems: &mut [ConfigProblem]) {
    let mut files: Vec<Option<PathBuf>> = Vec::new();
    for problem in problems.iter() {
        if !files.contains(&problem.file) {
            files.push(problem.file.clone());
        }
    }
    problems.sort_by_cached_key(|problem| {
        let file = files.iter().position(|file| *file == problem.file);
        (file, problem.location.as_ref().map(|place| (place.line, place.column)))
    });
}
