//! The methods that this front answers, and in which era each exists. What the transport answers itself (`initialize`,
//! `ping`, `logging/setLevel`) is not among them.

use toolyard_wire::Era;

/// A method of the protocol. It is parsed by looking it up in [`McpMethod::ALL`], so one that is missing there does not
/// exist for any client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpMethod {
    ListTools,
    ListResources,
    ListTemplates,
    ListPrompts,
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
    Discover,
    Listen,
    Subscribe,
    Unsubscribe,
}

impl McpMethod {
    /// Every method with its name and the era that it is limited to.
    pub(super) const ALL: [(Self, &str, Option<Era>); 12] = [
        (Self::ListTools, "tools/list", None),
        (Self::ListResources, "resources/list", None),
        (Self::ListTemplates, "resources/templates/list", None),
        (Self::ListPrompts, "prompts/list", None),
        (Self::CallTool, "tools/call", None),
        (Self::ReadResource, "resources/read", None),
        (Self::GetPrompt, "prompts/get", None),
        (Self::Complete, "completion/complete", None),
        (Self::Discover, "server/discover", Some(Era::Modern)),
        (Self::Listen, "subscriptions/listen", Some(Era::Modern)),
        (Self::Subscribe, "resources/subscribe", Some(Era::Legacy)),
        (Self::Unsubscribe, "resources/unsubscribe", Some(Era::Legacy)),
    ];

    pub(super) fn parse(name: &str, era: Era) -> Option<Self> {
        let exists = |only: Option<Era>| only.is_none_or(|only| only == era);
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, only)| *known == name && exists(*only)).map(|(method, ..)| method)
    }
}
