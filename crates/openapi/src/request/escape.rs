//! Percent-encoding for each part of a request.

use std::fmt::Write;

/// Which characters are not encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodeSet {
    /// Letters, digits and `-._~`.
    Unreserved,
    /// Also reserved characters in a path, including slashes, but not those that would end the
    /// path.
    ReservedInPath,
    /// Also reserved characters in a query, but not those that would start another parameter or end
    /// the query, nor the plus sign, which is decoded as a space.
    ReservedInQuery,
    /// Literal text of the document's path template: everything that a path may contain.
    Literal,
    /// Nothing is encoded because the value is not part of a URL.
    Everything,
}

impl EncodeSet {
    /// Returns the set for a query value, depending on `allowReserved`.
    pub(crate) fn in_query(reserved: bool) -> Self {
        if reserved { Self::ReservedInQuery } else { Self::Unreserved }
    }

    pub(crate) fn in_path(reserved: bool) -> Self {
        if reserved { Self::ReservedInPath } else { Self::Unreserved }
    }

    fn allows(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || match self {
                Self::Unreserved => false,
                Self::ReservedInPath => b":/@!$&'()*+,;=".contains(&byte),
                Self::ReservedInQuery => b":/?@!$'()*,;=".contains(&byte),
                Self::Literal => b":/@!$&'()*+,;=".contains(&byte),
                Self::Everything => true,
            }
    }

    /// Whether existing percent-encoded sequences are kept.
    fn keeps_encoded(self) -> bool {
        matches!(self, Self::ReservedInPath | Self::ReservedInQuery | Self::Literal)
    }
}

/// Appends an encoded text.
pub(crate) fn percent_encode_into(text: &str, allow: EncodeSet, to: &mut String) {
    if allow == EncodeSet::Everything {
        to.push_str(text);
        return;
    }
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let encoded = byte == b'%'
            && allow.keeps_encoded()
            && bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        if allow.allows(byte) || encoded {
            to.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

pub(crate) fn percent_encode(text: &str, allow: EncodeSet) -> String {
    let mut to = String::with_capacity(text.len());
    percent_encode_into(text, allow, &mut to);
    to
}

#[cfg(test)]
mod tests {
    use super::{EncodeSet, percent_encode};

    #[test]
    fn each_place_keeps_what_has_no_meaning_there() {
        let all = "aZ0-._~ :/?#[]@!$&'()*+,;=%|é\"<>\\^`{}";
        insta::assert_snapshot!(
            [
                ("unreserved", EncodeSet::Unreserved),
                ("path", EncodeSet::ReservedInPath),
                ("query", EncodeSet::ReservedInQuery),
                ("literal", EncodeSet::Literal),
            ]
            .map(|(name, allow)| format!("{name:10} {}", percent_encode(all, allow)))
            .join("\n")
        );
    }

    #[test]
    fn what_is_encoded_already_stays_so_only_where_reserved_characters_do() {
        assert_eq!(percent_encode("50%25 %zz", EncodeSet::Unreserved), "50%2525%20%25zz");
        assert_eq!(percent_encode("50%25 %zz%2", EncodeSet::ReservedInQuery), "50%25%20%25zz%252");
    }
}
