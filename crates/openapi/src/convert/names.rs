//! Tools' names: from the operationId, else from method and path; unique, short enough for every client, and the same
//! tomorrow when the document has more operations.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Clients refuse names over 64 characters, and put something of their own before them.
pub(super) const LONGEST: usize = 60;

/// What a name is made of.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

/// A name for each operation, in the same order. Who comes first keeps the plain name; further ones get their method, then
/// the end of their path, then a hash.
pub(super) fn names(operations: &[Named<'_>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names: Vec<Option<String>> = Vec::with_capacity(operations.len());
    for operation in operations {
        let plain = shortened(&plain(operation));
        names.push(taken.insert(plain.clone()).then_some(plain));
    }
    let mut settled = Vec::with_capacity(operations.len());
    for (operation, name) in operations.iter().zip(names) {
        settled.push(name.unwrap_or_else(|| {
            let plain = plain(operation);
            let with_method = format!("{plain}_{}", snake_case(operation.method));
            let with_path = format!("{with_method}_{}", hint(operation.path));
            let whole = short_hash(&format!("{} {}", operation.method, operation.path));
            let mut choices = vec![shortened(&with_method), shortened(&with_path)];
            choices.push(shortened(&format!("{with_method}_{whole}")));
            let counted = (2..).map(|n| shortened(&format!("{with_method}_{whole}_{n}")));
            choices.into_iter().chain(counted).find(|name| taken.insert(name.clone())).unwrap_or(plain)
        }));
    }
    settled
}

fn plain(operation: &Named<'_>) -> String {
    let from_id = snake_case(operation.id.unwrap_or_default());
    if !from_id.is_empty() {
        return from_id;
    }
    let method = snake_case(operation.method);
    let path = path_words(operation.path);
    if path.is_empty() { format!("{method}_root") } else { format!("{method}_{path}") }
}

/// `/pets/{petId}/toys` is `pets_by_pet_id_toys`.
fn path_words(path: &str) -> String {
    let mut words = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let is_parameter = segment.starts_with('{') && segment.ends_with('}');
        let word = snake_case(segment);
        if !word.is_empty() {
            words.push(if is_parameter { format!("by_{word}") } else { word });
        }
    }
    words.join("_")
}

/// The last word of a path, with the parameter after it.
fn hint(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let last_word = segments.iter().rposition(|segment| !segment.starts_with('{')).unwrap_or(0);
    path_words(&segments.get(last_word..).unwrap_or_default().join("/"))
}

/// `getHTTPStatus-v2` is `get_http_status_v2`.
pub(super) fn snake_case(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 8);
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            if !out.ends_with('_') && !out.is_empty() {
                out.push('_');
            }
            continue;
        }
        if character.is_ascii_uppercase() && at > 0 {
            let before = characters[at - 1];
            let after = characters.get(at + 1);
            let starts_word = before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase));
            if starts_word && !out.ends_with('_') && !out.is_empty() {
                out.push('_');
            }
        }
        out.push(character.to_ascii_lowercase());
    }
    out.trim_end_matches('_').to_owned()
}

/// A name that is too long keeps its start, and a hash of all of it.
pub(super) fn shortened(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = short_hash(name);
    let start = &name[..LONGEST - hash.len() - 1];
    format!("{}_{hash}", start.trim_end_matches('_'))
}

/// Eight hexadecimal digits.
pub(super) fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Named, names, snake_case};

    fn named(id: Option<&'static str>, method: &'static str, path: &'static str) -> Named<'static> {
        Named { id, method, path }
    }

    #[test]
    fn an_operation_id_becomes_snake_case() {
        for (id, name) in [
            ("getWeatherData", "get_weather_data"),
            ("createUser", "create_user"),
            ("getHTTPStatus-v2", "get_http_status_v2"),
            ("list_Items", "list_items"),
            ("repos/list-for-org", "repos_list_for_org"),
            ("GetV1UsersID", "get_v1_users_id"),
            ("IPAddress.get", "ip_address_get"),
            ("__x__", "x"),
            ("Überprüfen", "berpr_fen"),
            ("取得", ""),
        ] {
            assert_eq!(snake_case(id), name);
        }
    }

    #[test]
    fn without_an_id_method_and_path_are_the_name() {
        let operations = [
            named(None, "GET", "/pets/{petId}/toys"),
            named(None, "GET", "/"),
            named(Some("取得"), "POST", "/users/{id}.json"),
            named(Some(""), "DELETE", "/a/{b}/{c}"),
        ];
        assert_eq!(
            names(&operations),
            ["get_pets_by_pet_id_toys", "get_root", "post_users_id_json", "delete_a_by_b_by_c"]
        );
    }

    #[test]
    fn names_that_clash_get_the_method_then_the_path_then_a_hash() {
        let operations = [
            named(Some("user"), "GET", "/user"),
            named(Some("user"), "POST", "/user"),
            named(Some("User"), "POST", "/admin/{id}"),
            named(Some("user"), "POST", "/other/admin/{id}"),
            named(Some("user_post"), "PUT", "/x"),
        ];
        assert_eq!(
            names(&operations),
            ["user", "user_post_user", "user_post_admin_by_id", "user_post_d3e0b709", "user_post"]
        );
    }

    #[test]
    fn a_name_stays_when_operations_are_added() {
        let few = [named(Some("user"), "GET", "/user"), named(Some("pet"), "GET", "/pet")];
        let more = [
            named(Some("user"), "GET", "/user"),
            named(Some("pet"), "GET", "/pet"),
            named(Some("user"), "POST", "/user"),
            named(Some("pet"), "PUT", "/pet"),
        ];
        assert_eq!(names(&more)[..2], names(&few));
    }

    #[test]
    fn long_names_are_cut_with_a_hash_and_stay_apart() {
        let long: &'static str = "a_very_long_name_of_an_operation_that_goes_on_and_on_and_on_for_ever_first";
        let other: &'static str =
            "a_very_long_name_of_an_operation_that_goes_on_and_on_and_on_for_ever_second";
        let names = names(&[named(Some(long), "GET", "/"), named(Some(other), "GET", "/")]);
        assert!(names.iter().all(|name| name.len() <= LONGEST), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert!(names[0].starts_with("a_very_long_name_of_an_operation_that_goes_on_and_o"), "{names:?}");
    }
}
