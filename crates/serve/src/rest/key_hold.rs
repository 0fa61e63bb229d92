//! Idempotency keys of requests: in this process, or shared by several replicas. A shared key is
//! claimed in the store before the call; requests that find it in use wait for the stored outcome.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolyard_hub::{
    ClaimedKey, ErrorKind, HubError, KeyRequest, SharedKeyState, SharedKeys, StoreUnavailable,
};

use super::RestFront;
use super::errors::RestError;
use super::execute_request::ExecuteRequest;
use super::executions::Execution;
use super::idempotency::{IdempotencyClaim, IdempotencyKey, IdempotencyStore};
use super::stored_execution::{load, save};

/// How long a request waits before it asks again for the outcome of a running call. Doubled up to
/// the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// When a client should retry while the shared store is away.
const RETRY: Duration = Duration::from_secs(1);

/// An idempotency key that belongs to one execution.
#[derive(Debug)]
pub(super) enum KeyHold {
    /// A key of this process.
    Local(Arc<IdempotencyKey>),
    /// A key that replicas share.
    Shared(Box<dyn ClaimedKey>),
}

/// What a request with an idempotency key does.
#[derive(Debug)]
pub(super) enum KeyOutcome {
    /// It makes the call.
    Claimed(KeyHold),
    /// It returns the outcome of this execution.
    Replay(Arc<Execution>),
}

impl KeyHold {
    /// Claims the key for the execution, or finds the one that it belongs to.
    pub(super) async fn claim(
        rest: &RestFront,
        key: Arc<IdempotencyKey>,
        order: &ExecuteRequest,
        execution: &Arc<Execution>,
    ) -> Result<KeyOutcome, RestError> {
        if let Some(shared) = rest.yard.shared_keys() {
            let longest = rest.yard.limits().call_time;
            let time = order.context.timeout.map_or(longest, |timeout| timeout.min(longest));
            return claim_shared(&**shared, &key, order.params.get(), execution, time).await;
        }
        match rest.keys.claim(&key, order.params.get(), execution) {
            IdempotencyClaim::First => Ok(KeyOutcome::Claimed(Self::Local(key))),
            IdempotencyClaim::Replay(first) => Ok(KeyOutcome::Replay(first)),
            IdempotencyClaim::Different => Err(different()),
            IdempotencyClaim::Evicted => Err(evicted()),
            IdempotencyClaim::Full => Err(full()),
        }
    }

    /// Releases the key, because nothing was called.
    pub(super) fn release(self, keys: &IdempotencyStore) {
        match self {
            Self::Local(key) => keys.release(&key),
            Self::Shared(key) => key.release(),
        }
    }

    /// Keeps the outcome of the execution for other requests with the key.
    pub(super) fn retain_outcome(self, keys: &IdempotencyStore, execution: &Execution) {
        let Some(ending) = execution.outcome() else { return };
        match self {
            Self::Local(key) => keys.retain_outcome(&key, ending.bytes()),
            Self::Shared(key) => key.finish(save(execution, ending)),
        }
    }
}

/// Claims a shared key. If its call is running, waits for the outcome, at most this long.
async fn claim_shared(
    shared: &dyn SharedKeys,
    key: &IdempotencyKey,
    params: &str,
    execution: &Execution,
    longest: Duration,
) -> Result<KeyOutcome, RestError> {
    let (deadline, mut pause, mut has_seen_call) = (Instant::now() + longest, FIRST_PAUSE, false);
    loop {
        let request = KeyRequest {
            principal: &key.principal,
            tool: &key.tool,
            key: &key.key,
            params,
            execution: &execution.info.id,
        };
        match shared.claim(request).await {
            Ok(SharedKeyState::Claimed(key)) => return Ok(KeyOutcome::Claimed(KeyHold::Shared(key))),
            Ok(SharedKeyState::Finished(outcome)) => {
                // An outcome of another version may not be readable.
                let execution = load(&outcome, &execution.info).ok_or_else(evicted)?;
                return Ok(KeyOutcome::Replay(Arc::new(execution)));
            }
            Ok(SharedKeyState::Running) => has_seen_call = true,
            Ok(SharedKeyState::Evicted) => return Err(evicted()),
            Ok(SharedKeyState::Unknown) => return Err(unknown()),
            Ok(SharedKeyState::Different) => return Err(different()),
            Ok(SharedKeyState::Full) => return Err(full()),
            // The call goes on, and its outcome can be read when the store is back.
            Err(_) if has_seen_call => {}
            Err(error) => return Err(store_unavailable(&error)),
        }
        if Instant::now() >= deadline {
            let message = "the call with this idempotency key is still running";
            let error = HubError::new(ErrorKind::TimedOut, message)
                .with_suggestion("repeat the request with the same key to wait for the outcome");
            return Err(RestError::from_hub_error(&error, ""));
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

fn different() -> RestError {
    RestError::key_conflict("was already used with different params")
}

fn evicted() -> RestError {
    RestError::key_conflict("was already used, and the outcome is no longer stored")
}

fn unknown() -> RestError {
    RestError::key_conflict(
        "was already used, and the outcome is unknown because the replica that made the call has stopped",
    )
}

fn full() -> RestError {
    RestError::too_many_requests("too many idempotency keys are in use")
}

fn store_unavailable(error: &StoreUnavailable) -> RestError {
    let message = format!("cannot check the idempotency key: {error}");
    let error = HubError::new(ErrorKind::NotConnected, message)
        .with_suggestion("retry later with the same key: nothing was called")
        .with_retry_after(RETRY);
    RestError::from_hub_error(&error, "")
}

#[cfg(test)]
mod tests;
