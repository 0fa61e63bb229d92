//! Every request that a listener accepts, read from the dispatch tables of the fronts. For tests
//! that must cover all of them, such as the authorization matrix.

use toolyard_wire::Era;

/// Returns every HTTP request, by method and path pattern.
pub fn http_requests() -> Vec<(&'static str, String)> {
    crate::router::requests()
}

/// Returns every MCP method, by era.
pub fn mcp_methods() -> Vec<(&'static str, &'static str)> {
    let era = |era| match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    crate::mcp::methods().into_iter().map(|(method_era, method)| (era(method_era), method)).collect()
}

/// Returns the `subtype` of every request of the control socket.
pub fn control_requests() -> Vec<&'static str> {
    crate::control::requests()
}

/// Returns the name of every event of the control socket.
pub fn control_events() -> Vec<&'static str> {
    crate::control::events()
}
