//! Searches long texts. Lowercase letters in the search text also match uppercase ones.

use memchr::{memchr2_iter, memmem};

use super::SearchDirection;

/// Returns the nearest match: the first at or after `from`, or the last before it.
pub(super) fn find(text: &str, needle: &str, from: usize, way: SearchDirection) -> Option<usize> {
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let from = from.min(text.len());
    let first = *needle.first()?;
    if needle.iter().any(u8::is_ascii_uppercase) {
        return match way {
            SearchDirection::Down => memmem::find(&text[from..], needle).map(|at| from + at),
            SearchDirection::Up => memmem::rfind(&text[..from], needle),
        };
    }
    let fits =
        |at: &usize| text.get(*at..*at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle));
    match way {
        SearchDirection::Down => {
            memchr2_iter(first, first.to_ascii_uppercase(), &text[from..]).map(|at| from + at).find(fits)
        }
        SearchDirection::Up => {
            memchr2_iter(first, first.to_ascii_uppercase(), &text[..from]).rev().find(fits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SearchDirection;
    use super::find;

    #[test]
    fn small_letters_find_large_ones_but_not_the_other_way_round() {
        let text = "Alpha beta ALPHA";
        assert_eq!(find(text, "alpha", 0, SearchDirection::Down), Some(0));
        assert_eq!(find(text, "alpha", 1, SearchDirection::Down), Some(11));
        assert_eq!(find(text, "alpha", 11, SearchDirection::Up), Some(0));
        assert_eq!(find(text, "Alpha", 1, SearchDirection::Down), None);
        assert_eq!(find(text, "", 0, SearchDirection::Down), None);
        assert_eq!(find("é日", "日", 0, SearchDirection::Down), Some(2));
    }
}
