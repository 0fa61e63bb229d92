//! Tools of an OpenAPI document that are not listed because there are too many: search finds them,
//! and programs can call them.

use serde_json::json;
use toolyard_testkit::harness::{Client, Scratch, Server, Version};

use super::super::openapi::{DOCUMENT, echo};
use super::{SERVE, TOOLYARD, TURN, executed, names};

#[tokio::test]
async fn what_no_list_has_is_found_by_searching_and_called_by_programs() {
    let _turn = TURN.lock().await;
    let scratch = Scratch::new();
    scratch.file("pets.yaml", DOCUMENT);
    let listed = format!("[servers.pets]\nopenapi = \"pets.yaml\"\nbase_url = \"{}\"\n", echo());
    let config = scratch.file("toolyard.toml", &format!("{listed}listed = false\n"));
    let server =
        Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &config]].concat()).await;
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let mut whole = Client::join(&server, version).await;
        assert_eq!(names(&mut whole).await, Vec::<String>::new());
        let mut client = Client::join(&server.with_path("/programs/mcp"), version).await;
        assert_eq!(names(&mut client).await, super::THREE);
        let hits = client.call("search_tools", json!({"query": "a pet"})).await.answer;
        assert!(hits.content().contains("mcp__pets__get_pet"), "{}", hits.content());
        let shown = client.call("inspect_tool", json!({"tool_name": "get_pet"})).await.answer;
        assert!(shown.content().contains("tags"), "{}", shown.content());
        let code = "print([tool['name'] for tool in await search_tools('pet')])\n\
                    print(await get_pet(id='a b', tags=['x', 'y']))\n\
                    print(await call_tool('mcp__pets__get_pet', {'id': '2'}))\n";
        let (text, failed) = executed(&mut client, code).await;
        assert_eq!(
            (text.as_str(), failed),
            (
                "[Script executed successfully]\n['mcp__pets__get_pet']\n\
                 {'result': ['GET /v1/pets/a%20b?tags=x%7Cy HTTP/1.1']}\n\
                 {'result': ['GET /v1/pets/2 HTTP/1.1']}",
                false
            )
        );
    }
}
