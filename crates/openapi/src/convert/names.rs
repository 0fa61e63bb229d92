//! Tool names: from the operationId, else from method and path. They are unique, short enough for
//! every client, and independent of the order of operations in the document.

use std::collections::{BTreeMap, HashMap, HashSet};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::transliterate::transliterate;

/// Clients reject names over 64 characters and add prefixes of their own.
pub(super) const LONGEST: usize = 60;

/// The parts of an operation that its name is derived from.
#[derive(Debug)]
pub(super) struct ToolNameInput<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

/// The name of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UniqueToolName {
    pub(super) text: String,
    /// The number of operations with the same initial name, including this one, if there are
    /// several.
    pub(super) shared_by: Option<usize>,
}

/// Returns a name for each operation, in the same order. If several have the same name, each gets a
/// suffix, so that their order has no effect: its method if that is unique, else the parameters of
/// its path, else as much of its path as needed.
pub(super) fn unique_names(operations: &[ToolNameInput<'_>]) -> Vec<UniqueToolName> {
    let plain: Vec<String> = operations.iter().map(base_name).collect();
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, name) in plain.iter().enumerate() {
        groups.entry(shorten(name)).or_default().push(at);
    }
    let mut taken: HashSet<String> =
        groups.iter().filter(|(_, group)| group.len() == 1).map(|(name, _)| name.clone()).collect();
    let mut settled: Vec<Option<UniqueToolName>> = vec![None; operations.len()];
    for (name, group) in groups {
        if let [only] = group.as_slice() {
            settled[*only] = Some(UniqueToolName { text: name, shared_by: None });
            continue;
        }
        let shared_by = Some(group.len());
        for (at, text) in disambiguate(operations, &plain, group, &mut taken) {
            settled[at] = Some(UniqueToolName { text, shared_by });
        }
    }
    // Every operation is in exactly one group.
    settled.into_iter().flatten().collect()
}

