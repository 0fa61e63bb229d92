//! The page at `/`: files that were built from `web` and are part of the binary. They hold nothing secret and are shown to
//! everybody; what the page asks for afterwards carries the token.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;

mod files;

/// Where everything but the page itself is.
pub(crate) const ASSETS: &str = "/assets/";

/// Nothing from elsewhere, nothing inline, nowhere to send a form, and no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; media-src data: blob:; base-uri 'none'; \
                      frame-ancestors 'none'; form-action 'none'";
/// The names in `assets` have a hash of what is in them: what they hold never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

#[derive(Debug)]
struct File {
    path: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

pub(crate) async fn index(headers: HeaderMap) -> Response<Body> {
    serve("/", &headers)
}

pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response<Body> {
    serve(&format!("{ASSETS}{name}"), &headers)
}

fn serve(path: &str, headers: &HeaderMap) -> Response<Body> {
    let Some(file) = files::FILES.iter().find(|file| file.path == path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let zipped = accepts_gzip(headers);
    let mut response = Response::new(Body::from(if zipped { file.gzip } else { file.plain }));
    let kept = if path == "/" { "no-cache" } else { FOR_EVER };
    let words = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "Accept-Encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in words {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if zipped {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether a client said that it unpacks gzip, and did not say in the same breath that it would rather not.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused =
            weight.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    #[test]
    fn the_page_is_asked_for_again_and_its_files_are_kept_for_ever() {
        for file in &files::FILES {
            let response = serve(file.path, &HeaderMap::new());
            let said = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let kept = if file.path == "/" { "no-cache" } else { FOR_EVER };
            assert_eq!(said(header::CACHE_CONTROL), Some(kept), "{}", file.path);
            assert_eq!(said(header::CONTENT_TYPE), Some(file.kind), "{}", file.path);
            assert_eq!(said(header::CONTENT_SECURITY_POLICY), Some(POLICY), "{}", file.path);
            assert_eq!(said(header::CONTENT_ENCODING), None, "{}", file.path);
        }
    }

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let index = files::FILES.iter().find(|file| file.path == "/").map(|file| file.plain);
        let index = String::from_utf8_lossy(index.unwrap_or_default());
        let named: Vec<&str> = index.split('"').filter(|word| word.starts_with(ASSETS)).collect();
        assert!(named.len() >= 2, "a script and a style: {named:?}");
        for name in named {
            assert!(files::FILES.iter().any(|file| file.path == name), "{name}");
        }
    }

    #[test]
    fn packed_files_go_to_those_who_unpack_them() {
        for (codings, packed) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip;q=0.0, br", false),
            ("xgzip", false),
        ] {
            let response = serve("/", &accepting(codings));
            assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), packed, "{codings}");
        }
    }

    #[test]
    fn nothing_else_is_served() {
        for path in ["/assets/", "/assets/../Cargo.toml", "/assets/index.js", "/assets/x.gz"] {
            assert_eq!(serve(path, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}
