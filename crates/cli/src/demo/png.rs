//! A minimal PNG encoder for a square of one color: a palette of one entry, and stored blocks.

/// Red, green, blue.
pub(super) type Color = [u8; 3];

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// One bit per pixel, indexed color, the standard compression and filter methods, no interlacing.
const FORMAT: [u8; 5] = [1, 3, 0, 0, 0];
/// The largest block that deflate can store uncompressed.
const BLOCK: usize = 0xffff;

/// Draws a square of this color with this many pixels on each side.
pub(super) fn square(color: Color, size: u16) -> Vec<u8> {
    let side = u32::from(size).to_be_bytes();
    let header = [&side[..], &side, &FORMAT].concat();
    // Every row is its filter (none) and its pixels, all of which are entry 0 of the palette.
    let rows = vec![0; usize::from(size) * (1 + usize::from(size).div_ceil(8))];
    let mut png = SIGNATURE.to_vec();
    chunk(&mut png, *b"IHDR", &header);
    chunk(&mut png, *b"PLTE", &color);
    chunk(&mut png, *b"IDAT", &stored(&rows));
    chunk(&mut png, *b"IEND", &[]);
    png
}

fn chunk(png: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let named = [&name[..], data].concat();
    png.extend(length.to_be_bytes());
    png.extend(&named);
    png.extend(crc32(&named).to_be_bytes());
}

/// Wraps the data in a zlib stream of uncompressed blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut zlib = vec![0x78, 0x01];
    let mut blocks = data.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let last = u8::from(blocks.peek().is_none());
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        zlib.push(last);
        zlib.extend(length.to_le_bytes());
        zlib.extend((!length).to_le_bytes());
        zlib.extend(block);
    }
    zlib.extend(adler32(data).to_be_bytes());
    zlib
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn adler32(data: &[u8]) -> u32 {
    let (a, b) = data.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::{adler32, crc32, square, stored};

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn a_square_of_one_pixel_is_this_file() {
        let png = square([0xff, 0x80, 0x00], 1);
        let expect = [
            &b"\x89PNG\r\n\x1a\n"[..],
            b"\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x01\x03\0\0\0\x25\xdb\x56\xca",
            b"\0\0\0\x03PLTE\xff\x80\0\x22\x61\x91\x7c",
            b"\0\0\0\x0dIDAT\x78\x01\x01\x02\0\xfd\xff\0\0\0\x02\0\x01\x7e\x05\x0d\xd2",
            b"\0\0\0\0IEND\xae\x42\x60\x82",
        ]
        .concat();
        assert_eq!(png, expect);
    }

    #[test]
    fn data_longer_than_a_block_is_split_and_only_the_last_block_says_so() {
        let zlib = stored(&vec![7; 0x1_0001]);
        assert_eq!(zlib[2..7], [0, 0xff, 0xff, 0, 0]);
        let second = 2 + 5 + 0xffff;
        assert_eq!(zlib[second..second + 7], [1, 2, 0, 0xfd, 0xff, 7, 7]);
        assert_eq!(zlib.len(), second + 7 + 4);
    }
}
