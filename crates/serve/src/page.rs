//! The page at `/`: files that are built from `web` and embedded in the binary. They contain no
//! secrets and need no token; the requests of the page carry the token.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;

mod files;

/// Path prefix of all files except the page itself.
pub(crate) const ASSETS: &str = "/assets/";

/// Content security policy: no other origins, no inline code, no form targets, no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; media-src data: blob:; base-uri 'none'; \
                      frame-ancestors 'none'; form-action 'none'";
/// Cache header of assets. Their names contain a hash of the content, so the content never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

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
    let use_gzip = accepts_gzip(headers);
    let mut response = Response::new(Body::from(if use_gzip { file.gzip } else { file.plain }));
    let cache_control = if path == "/" { "no-cache" } else { IMMUTABLE };
    let response_headers = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, cache_control),
        (header::VARY, "Accept-Encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in response_headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if use_gzip {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns whether the client accepts gzip with a weight above zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
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
    fn the_page_is_revalidated_and_its_assets_are_immutable() {
        for file in &files::FILES {
            let response = serve(file.path, &HeaderMap::new());
            let header_text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let cache_control = if file.path == "/" { "no-cache" } else { IMMUTABLE };
            assert_eq!(header_text(header::CACHE_CONTROL), Some(cache_control), "{}", file.path);
            assert_eq!(header_text(header::CONTENT_TYPE), Some(file.kind), "{}", file.path);
            assert_eq!(header_text(header::CONTENT_SECURITY_POLICY), Some(POLICY), "{}", file.path);
            assert_eq!(header_text(header::CONTENT_ENCODING), None, "{}", file.path);
        }
    }

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let index = files::FILES.iter().find(|file| file.path == "/").map(|file| file.plain);
        let index = String::from_utf8_lossy(index.unwrap_or_default());
        let named: Vec<&str> = index.split('"').filter(|word| word.starts_with(ASSETS)).collect();
        assert!(named.len() >= 2, "expected a script and a stylesheet: {named:?}");
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
