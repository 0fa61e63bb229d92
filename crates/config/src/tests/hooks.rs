//! `[[hooks]]`.

use std::time::Duration;

use toolyard_hooks::{HookEvent, HookFailurePolicy};

use super::Place;

#[test]
fn every_key_of_a_hook_is_read() {
    let text = r#"
        [[hooks]]
        url = "https://${HOST}/ask?key=${TOKEN}"
        name = "policy"
        headers = { Authorization = "Bearer ${TOKEN}", X-Number = 7 }
        events = ["before", "after", "error"]
        tools = ["mcp__git__*"]
        timeout = "250ms"
        on_failure = "open"

        [[hooks]]
        url = "http://127.0.0.1:9/"
    "#;
    let config =
        Place::new(&[("toolyard.toml", text)]).with("HOST", "h.example").with("TOKEN", "t0ken").load(&[]);
    assert_eq!(config.problems(), []);
    let [first, second] = config.hooks.as_slice() else { panic!("{:?}", config.hooks) };
    assert_eq!(first.url.as_str(), "https://h.example/ask?key=t0ken");
    assert_eq!(first.headers["authorization"], "Bearer t0ken");
    assert_eq!(first.headers["x-number"], "7");
    assert_eq!(first.events, [HookEvent::Before, HookEvent::After, HookEvent::Error]);
    assert_eq!(first.tools, ["mcp__git__*".into()]);
    assert_eq!((first.timeout, first.on_failure), (Duration::from_millis(250), HookFailurePolicy::Open));
    assert_eq!((second.name.as_str(), second.tools.as_slice()), ("127.0.0.1", &["*".into()][..]));
    assert_eq!(second.events, [HookEvent::Before]);
    assert_eq!((second.timeout, second.on_failure), (Duration::from_secs(5), HookFailurePolicy::Closed));
    assert!(!format!("{config:?}").contains("t0ken"));
}

#[test]
fn what_is_wrong_with_hooks_is_told_at_its_place_and_shows_no_secret() {
    let text = r#"[[hooks]]
url = "ftp://h/?key=t0ken"
events = []
[[hooks]]
url = "http://${NOWHERE}/"
headers = { "X Y" = "t0ken", B = "${NOTHING}" }
[[hooks]]
name = "nourl"
[[hooks]]
url = "http://h/"
events = ["befor"]
timeout = "soon"
on_failure = "ajar"
"#;
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}
