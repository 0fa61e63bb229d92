//! Metadata that one yard passes to another in the `_meta` of definitions and calls, so that a tool
//! behaves the same behind a second yard: its metadata, its older versions, and the permissions
//! that it requires. A source can only add requirements this way; it cannot grant permissions.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::{Object, Raw, contains_text, to_raw};

/// In a definition: metadata written by the author of the tool.
pub const METADATA: &str = "dev.toolyard/metadata";
/// In a definition: the permissions that a caller needs, all of them.
pub const PERMISSIONS: &str = "dev.toolyard/permissions";
/// In a definition: the definitions of the older versions that can be requested.
pub const VERSIONS: &str = "dev.toolyard/versions";
/// In a call: the requested version of the tool.
pub const VERSION: &str = "dev.toolyard/version";

/// Cheap check before parsing, because few definitions contain these keys. JSON may escape the
/// slash, so this text stops before it.
const OURS: &str = "dev.toolyard";

const MOST_PERMISSIONS: usize = 64;
const LONGEST_PERMISSION: usize = 255;

/// Returns the metadata of a definition, or an empty map if it is missing or invalid.
pub fn metadata(definition: &RawValue) -> Map<String, Value> {
    let value = meta_value(definition, METADATA);
    value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}

/// Returns the permissions that a definition requires. Fails if they are invalid: the entry must
/// not be offered without the protection that its author intended.
pub fn permissions(definition: &RawValue) -> Result<Vec<String>, String> {
    let Some(value) = meta_value(definition, PERMISSIONS) else { return Ok(Vec::new()) };
    let permissions: Vec<String> = serde_json::from_str(value.get())
        .map_err(|_| format!("`{PERMISSIONS}` is not an array of strings"))?;
    let fits = |one: &String| (1..=LONGEST_PERMISSION).contains(&one.len());
    if permissions.len() > MOST_PERMISSIONS || !permissions.iter().all(fits) {
        return Err(format!(
            "`{PERMISSIONS}` must have at most {MOST_PERMISSIONS} entries of 1 to {LONGEST_PERMISSION} bytes"
        ));
    }
    Ok(permissions)
}

/// Splits a definition into the definition without its older versions, and the older versions.
pub fn split_versions(definition: Raw) -> (Raw, Vec<Raw>) {
    let Some(value) = meta_value(&definition, VERSIONS) else { return (definition, Vec::new()) };
    let older: Vec<Raw> = serde_json::from_str(value.get()).unwrap_or_default();
    (edit_meta(&definition, |meta| drop(meta.remove(VERSIONS))), older)
}

/// Returns the version that a call requests.
pub fn requested_version(meta: &RawValue) -> Result<Option<String>, String> {
    if !contains_text(meta, OURS) {
        return Ok(None);
    }
    let value = Object::parse(meta).ok().and_then(|mut meta| meta.remove(VERSION));
    let read =
        |value: Raw| serde_json::from_str(value.get()).map_err(|_| format!("`{VERSION}` is not a string"));
    value.map(read).transpose()
}

/// Adds the requested version to the `_meta` of a call.
pub fn with_requested_version(version: &str, meta: Option<&RawValue>) -> Raw {
    let mut meta = meta.and_then(|meta| Object::parse(meta).ok()).unwrap_or_default();
    meta.set(VERSION, to_raw(version));
    meta.to_raw()
}

/// Adds the information for another yard to a definition: the permissions required here, and the
/// older versions.
pub fn with_yard_metadata(definition: &RawValue, permissions: &[String], older: &[Raw]) -> Raw {
    edit_meta(definition, |meta| {
        for (key, value) in [(PERMISSIONS, to_raw(permissions)), (VERSIONS, to_raw(older))] {
            match value.get() {
                "[]" => drop(meta.remove(key)),
                _ => meta.set(key, value),
            }
        }
    })
}

fn meta_value(definition: &RawValue, key: &str) -> Option<Raw> {
    if !contains_text(definition, OURS) {
        return None;
    }
    let meta = Object::parse(definition).ok()?.remove("_meta")?;
    Object::parse(&meta).ok()?.remove(key)
}

fn edit_meta(definition: &RawValue, change: impl FnOnce(&mut Object)) -> Raw {
    let Ok(mut members) = Object::parse(definition) else { return definition.to_owned() };
    let mut meta = members.get("_meta").and_then(|meta| Object::parse(meta).ok()).unwrap_or_default();
    change(&mut meta);
    if meta.is_empty() {
        drop(members.remove("_meta"))
    } else {
        members.set("_meta", meta.to_raw())
    }
    members.to_raw()
}

#[cfg(test)]
mod tests {
    use crate::json::from_text;

    use super::{
        metadata, permissions, requested_version, split_versions, with_requested_version, with_yard_metadata,
    };

    #[test]
    fn what_is_advertised_is_read_back_and_every_other_byte_stays() {
        let plain = r#"{"name":"t","n":1.0,"_meta":{"x":1e400}}"#;
        let old = from_text(r#"{"name":"t","_meta":{"dev.toolyard/metadata":{"version":"1"}}}"#.to_owned());
        let both = with_yard_metadata(
            &from_text(plain.to_owned()),
            &["admin".to_owned(), "write".to_owned()],
            std::slice::from_ref(&old),
        );
        assert_eq!(permissions(&both), Ok(vec!["admin".to_owned(), "write".to_owned()]));
        let (stripped, older) = split_versions(both);
        assert_eq!((older.len(), older[0].get()), (1, old.get()));
        assert_eq!(metadata(&older[0])["version"], "1");
        assert_eq!(with_yard_metadata(&stripped, &[], &[]).get(), plain);
        let bare = from_text(r#"{"name":"t"}"#.to_owned());
        assert_eq!(with_yard_metadata(&bare, &[], &[]).get(), bare.get());
    }

    #[test]
    fn permissions_that_cannot_be_read_are_no_permissions_at_all_but_an_error() {
        let of = |value: &str| {
            permissions(&from_text(format!(
                r#"{{"name":"t","_meta":{{"dev.toolyard/permissions":{value}}}}}"#
            )))
        };
        assert_eq!(of("[]"), Ok(Vec::new()));
        for wrong in [r#""admin""#, "[1]", "{}", "null", r#"[""]"#] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..65).map(|at| format!("\"p{at}\"")).collect();
        assert!(of(&format!("[{}]", many.join(","))).is_err());
        assert!(of(&format!("[\"{}\"]", "x".repeat(256))).is_err());
    }

    #[test]
    fn a_call_says_which_version_it_asks_for() {
        let asked = with_requested_version("1.0", Some(&from_text(r#"{"progressToken":7}"#.to_owned())));
        assert_eq!(asked.get(), r#"{"progressToken":7,"dev.toolyard/version":"1.0"}"#);
        assert_eq!(requested_version(&asked), Ok(Some("1.0".to_owned())));
        assert_eq!(requested_version(&from_text("{}".to_owned())), Ok(None));
        assert!(requested_version(&from_text(r#"{"dev.toolyard/version":1}"#.to_owned())).is_err());
    }
}
