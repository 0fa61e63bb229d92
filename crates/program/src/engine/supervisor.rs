//! Keeps one sandbox running: starts it on first use, attacks it before trusting it, and starts a
//! new one when it exits.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::session::{self, StopConditions};
use super::zygote::{Zygote, has_layer};
use super::{AttackReport, EngineSettings, SandboxInfo, SandboxLayer, attacks};
use crate::program::{PendingProgramQuestion, Program, ProgramOutcome, SandboxUnavailable};

type ZygoteStart = Shared<BoxFuture<'static, Result<Arc<Zygote>, SandboxUnavailable>>>;

#[derive(Debug)]
pub(super) struct SandboxSupervisor {
    settings: Arc<EngineSettings>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest start, in progress or completed.
    started: Option<ZygoteStart>,
    trust: Trust,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Trust {
    /// Not attacked yet.
    #[default]
    Unknown,
    Proven,
    /// An attack succeeded. This is final.
    Off(SandboxUnavailable),
}

impl SandboxSupervisor {
    pub(super) fn new(settings: EngineSettings) -> Self {
        Self { settings: Arc::new(settings), state: Arc::default() }
    }

    pub(super) async fn ready(&self) -> Result<SandboxInfo, SandboxUnavailable> {
        let zygote = self.verified_zygote().await?;
        Ok(SandboxInfo {
            python_version: zygote.version.clone(),
            modules: zygote.modules.clone(),
            missing: zygote.missing.clone(),
        })
    }

    pub(super) async fn run(
        &self,
        program: Program,
        questions: mpsc::Sender<PendingProgramQuestion>,
        cancel: CancellationToken,
    ) -> Result<ProgramOutcome, SandboxUnavailable> {
        let mut zygote = self.verified_zygote().await?;
        let worker = match session::start_worker(&zygote, &program.limits).await {
            // The zygote exited, and this is the first use to notice.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                zygote.gone.cancel();
                zygote = self.verified_zygote().await?;
                session::start_worker(&zygote, &program.limits).await
            }
            worker => worker,
        };
        let worker = worker.map_err(|error| session::unavailable(&error))?;
        let stops = StopConditions { time: Some(program.limits.time), cancel };
        session::run(&zygote, worker, program, questions, stops).await
    }

    pub(super) async fn run_attacks(&self) -> Result<Vec<AttackReport>, SandboxUnavailable> {
        let zygote = self.zygote().await?;
        Ok(attacks::run_all(&zygote, wall_clock_limit(&self.settings)).await)
    }

    pub(super) async fn run_attack(&self, name: &str) -> Result<AttackReport, SandboxUnavailable> {
        let zygote = self.zygote().await?;
        let unknown = || SandboxUnavailable { reason: format!("unknown attack {name:?}"), suggestion: None };
        attacks::run_one(&zygote, wall_clock_limit(&self.settings), name).await.ok_or_else(unknown)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        let started = lock(&self.state).started.clone();
        started.as_ref().and_then(Shared::peek)?.as_ref().ok().map(|zygote| zygote.pid)
    }

    pub(super) async fn stop(&self) {
        let started = lock(&self.state).started.take();
        if let Some(Ok(zygote)) = started.as_ref().and_then(Shared::peek) {
            zygote.shutdown().await;
        }
    }

    /// Returns a sandbox that withstood all attacks.
    async fn verified_zygote(&self) -> Result<Arc<Zygote>, SandboxUnavailable> {
        let zygote = self.zygote().await?;
        let trust = lock(&self.state).trust.clone();
        match trust {
            Trust::Proven => return Ok(zygote),
            Trust::Off(unavailable) => return Err(unavailable),
            Trust::Unknown => {}
        }
        let reports = attacks::run_all(&zygote, wall_clock_limit(&self.settings)).await;
        let Some(unavailable) = attacks::verdict(&reports) else {
            lock(&self.state).trust = Trust::Proven;
            return Ok(zygote);
        };
        tracing::error!(reason = %unavailable.reason, "programs are disabled");
        // An inconclusive attack may succeed or fail clearly next time, on a less busy machine.
        if attacks::has_escape(&reports) {
            lock(&self.state).trust = Trust::Off(unavailable.clone());
        }
        zygote.shutdown().await;
        Err(unavailable)
    }

    /// Returns the running sandbox, or starts a new one.
    async fn zygote(&self) -> Result<Arc<Zygote>, SandboxUnavailable> {
        let starting = {
            let mut state = lock(&self.state);
            if let Trust::Off(unavailable) = &state.trust {
                return Err(unavailable.clone());
            }
            let usable = state.started.as_ref().filter(|started| match started.peek() {
                None => true,
                Some(Ok(zygote)) => !zygote.gone.is_cancelled(),
                Some(Err(_)) => false,
            });
            match usable {
                Some(started) => started.clone(),
                None => {
                    let starting = start_zygote(Arc::clone(&self.settings));
                    state.started = Some(starting.clone());
                    starting
                }
            }
        };
        starting.await
    }
}

impl Drop for SandboxSupervisor {
    fn drop(&mut self) {
        if let Some(Ok(zygote)) = lock(&self.state).started.as_ref().and_then(Shared::peek) {
            zygote.request_stop();
        }
    }
}

/// Starts a sandbox in a separate task, so that the start continues if the first waiting future is
/// dropped.
fn start_zygote(settings: Arc<EngineSettings>) -> ZygoteStart {
    let task = tokio::spawn(async move { Zygote::start(&settings).await });
    let result = async move {
        task.await.unwrap_or_else(|error| {
            Err(SandboxUnavailable {
                reason: format!("failed to start the sandbox: {error}"),
                suggestion: None,
            })
        })
    };
    result.boxed().shared()
}

fn wall_clock_limit(settings: &EngineSettings) -> attacks::WallClockLimit {
    if has_layer(settings, SandboxLayer::WallClock) {
        attacks::WallClockLimit::Wall
    } else {
        attacks::WallClockLimit::None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
