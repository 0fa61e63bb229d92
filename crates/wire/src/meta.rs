//! The metadata that a request carries in `_meta`, and the capabilities that a client declares.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::RawJson;
use crate::rpc_error::RpcError;
use crate::version::{Era, Version};

/// `_meta` of a request: the keys that the protocol defines, and the complete original.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// The complete `_meta`, unmodified.
    pub all: Option<RawJson>,
    /// The token to repeat, unmodified, in progress notifications.
    pub progress_token: Option<RawJson>,
    pub(crate) version: Option<String>,
    pub(crate) capabilities: Option<RawJson>,
    client_info: Option<RawJson>,
    /// The minimum level of log messages for this request (modern era).
    pub log_level: Option<String>,
}

/// The identity and the capabilities that the client declares.
#[derive(Debug, Clone, Default)]
pub struct ClientProfile {
    pub info: Option<RawJson>,
    pub elicit_form: bool,
    pub elicit_url: bool,
    pub sample: bool,
    pub roots: bool,
}

/// The params that a transport needs to route a request: `_meta` and the name or URI of the target.
/// Parsed in a single pass.
#[derive(Debug, Default)]
pub(crate) struct RoutingParams<'a> {
    pub(crate) meta: Meta,
    pub(crate) name: Option<&'a RawValue>,
    pub(crate) uri: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
}

/// `_meta` alone, for params that are otherwise invalid. The service reports what is wrong with
/// them.
#[derive(Deserialize)]
struct OnlyMeta<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
}

impl<'a> RoutingParams<'a> {
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self::default()) };
        let params = match serde_json::from_str::<Params<'a>>(params.get()) {
            Ok(params) => params,
            Err(_) => {
                let OnlyMeta { meta } =
                    serde_json::from_str(params.get()).map_err(|error| invalid_meta(&error))?;
                Params { meta, name: None, uri: None }
            }
        };
        let meta = params.meta.map(Meta::parse).transpose()?.unwrap_or_default();
        Ok(Self { meta, name: params.name, uri: params.uri })
    }
}

fn invalid_meta(error: &serde_json::Error) -> RpcError {
    RpcError::invalid_params(format!("invalid `_meta`: {error}")).with_status(400)
}

#[derive(Deserialize)]
struct Keys<'a> {
    #[serde(rename = "progressToken", borrow)]
    progress_token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow)]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow)]
    log_level: Option<&'a RawValue>,
}

impl Meta {
    pub(crate) fn read(params: Option<&RawValue>) -> Result<Self, RpcError> {
        RoutingParams::read(params).map(|heading| heading.meta)
    }

    fn parse(meta: &RawValue) -> Result<Self, RpcError> {
        let keys: Keys<'_> = serde_json::from_str(meta.get()).map_err(|error| invalid_meta(&error))?;
        let text = |raw: Option<&RawValue>| {
            raw.map(|raw| serde_json::from_str(raw.get())).transpose().map_err(|error| invalid_meta(&error))
        };
        let token = keys.progress_token.map(ToOwned::to_owned);
        if token.as_ref().is_some_and(|token| crate::message::RequestId::from_json(token).is_none()) {
            return Err(
                RpcError::invalid_params("`progressToken` must be a string or an integer").with_status(400)
            );
        }
        Ok(Self {
            progress_token: token,
            version: text(keys.version)?,
            capabilities: keys.capabilities.map(ToOwned::to_owned),
            client_info: keys.client_info.map(ToOwned::to_owned),
            log_level: text(keys.log_level)?,
            all: Some(meta.to_owned()),
        })
    }

    /// Returns whether the request declares a modern protocol version.
    pub(crate) fn has_version(&self) -> bool {
        self.version.is_some()
    }

    /// Returns the fields that every modern request must have in `_meta`.
    pub(crate) fn require_modern_fields(&self) -> Result<(&str, ClientProfile), RpcError> {
        let missing = |key: &str| {
            let message = format!("`_meta` has no `io.modelcontextprotocol/{key}`");
            RpcError::invalid_params(message).with_status(400)
        };
        let version = self.version.as_deref().ok_or_else(|| missing("protocolVersion"))?;
        let capabilities = self.capabilities.as_deref().ok_or_else(|| missing("clientCapabilities"))?;
        Ok((version, ClientProfile::read(capabilities, self.client_info.clone())?))
    }
}

/// Returns the version that a modern request declares, if it is supported.
pub(crate) fn modern_version(requested: &str) -> Result<Version, RpcError> {
    Version::parse(requested)
        .filter(|version| version.era() == Era::Modern)
        .ok_or_else(|| RpcError::unsupported_version(requested))
}

impl ClientProfile {
    pub(crate) fn read(capabilities: &RawValue, info: Option<RawJson>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Capabilities<'a> {
            elicitation: Option<Elicitation<'a>>,
            #[serde(borrow)]
            sampling: Option<&'a RawValue>,
            #[serde(borrow)]
            roots: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Elicitation<'a> {
            #[serde(borrow)]
            form: Option<&'a RawValue>,
            #[serde(borrow)]
            url: Option<&'a RawValue>,
        }
        let read: Capabilities<'_> = serde_json::from_str(capabilities.get()).map_err(|error| {
            RpcError::invalid_params(format!("invalid client capabilities: {error}")).with_status(400)
        })?;
        let (form, url) = read.elicitation.map_or((false, false), |modes| {
            // An empty object means "forms": it predates the other modes.
            (modes.form.is_some() || modes.url.is_none(), modes.url.is_some())
        });
        Ok(Self {
            info,
            elicit_form: form,
            elicit_url: url,
            sample: read.sampling.is_some(),
            roots: read.roots.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{ClientProfile, Meta, RoutingParams};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn an_empty_elicitation_capability_means_forms() {
        let abilities = |text: &str| {
            let side = ClientProfile::read(&raw(text), None).unwrap();
            (side.elicit_form, side.elicit_url, side.sample, side.roots)
        };
        assert_eq!(abilities("{}"), (false, false, false, false));
        assert_eq!(abilities(r#"{"elicitation":{}}"#), (true, false, false, false));
        assert_eq!(abilities(r#"{"elicitation":{"url":{}},"sampling":{}}"#), (false, true, true, false));
        assert_eq!(
            abilities(r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#),
            (true, true, false, true)
        );
    }

    #[test]
    fn keeps_the_whole_of_meta_beside_the_known_keys() {
        let meta =
            Meta::read(Some(&raw(r#"{"x":1,"_meta":{"progressToken":"t","z":9007199254740993}}"#))).unwrap();
        assert_eq!(meta.progress_token.unwrap().get(), "\"t\"");
        assert_eq!(meta.all.unwrap().get(), r#"{"progressToken":"t","z":9007199254740993}"#);
        assert!(Meta::read(Some(&raw(r#"{"_meta":7}"#))).is_err());
        let twice = raw(r#"{"name":"a","name":"b","_meta":{"progressToken":7}}"#);
        let heading = RoutingParams::read(Some(&twice)).unwrap();
        assert_eq!(heading.meta.progress_token.unwrap().get(), "7");
        assert!(heading.name.is_none());
        assert!(Meta::read(Some(&raw(r#"{"_meta":{"progressToken":{}}}"#))).is_err());
    }
}
