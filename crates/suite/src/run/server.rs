//! From the server of a test file to the settings of a connection.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use toolyard_hub::{Secret, SourceName, nearest};
use toolyard_upstream::{
    CommandSettings, CredentialPolicy, Era, ServerSettings, TransportSettings, UrlKind, UrlSettings,
};

use crate::expect::check::resolve;
use crate::file::{ServerSpec, TestFile};
use crate::values::Variables;

/// A server to connect to.
#[derive(Debug, Clone)]
pub(crate) struct ServerUnderTest {
    pub(crate) settings: ServerSettings,
    pub(crate) credentials: CredentialPolicy,
}

/// The time limits of single requests. Steps have limits of their own.
const UNLIMITED: Duration = Duration::from_secs(24 * 3600);

/// Returns the settings for the server of a file. `replacement` is a server of the command line.
pub(crate) fn server_of(
    file: &TestFile,
    replacement: Option<&ServerSettings>,
    configured: &BTreeMap<String, ServerSettings>,
    variables: &Variables,
    folder: &Path,
) -> Result<ServerUnderTest, String> {
    let (settings, credentials) = match (replacement, &file.server) {
        (Some(settings), _) => (settings.clone(), CredentialPolicy::Granted),
        (None, Some(ServerSpec::Configured(name))) => {
            let name = complete(variables, name)?;
            let settings = configured.get(&name).ok_or_else(|| unknown_server(&name, configured))?;
            (settings.clone(), CredentialPolicy::Granted)
        }
        (None, Some(spec)) => {
            let transport = transport(spec, variables, folder)?;
            (ServerSettings::new(SourceName::new("server"), transport), CredentialPolicy::ConfiguredOnly)
        }
        (None, None) => {
            return Err("the file names no server: add `server`, or pass one on the command line".to_owned());
        }
    };
    let start_timeout = file.start_timeout.unwrap_or(settings.start_timeout);
    let settings = ServerSettings { start_timeout, call_timeout: UNLIMITED, era: None, ..settings };
    Ok(ServerUnderTest { settings, credentials })
}

impl ServerUnderTest {
    pub(crate) fn in_era(&self, era: Option<Era>) -> Self {
        let settings = ServerSettings { era, ..self.settings.clone() };
        Self { settings, credentials: self.credentials }
    }
}

fn unknown_server(name: &str, configured: &BTreeMap<String, ServerSettings>) -> String {
    let names = || configured.keys().map(String::as_str);
    let hint = match nearest(name, names()) {
        Some(close) => format!("did you mean `{close}`?"),
        None if configured.is_empty() => "no servers are configured".to_owned(),
        None => format!("configured servers: {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("unknown server `{name}`; {hint}")
}

fn complete(variables: &Variables, text: &str) -> Result<String, String> {
    variables.complete_text(text).map_err(|error| error.to_string())
}

fn transport(spec: &ServerSpec, variables: &Variables, folder: &Path) -> Result<TransportSettings, String> {
    let secrets = |pairs: &[(String, String)]| -> Result<BTreeMap<String, Secret>, String> {
        pairs
            .iter()
            .map(|(name, value)| Ok((name.clone(), Secret::new(complete(variables, value)?))))
            .collect()
    };
    match spec {
        ServerSpec::Command { program, args, env, cwd, inherit } => {
            let program = complete(variables, program)?;
            // Like a shell: a name without a slash is looked up in PATH.
            let program = match program.contains('/') {
                true => resolve(folder, &program).to_string_lossy().into_owned(),
                false => program,
            };
            let args = args.iter().map(|arg| complete(variables, arg)).collect::<Result<_, _>>()?;
            let cwd = match cwd {
                Some(cwd) => resolve(folder, &complete(variables, cwd)?),
                None => folder.to_owned(),
            };
            let command =
                CommandSettings { program, args, env: secrets(env)?, cwd: Some(cwd), inherit: *inherit };
            Ok(TransportSettings::Command(command))
        }
        ServerSpec::Url { url, headers, sse } => {
            let url = complete(variables, url)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("`{url}` is not an http:// or https:// URL"));
            }
            let kind = if *sse { UrlKind::LegacySse } else { UrlKind::Any };
            Ok(TransportSettings::Url(UrlSettings { url, headers: secrets(headers)?, kind }))
        }
        ServerSpec::Configured(name) => Err(format!("unknown server `{name}`")),
    }
}
