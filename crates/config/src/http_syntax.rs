//! Syntax checks of URLs and headers. They run while the configuration is loaded, so that errors
//! can point to a location in the file.

/// Whether `text` is an `http://` or `https://` URL with a host.
pub fn is_http_url(text: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    !host.is_empty() && !host.starts_with(':') && !text.contains(odd) && has_valid_port(host)
}

fn has_valid_port(host: &str) -> bool {
    match host.rsplit_once(':') {
        // Colons inside the brackets belong to the IPv6 address.
        Some((_, port)) if !port.contains(']') => port.is_empty() || port.parse::<u16>().is_ok(),
        _ => true,
    }
}

pub(super) fn is_header_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fine)
}

pub(super) fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// Parses a header from the command line, such as `Name: value`. Errors do not contain the value
/// because it can be a secret.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once([':', '=']).ok_or("invalid header, expected `Name: value`")?;
    let (name, value) = (name.trim(), value.trim());
    if !is_header_name(name) {
        return Err(format!("{name:?} is not a valid header name"));
    }
    if !is_header_value(value) {
        return Err(format!("the value of the header `{name}` contains a character that is not allowed"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::is_http_url;

    #[test]
    fn knows_an_address() {
        for good in ["http://a", "https://a.b:80/mcp?x=1", "HTTP://[::1]:9/", "http://u:p@host/"] {
            assert!(is_http_url(good), "{good}");
        }
        for bad in
            ["", "a.b/mcp", "ftp://a", "http://", "http://:80", "http:///x", "http://a b", "http://a:99999"]
        {
            assert!(!is_http_url(bad), "{bad}");
        }
    }
}
