//! Percent-encoding, for each place of a request that needs its own.

use std::fmt::Write;

/// What may stand for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodeSet {
    /// Letters, digits and `-._~`.
    Unreserved,
    /// Also what has a meaning in addresses, in a path: a slash is one then. What would end the path is not.
    ReservedInPath,
    /// Also what has a meaning in addresses, in a query. What would begin another parameter, or end the query, is
    /// not, nor is the plus sign, which is read as a space there.
    ReservedInQuery,
    /// The text of a document's own path: everything that a path may hold.
    Literal,
    /// Nothing is encoded: the place is no address.
    Everything,
}

impl EncodeSet {
    /// How a value is written in a query, where the document says whether reserved characters stay.
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

    /// Whether what is encoded already stays so.
    fn keeps_encoded(self) -> bool {
        matches!(self, Self::ReservedInPath | Self::ReservedInQuery | Self::Literal)
    }
}

/// Adds a text, encoded.
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