/// Names operations that have the same initial name. A suffix that two of them share is used for
/// neither.
fn disambiguate(
    operations: &[ToolNameInput<'_>],
    plain: &[String],
    mut group: Vec<usize>,
    taken: &mut HashSet<String>,
) -> Vec<(usize, String)> {
    group.sort_by_key(|at| (operations[*at].path, operations[*at].method));
    let mut methods: HashMap<&str, usize> = HashMap::new();
    for at in &group {
        *methods.entry(operations[*at].method).or_default() += 1;
    }
    let mut settled = Vec::with_capacity(group.len());
    for step in [
        NameSuffix::Method,
        NameSuffix::Parameters,
        NameSuffix::PathEnd,
        NameSuffix::MethodAndPathEnd,
        NameSuffix::Path,
    ] {
        let candidates: Vec<(usize, Option<String>)> = group
            .iter()
            .map(|at| {
                let operation = &operations[*at];
                let alone = methods.get(operation.method) == Some(&1);
                let suffix = step.suffix(operation, alone);
                (*at, suffix.map(|suffix| shorten(&format!("{}_{suffix}", plain[*at]))))
            })
            .collect();
        let mut times: HashMap<&str, usize> = HashMap::new();
        for name in candidates.iter().filter_map(|(_, name)| name.as_deref()) {
            *times.entry(name).or_default() += 1;
        }
        let free: Vec<(usize, String)> = candidates
            .iter()
            .filter_map(|(at, name)| Some((*at, name.clone()?)))
            .filter(|(_, name)| times.get(name.as_str()) == Some(&1) && !taken.contains(name))
            .collect();
        taken.extend(free.iter().map(|(_, name)| name.clone()));
        let done: HashSet<usize> = free.iter().map(|(at, _)| *at).collect();
        group.retain(|at| !done.contains(at));
        settled.extend(free);
    }
    for at in group {
        let operation = &operations[at];
        let whole = short_hash(&format!("{} {}", operation.method, operation.path));
        let hashed = format!("{}_{}_{whole}", plain[at], snake_case(operation.method));
        let counted = (2..).map(|n| shorten(&format!("{hashed}_{n}")));
        let mut choices = std::iter::once(shorten(&hashed)).chain(counted);
        settled.extend(choices.find(|name| taken.insert(name.clone())).map(|name| (at, name)));
    }
    settled
}

/// Candidate suffixes that distinguish operations, shortest first.
#[derive(Clone, Copy)]
enum NameSuffix {
    Method,
    Parameters,
    PathEnd,
    MethodAndPathEnd,
    Path,
}

impl NameSuffix {
    /// Returns the suffix. `alone` says whether no other operation of the group has this method.
    fn suffix(self, operation: &ToolNameInput<'_>, alone: bool) -> Option<String> {
        let method = snake_case(operation.method);
        let suffix = match self {
            Self::Method => method,
            Self::Parameters => {
                let is_parameter = |segment: &&str| segment.starts_with('{');
                let parameters: Vec<&str> = operation.path.split('/').filter(is_parameter).collect();
                path_words(&parameters.join("/"))
            }
            Self::PathEnd => path_end(operation.path),
            Self::MethodAndPathEnd => format!("{method}_{}", path_end(operation.path)),
            Self::Path => path_words(operation.path),
        };
        let fits = !suffix.is_empty() && (alone || !matches!(self, Self::Method));
        fits.then_some(suffix)
    }
}

/// Returns the name of an operation if no other has it.
fn base_name(operation: &ToolNameInput<'_>) -> String {
    let id = operation.id.unwrap_or_default();
    let word = snake_case(id);
    if !word.is_empty() {
        return if transliterate(id).lossy { format!("{word}_{}", short_hash(id)) } else { word };
    }
    let method = snake_case(operation.method);
    let path = path_words(operation.path);
    let plain = if path.is_empty() { format!("{method}_root") } else { format!("{method}_{path}") };
    // Characters that cannot be transliterated are dropped, so another path could get the same
    // name.
    match transliterate(operation.path).lossy {
        true => format!("{}_{}", plain.trim_end_matches("_root"), short_hash(operation.path)),
        false => plain,
    }
}

/// `/pets/{petId}/toys` becomes `pets_by_pet_id_toys`.
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

/// Returns the last segment of a path with the parameter after it.
fn path_end(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let last_word = segments.iter().rposition(|segment| !segment.starts_with('{')).unwrap_or(0);
    path_words(&segments.get(last_word..).unwrap_or_default().join("/"))
}

/// `getHTTPStatus-v2` becomes `get_http_status_v2`.
pub(super) fn snake_case(text: &str) -> String {
    let characters: Vec<char> = transliterate(text).text.chars().collect();
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

/// Shortens a long name to its start and a hash of the full name.
pub(super) fn shorten(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = short_hash(name);
    let start = &name[..LONGEST - hash.len() - 1];
    format!("{}_{hash}", start.trim_end_matches('_'))
}

/// Returns eight hexadecimal digits.
pub(super) fn short_hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes())[..4])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, ToolNameInput, UniqueToolName, snake_case};

    fn named(id: Option<&'static str>, method: &'static str, path: &'static str) -> ToolNameInput<'static> {
        ToolNameInput { id, method, path }
    }

    fn names(operations: &[ToolNameInput<'_>]) -> Vec<String> {
        super::unique_names(operations).into_iter().map(|name| name.text).collect()
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
            ("Überprüfen", "uberprufen"),
            ("получитьПользователя", "poluchit_polzovatelya"),
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
    fn what_cannot_be_spelled_leaves_a_hash_beside_what_can() {
        let operations = [
            named(Some("取得User"), "GET", "/a"),
            named(Some("削除User"), "GET", "/b"),
            named(None, "GET", "/用户/{id}"),
            named(None, "GET", "/订单/{id}"),
            named(None, "GET", "/用户"),
        ];
        let names = names(&operations);
        assert_eq!(
            names,
            ["user_92b3a295", "user_5800a402", "get_by_id_f15fdd66", "get_by_id_87dbd874", "get_7b876aff"]
        );
    }

    #[test]
    fn operations_that_share_an_id_get_their_method_where_the_methods_differ() {
        let operations =
            [named(Some("createUser"), "POST", "/users"), named(Some("createUser"), "PUT", "/users")];
        assert_eq!(names(&operations), ["create_user_post", "create_user_put"]);
    }

    #[test]
    fn operations_that_share_an_id_and_a_method_get_the_parameters_of_their_path() {
        let operations = [
            named(Some("getUser"), "GET", "/users/email/{email}"),
            named(Some("getUser"), "GET", "/users/phone/{phone}"),
            named(Some("getUser"), "GET", "/users/me"),
            named(Some("getUser"), "HEAD", "/users/me"),
        ];
        assert_eq!(
            names(&operations),
            ["get_user_by_email", "get_user_by_phone", "get_user_me", "get_user_head"]
        );
    }

    #[test]
    fn names_that_still_clash_get_more_of_their_path_and_in_the_end_a_hash() {
        let operations = [
            named(Some("user"), "GET", "/user/{id}"),
            named(Some("User"), "GET", "/admin/{id}"),
            named(Some("user"), "GET", "/other/admin/{id}"),
            named(Some("user_user_by_id"), "PUT", "/x"),
            named(Some("item"), "GET", "/a/{id}"),
            named(Some("item"), "GET", "/a/{id}/"),
        ];
        assert_eq!(
            names(&operations),
            [
                "user_get_user_by_id",
                "user_admin_by_id",
                "user_other_admin_by_id",
                "user_user_by_id",
                "item_get_79802da9",
                "item_get_a2ec5158"
            ]
        );
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_the_document() {
        let operations = || {
            vec![
                named(Some("user"), "GET", "/user"),
                named(Some("user"), "POST", "/user"),
                named(Some("User"), "POST", "/admin/{id}"),
                named(Some("user"), "POST", "/other/admin/{id}"),
                named(Some("user_post"), "PUT", "/x"),
                named(None, "GET", "/pets"),
                named(Some("getPets"), "GET", "/other"),
            ]
        };
        let by_operation = |operations: &[ToolNameInput<'_>]| -> Vec<(String, String)> {
            let mut pairs: Vec<(String, String)> = names(operations)
                .into_iter()
                .zip(operations)
                .map(|(name, operation)| (format!("{} {}", operation.method, operation.path), name))
                .collect();
            pairs.sort();
            pairs
        };
        let expected = by_operation(&operations());
        for turn in 1..operations().len() {
            let mut turned = operations();
            turned.rotate_left(turn);
            assert_eq!(by_operation(&turned), expected);
            turned.reverse();
            assert_eq!(by_operation(&turned), expected);
        }
    }

    #[test]
    fn a_name_that_others_share_says_how_many_they_are() {
        let operations = [
            named(Some("user"), "GET", "/user"),
            named(Some("user"), "POST", "/user"),
            named(Some("pet"), "GET", "/pet"),
        ];
        let name = |text: &str, shared_by| UniqueToolName { text: text.to_owned(), shared_by };
        assert_eq!(
            super::unique_names(&operations),
            [name("user_get", Some(2)), name("user_post", Some(2)), name("pet", None)]
        );
    }

    #[test]
    fn a_name_stays_when_operations_with_other_ids_are_added() {
        let few = [named(Some("user"), "GET", "/user"), named(Some("pet"), "GET", "/pet")];
        let more = [
            named(Some("user"), "GET", "/user"),
            named(Some("pet"), "GET", "/pet"),
            named(Some("makeUser"), "POST", "/user"),
            named(None, "PUT", "/pet"),
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
