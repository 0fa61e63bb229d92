//! Everything that a client can ask a listener for, read from the tables that the fronts dispatch by. It is for tests
//! that must cover all of it, such as the authorization matrix.

use toolyard_wire::Era;

/// Every HTTP request by method and path pattern.
pub fn http_requests() -> Vec<(&'static str, String)> {
    crate::router::requests()
}

/// Every method of MCP, by era.
pub fn mcp_methods() -> Vec<(&'static str, &'static str)> {
    let era = |era| match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    crate::mcp::methods().into_iter().map(|(of, method)| (era(of), method)).collect()
}

/// Every request of the control socket, by its `subtype`.
pub fn control_requests() -> Vec<&'static str> {
    crate::control::requests()
}

/// Every event of the control socket.
pub fn control_events() -> Vec<&'static str> {
    crate::control::events()
}
