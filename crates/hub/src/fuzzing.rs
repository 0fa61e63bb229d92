//! Entry points of the fuzz targets in `fuzz/` and of the test that replays their corpus. Not
//! called by anything else. Each takes arbitrary bytes and panics if an invariant is violated.

use crate::UriTemplate;
use crate::printable::{clean, clean_line, clean_name, escape_json, is_deceptive};

/// URI templates: a template, a newline, and a URI to match against it.
pub fn uri_template(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (template, uri) = text.split_once('\n').unwrap_or((&text, ""));
    let parsed = UriTemplate::parse(template);
    let names: Vec<&str> = parsed.names().collect();
    if parsed.problem().is_some() {
        assert_eq!(parsed.extract_values(uri), None, "a template with a problem matches");
        return;
    }
    if !template.contains('{') {
        assert_eq!(
            parsed.extract_values(uri).is_some(),
            template == uri,
            "a template without variables is a URI"
        );
    }
    if let Some(values) = parsed.extract_values(uri) {
        for (name, value) in &values {
            assert!(names.contains(&name.as_str()), "{name:?} is not a variable of {template:?}");
            assert!(value.len() <= uri.len(), "a value is longer than the URI");
        }
        // Matching is deterministic.
        assert_eq!(UriTemplate::parse(template).extract_values(uri), Some(values));
    }
}

/// Printable text: the result contains no deceptive characters, and the function is idempotent.
pub fn printable(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let name = clean_name(&text);
    assert_eq!(name.find(is_deceptive), None, "{name:?}");
    assert_eq!(clean_name(&name), name);
    let cleaned = clean(&text);
    let left = |letter: char| {
        letter.is_control() && !"\n\t".contains(letter) || ('\u{2028}'..='\u{202e}').contains(&letter)
    };
    assert_eq!(cleaned.find(left), None, "{cleaned:?}");
    assert_eq!(clean(&cleaned), cleaned);
    assert!(!clean_line(&text).contains('\n'));
    let json = serde_json::Value::String(text.into_owned());
    let escaped = json.to_string();
    let escaped = escape_json(&escaped);
    assert_eq!(escaped.find(is_deceptive), None, "{escaped:?}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(json));
}
