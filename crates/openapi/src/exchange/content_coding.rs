//! Content encodings. None is requested, but some servers compress responses anyway.

use std::io::{self, Read};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use toolyard_hub::printable::clean_excerpt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
}

/// A decompressed body.
#[derive(Debug, PartialEq)]
pub(super) struct DecodedBody {
    pub(super) bytes: Vec<u8>,
    /// Whether the body exceeds the limit.
    pub(super) cut: bool,
}

impl ContentCoding {
    /// Returns the encoding of a response. The error is the name of an unsupported encoding.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, String> {
        let names = headers.get_all(CONTENT_ENCODING).iter();
        let names: Vec<String> =
            names.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
        let names = names.join(",");
        let mut coding = Self::Identity;
        for name in names.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "identity")) {
            coding = match (coding, name) {
                (Self::Identity, "gzip" | "x-gzip") => Self::Gzip,
                (Self::Identity, "deflate") => Self::Deflate,
                _ => return Err(clean_excerpt(&names, 100)),
            };
        }
        Ok(coding)
    }

    /// Decompresses at most this many bytes: a few compressed bytes can expand to any size.
    pub(super) fn decode(self, bytes: &[u8], most: usize) -> io::Result<DecodedBody> {
        match self {
            Self::Identity => Ok(DecodedBody { bytes: bytes.to_vec(), cut: false }),
            Self::Gzip => read_limited(MultiGzDecoder::new(bytes), most),
            // `deflate` means zlib, but some servers omit its header.
            Self::Deflate => read_limited(ZlibDecoder::new(bytes), most)
                .or_else(|_| read_limited(DeflateDecoder::new(bytes), most)),
        }
    }
}

fn read_limited(decoder: impl Read, most: usize) -> io::Result<DecodedBody> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    decoder.take(limit).read_to_end(&mut bytes)?;
    let cut = bytes.len() > most;
    bytes.truncate(most);
    Ok(DecodedBody { bytes, cut })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderMap;
    use http::header::{CONTENT_ENCODING, HeaderValue};

    use super::{ContentCoding, DecodedBody};

    fn coding_of(value: &'static str) -> Result<ContentCoding, String> {
        ContentCoding::from_headers(&HeaderMap::from_iter([(
            CONTENT_ENCODING,
            HeaderValue::from_static(value),
        )]))
    }

    #[test]
    fn encodings_are_known_by_all_their_names() {
        assert_eq!(ContentCoding::from_headers(&HeaderMap::new()), Ok(ContentCoding::Identity));
        for (name, coding) in [
            ("", ContentCoding::Identity),
            ("Identity", ContentCoding::Identity),
            ("GZIP", ContentCoding::Gzip),
            ("x-gzip, identity", ContentCoding::Gzip),
            ("deflate", ContentCoding::Deflate),
        ] {
            assert_eq!(coding_of(name), Ok(coding), "{name}");
        }
        for name in ["br", "zstd", "gzip, gzip", "gzip, br"] {
            assert_eq!(coding_of(name), Err(name.to_owned()));
        }
    }

    #[test]
    fn what_was_compressed_is_read_and_no_more_than_allowed() {
        let text = b"hello ".repeat(1_000);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        for encoder in [&mut gzip as &mut dyn Write, &mut zlib, &mut deflate] {
            encoder.write_all(&text).unwrap();
        }
        let gzip = gzip.finish().unwrap();
        let whole = DecodedBody { bytes: text.clone(), cut: false };
        assert_eq!(ContentCoding::Gzip.decode(&gzip, text.len()).unwrap(), whole);
        assert_eq!(ContentCoding::Deflate.decode(&zlib.finish().unwrap(), text.len()).unwrap(), whole);
        assert_eq!(ContentCoding::Deflate.decode(&deflate.finish().unwrap(), text.len()).unwrap(), whole);
        let part = DecodedBody { bytes: text[..5_999].to_vec(), cut: true };
        assert_eq!(ContentCoding::Gzip.decode(&gzip, 5_999).unwrap(), part);
        assert!(ContentCoding::Gzip.decode(&gzip[..gzip.len() / 2], 10_000).is_err());
        assert!(ContentCoding::Gzip.decode(b"not gzip", 10_000).is_err());
    }
}
