//! Parked calls, which wait for an answer of a modern client. The client holds a sealed
//! `requestState` that identifies its call and the replica that holds it. It is valid once, for one
//! principal, one request and a limited time.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Principal, QuotaCharge, ReplicaId};
use toolyard_seal::{Purpose, SealingKeys};
use toolyard_wire::{InboundRequest, RawJson, RpcError, code};

use super::active_call::{McpCall, method};
use super::params;
use super::response::ensure_modern_fields;

/// All parked calls.
pub(super) struct ParkedCalls {
    parked: Mutex<HashMap<String, ParkedCall>>,
    keys: SealingKeys,
    most: usize,
    time: Duration,
}

/// A parked call, when it expires, and the quota charge of its principal.
struct ParkedCall {
    until: Instant,
    call: McpCall,
    _charge: QuotaCharge,
}

/// The content of a request state. All of it is checked when the client sends it back.
#[derive(Serialize, Deserialize)]
struct RequestState {
    /// ID of the call.
    c: String,
    /// Expiry in seconds since 1970.
    x: u64,
    /// Digest of the principal.
    p: String,
    /// Digest of the request.
    r: String,
    /// The replica that holds the call, in a yard with several.
    h: Option<String>,
}

/// Returns the replica that holds the call of a request state. Whether the state is valid is checked
/// there.
pub(crate) fn parked_at(keys: &SealingKeys, state: &str) -> Option<ReplicaId> {
    Some(ReplicaId::new(&RequestState::open(keys, state)?.h?))
}

impl RequestState {
    fn open(keys: &SealingKeys, text: &str) -> Option<Self> {
        serde_json::from_slice(&keys.open(Purpose::RequestState, text)?).ok()
    }
}

/// The request that a parked call belongs to.
pub(super) struct ParkedRequest<'a> {
    pub(super) principal: &'a Principal,
    pub(super) digest: String,
    /// The replica that holds the call.
    pub(super) home: Option<ReplicaId>,
}

impl ParkedCalls {
    pub(super) fn new(most: usize, time: Duration, keys: SealingKeys) -> Self {
        Self { parked: Mutex::default(), keys, most, time }
    }

    /// Returns the number of parked calls.
    pub(super) fn len(&self) -> usize {
        self.parked.lock().len()
    }

    /// Parks a call and returns its questions for the client.
    pub(super) fn park(
        &self,
        run: McpCall,
        charge: QuotaCharge,
        request: ParkedRequest<'_>,
        info: &RawValue,
    ) -> Result<RawJson, RpcError> {
        let mut requests = Object::default();
        for question in run.unanswered() {
            let request = serde_json::json!({"method": method(question.kind), "params": question.params});
            requests.set(&question.key, to_raw(&request));
        }
        let failed = |error| RpcError::new(code::INTERNAL, format!("the call cannot be parked: {error}"));
        let id = toolyard_random::hex_id().map_err(failed)?;
        let state = RequestState {
            c: id.clone(),
            x: unix_time() + self.time.as_secs(),
            p: HEXLOWER.encode(&Sha256::digest(request.principal.id())),
            r: request.digest,
            h: request.home.map(|home| home.as_str().to_owned()),
        };
        let content = serde_json::to_vec(&state).unwrap_or_default();
        let sealed = self.keys.seal(Purpose::RequestState, &content).map_err(failed)?;
        {
            let mut parked = self.parked.lock();
            let now = Instant::now();
            parked.retain(|_, parked| parked.until > now);
            if parked.len() >= self.most {
                return Err(RpcError::new(
                    code::INTERNAL,
                    "too many calls are waiting for an answer; retry later",
                ));
            }
            parked.insert(id, ParkedCall { until: now + self.time, call: run, _charge: charge });
        }
        let mut result = Object::default();
        result.set("resultType", to_raw("input_required"));
        result.set("inputRequests", requests.to_raw());
        result.set("requestState", to_raw(&sealed));
        Ok(ensure_modern_fields(info, result.to_raw()))
    }

    /// Returns the parked call of a request state. The state must be sealed by this server and
    /// belong to this principal and request.
    pub(super) fn take(
        &self,
        state: &str,
        principal: &Principal,
        request: &str,
    ) -> Result<McpCall, RpcError> {
        let invalid = |reason: &str| RpcError::invalid_params(format!("requestState {reason}"));
        let state = RequestState::open(&self.keys, state);
        let state = state.ok_or_else(|| invalid("was not issued by this server"))?;
        if state.p != HEXLOWER.encode(&Sha256::digest(principal.id())) || state.r != request {
            return Err(invalid("belongs to a different request"));
        }
        let expired =
            || invalid("has expired or was already used; send the request without it to start again");
        if state.x < unix_time() {
            return Err(expired());
        }
        let parked = self.parked.lock().remove(&state.c);
        parked.map(|parked| parked.call).ok_or_else(expired)
    }

    /// Cancels the expired calls.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.parked.lock().retain(|_, parked| parked.until > now);
    }

    /// Cancels all calls.
    pub(super) fn clear(&self) {
        self.parked.lock().clear();
    }
}

impl std::fmt::Debug for ParkedCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParkedCalls").field("most", &self.most).finish_non_exhaustive()
    }
}

/// Returns a digest of the method, the name and the arguments. Requests with the same digest are
/// the same. It is computed only when a call is parked or resumed.
pub(super) fn digest(request: &InboundRequest<Principal>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct DigestParams {
        name: Option<String>,
        uri: Option<String>,
        arguments: Option<RawJson>,
    }
    let relevant: DigestParams = params(&request.method, request.params.as_deref())?;
    let name = relevant.name.or(relevant.uri).unwrap_or_default();
    let mut hasher = Sha256::new();
    for part in [request.method.as_str(), &name, relevant.arguments.as_deref().map_or("", RawValue::get)] {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    Ok(HEXLOWER.encode(&hasher.finalize()))
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;
    use toolyard_hub::json::from_text;
    use toolyard_hub::{Outcome, Principal};
    use toolyard_random::{RandomError, SimulatedOutage};
    use toolyard_seal::SealingKeys;

    use super::{McpCall, ParkedCalls, ParkedRequest};
    use crate::mcp::active_call::McpCallTask;

    fn run() -> McpCall {
        let work = McpCallTask::new(async { Ok(Outcome::success(from_text("{}".to_owned()))) });
        McpCall::new(work, tokio::sync::mpsc::channel(1).1, CancellationToken::new())
    }

    #[tokio::test]
    async fn without_random_numbers_no_call_is_parked_and_no_key_is_generated() {
        let parking = ParkedCalls::new(4, Duration::from_secs(60), SealingKeys::generate().unwrap());
        let info = from_text(r#"{"name":"t"}"#.to_owned());
        let yard = toolyard_hub::Yard::with_sources([]);
        let owner = Principal::owner();
        let park = || {
            let charge = yard.charge(&owner, toolyard_hub::Quota::Parked, 1).unwrap();
            let request = ParkedRequest { principal: &owner, digest: "request".to_owned(), home: None };
            parking.park(run(), charge, request, &info)
        };
        let outage = SimulatedOutage::begin();
        let refused = park().unwrap_err();
        assert_eq!(refused.message, format!("the call cannot be parked: {RandomError}"));
        assert_eq!(SealingKeys::generate().err(), Some(RandomError));
        drop(outage);
        park().unwrap();
    }
}
