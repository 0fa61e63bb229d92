//! Definitions, arguments and results arrive exactly as written, byte for byte.

use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text};
use toolyard_testkit::probe::{ODD_DEFINITION, ODD_RESULT};

use super::start::{everywhere, probe};

#[tokio::test]
async fn a_definition_arrives_as_it_was_written() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let answer = client.ask("tools/list", "{}").await.answer;
        let result = Object::parse(&answer.raw_result()).unwrap();
        let tools: Vec<Box<RawValue>> = serde_json::from_str(result.get("tools").unwrap().get()).unwrap();
        let definitions: Vec<&str> =
            tools.iter().map(|tool| tool.get()).filter(|text| text.contains(r#""name":"odd""#)).collect();
        assert_eq!(definitions, [ODD_DEFINITION], "{over:?} {version}");
        let added = if version.is_modern() {
            &["tools", "resultType", "ttlMs", "cacheScope", "_meta"][..]
        } else {
            &["tools"]
        };
        assert_eq!(keys(&result), added, "{over:?} {version}");
    }
}

#[tokio::test]
async fn a_result_arrives_as_it_was_written() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let answer = client.call("odd", "{}").await.answer;
        if !version.is_modern() {
            assert_eq!(answer.raw_result().get(), ODD_RESULT, "{over:?} {version}");
            continue;
        }
        let mut expected = members(&Object::parse(&from_text(ODD_RESULT.to_owned())).unwrap());
        let mut arrived = members(&Object::parse(&answer.raw_result()).unwrap());
        let meta_index = |all: &[(String, String)]| all.iter().position(|(key, _)| key == "_meta").unwrap();
        let (_, meta) = arrived.remove(meta_index(&arrived));
        let (_, own_meta) = expected.remove(meta_index(&expected));
        expected.push(("resultType".to_owned(), r#""complete""#.to_owned()));
        assert_eq!(arrived, expected, "{over:?} {version}");
        let info = r#""io.modelcontextprotocol/serverInfo":"#;
        let own = own_meta.trim_end_matches('}');
        assert!(meta.starts_with(&format!("{own},{info}")), "{over:?} {version}: {meta}");
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_were_written() {
    let arguments = r#"{"z":9007199254740993,"a":18446744073709551616,"f":1.0, "e":{"b":null,"a":[ 1 ]}}"#;
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let answer = client.call("echo", arguments).await.answer;
        let result = Object::parse(&answer.raw_result()).unwrap();
        assert_eq!(result.get("structuredContent").unwrap().get(), arguments, "{over:?} {version}");
    }
}

fn keys(object: &Object) -> Vec<&str> {
    object.members().map(|(key, _)| key).collect()
}

fn members(object: &Object) -> Vec<(String, String)> {
    object.members().map(|(key, value)| (key.to_owned(), value.get().to_owned())).collect()
}
