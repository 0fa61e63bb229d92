//! The connection, fixtures and variables that the tests of a file share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toolyard_hub::{ClientCapabilities, HubError};
use toolyard_upstream::Era;

use super::answers::capabilities;
use super::case::{StepContext, StepsOutcome, run_steps};
use super::fixtures::FixtureCopy;
use super::server::{ServerUnderTest, server_of};
use super::session::{SessionOpener, TestSession};
use super::{FileRun, TEST_TIMEOUT};
use crate::expect::check::FileRoot;
use crate::expect::{AssertionFailure, check::resolve};
use crate::values::Variables;

/// A server that tests can use.
pub(crate) struct OpenServer<'a> {
    pub(crate) session: TestSession,
    pub(crate) opener: SessionOpener<'a>,
    /// The variables of the file, with what its setup captured.
    pub(crate) variables: Variables,
    fixtures: FixtureCopy,
}

/// Why a server cannot be used.
#[derive(Debug, Clone)]
pub(crate) enum ServerFailure {
    /// The server does not have the era. Its tests are skipped.
    MissingEra(String),
    /// It cannot be started, or the setup failed.
    Failed { failures: Vec<SetupFailure>, stderr: Vec<String> },
}

/// A failure before the first test.
#[derive(Debug, Clone)]
pub(crate) enum SetupFailure {
    /// It has no position of its own.
    Server(String),
    Step(AssertionFailure),
}

impl ServerFailure {
    fn new(reason: impl Into<String>) -> Self {
        Self::Failed { failures: vec![SetupFailure::Server(reason.into())], stderr: Vec::new() }
    }
}

/// Starts the server and runs the setup of the file.
pub(crate) async fn open_server<'a>(run: &'a FileRun<'a>) -> Result<OpenServer<'a>, ServerFailure> {
    let file = run.file;
    let mut variables = Variables::new(run.options.environment.clone());
    let path = |path: &Path| Value::String(path.to_string_lossy().into_owned());
    variables.set("FOLDER", path(&run.folder));
    variables.extend(&file.vars);
    let mut fixtures: Vec<PathBuf> = Vec::new();
    for fixture in &file.fixtures {
        let fixture = variables.complete_text(&fixture.to_string_lossy());
        let fixture = fixture.map_err(|error| ServerFailure::new(format!("`fixtures`: {error}")))?;
        fixtures.push(resolve(&run.folder, &fixture));
    }
    let temporary = run.options.temporary.clone();
    // Copying can take a while, and other files must not wait for it.
    let copying = tokio::task::spawn_blocking(move || FixtureCopy::create(&temporary, &fixtures));
    let fixtures = match copying.await {
        Ok(Ok(fixtures)) => fixtures,
        Ok(Err(error)) => return Err(ServerFailure::new(format!("cannot copy the fixtures: {error}"))),
        Err(error) => return Err(ServerFailure::new(format!("cannot copy the fixtures: {error}"))),
    };
    variables.set("FIXTURES", path(fixtures.folder()));
    let options = run.options;
    let server = server_of(file, options.server.as_ref(), &options.configured, &variables, &run.folder)
        .map_err(ServerFailure::new)?;
    let answers = file.tests.iter().filter_map(|test| test.answers.as_ref()).chain([&file.answers]);
    let declared = file.capabilities.clone();
    let capabilities = declared.unwrap_or_else(|| capabilities(answers, file.log_level));
    let (session, server) = connect(run, server, &capabilities).await?;
    let opener = SessionOpener { server, common: run.common, capabilities, canary: None };
    variables.set("era", session.era().as_str());
    let mut open = OpenServer { session, opener, variables, fixtures };
    if file.setup.is_empty() {
        return Ok(open);
    }
    let outcome = open.run_hooks(run, Hook::Setup).await;
    if outcome.failures.is_empty() {
        return Ok(open);
    }
    open.session.close().await;
    let failures = outcome.failures.into_iter().map(SetupFailure::Step).collect();
    Err(ServerFailure::Failed { failures, stderr: outcome.stderr })
}

/// Connects in the era of the run.
async fn connect(
    run: &FileRun<'_>,
    server: ServerUnderTest,
    capabilities: &ClientCapabilities,
) -> Result<(TestSession, ServerUnderTest), ServerFailure> {
    let opener = |era| SessionOpener {
        server: server.in_era(era),
        common: run.common,
        capabilities: capabilities.clone(),
        canary: None,
    };
    let wanted = opener(run.era);
    let missing =
        |era: Era| ServerFailure::MissingEra(format!("the server does not have the {} era", era.as_str()));
    match (Box::pin(wanted.open()).await, run.era) {
        (Ok(mut session), Some(era)) if session.era() != era => {
            session.close().await;
            Err(missing(era))
        }
        (Ok(session), _) => Ok((session, wanted.server)),
        // Either the server has only the modern era, or it cannot be used at all.
        (Err(error), Some(Era::Legacy)) => match Box::pin(opener(None).open()).await {
            Ok(mut session) => {
                let is_modern = session.era() == Era::Modern;
                session.close().await;
                Err(if is_modern { missing(Era::Legacy) } else { connect_failure(&error) })
            }
            Err(_) => Err(connect_failure(&error)),
        },
        (Err(error), _) => Err(connect_failure(&error)),
    }
}

fn connect_failure(error: &HubError) -> ServerFailure {
    let stderr = error.details().and_then(|details| details.get("stderr")?.as_array());
    let lines = stderr.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let suggestion = error.suggestion().map(|suggestion| format!("; {suggestion}")).unwrap_or_default();
    let message = format!("cannot connect to the server: {}{suggestion}", error.message());
    ServerFailure::Failed { failures: vec![SetupFailure::Server(message)], stderr: lines }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    Setup,
    Teardown,
}

impl OpenServer<'_> {
    pub(crate) fn file_root(&self) -> FileRoot {
        FileRoot { folder: self.fixtures.folder().to_owned() }
    }

    /// Runs the setup or the teardown of the file.
    pub(crate) async fn run_hooks(&mut self, run: &FileRun<'_>, hook: Hook) -> StepsOutcome {
        let (steps, name) = match hook {
            Hook::Setup => (&run.file.setup, "setup"),
            Hook::Teardown => (&run.file.teardown, "teardown"),
        };
        let context = StepContext {
            test_name: name,
            step_count: steps.len(),
            root: self.file_root(),
            redactors: run.file.redact.iter().collect(),
            ..run.step_context()
        };
        let limit: Duration = run.file.timeout.unwrap_or(TEST_TIMEOUT);
        let (session, variables) = (&mut self.session, &mut self.variables);
        let running = run_steps(steps, session, &self.opener, &run.file.answers, variables, &context, limit);
        Box::pin(running).await
    }

    /// Ends the connection, after the teardown if the connection can still be used.
    pub(crate) async fn close(mut self, run: &FileRun<'_>, ending: ConnectionEnding) -> StepsOutcome {
        let outcome = match ending {
            ConnectionEnding::Orderly if !run.file.teardown.is_empty() => {
                self.run_hooks(run, Hook::Teardown).await
            }
            ConnectionEnding::Orderly | ConnectionEnding::Broken => StepsOutcome::default(),
        };
        self.session.close().await;
        outcome
    }
}

/// Whether a connection can still be used when it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnding {
    Orderly,
    Broken,
}
