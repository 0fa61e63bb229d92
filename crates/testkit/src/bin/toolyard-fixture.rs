//! Serves the conformance fixture, over HTTP without a token or over stdio, for suites that drive a server from
//! outside. Prints the MCP address on standard output.
#![allow(clippy::print_stdout, reason = "the address is what the caller waits for")]

use toolyard_hub::Principal;
use toolyard_serve::{
    Auth, DoorSettings, EndpointSettings, McpSettings, ServeSettings, bind, stdio,
};
use toolyard_testkit::conformance;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        return Ok(stdio(conformance::yard()).await?);
    }
    let settings = ServeSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        door: DoorSettings { auth: Auth::None(Principal::owner()), hosts: Vec::new(), origins: Vec::new() },
        mcp: McpSettings::default(),
        endpoint: EndpointSettings::default(),
        drain: std::time::Duration::from_secs(1),
    };
    let bound = bind(conformance::yard(), settings).await?;
    println!("http://{}/mcp", bound.address());
    bound.serve(tokio_util::sync::CancellationToken::new()).await;
    Ok(())
}
