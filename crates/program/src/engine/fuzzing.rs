//! Entry points of the fuzz targets in `fuzz/`, and of the test that replays their corpus. Nothing else calls them. Each
//! takes any bytes and panics if an invariant does not hold.

use bytes::BytesMut;

use super::frame::{LONGEST_QUESTION, ProgramFrame, decode_frame};
use crate::program::ProgramQuestion;

/// Frames of a program: the same frames however the bytes are cut. The first byte says how large the pieces are.
pub fn frames(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let whole = decode_all(bytes, bytes.len().max(1));
    let pieces = decode_all(bytes, usize::from(*size).max(1));
    assert_eq!(whole, pieces, "frames depend on how they are cut");
}

/// Every frame in words, and the refusal that ended them if there was one.
fn decode_all(bytes: &[u8], size: usize) -> (Vec<String>, Option<String>) {
    let (mut inbox, mut seen) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(size) {
        inbox.extend_from_slice(piece);
        loop {
            match decode_frame(&mut inbox) {
                Ok(Some(said)) => {
                    check(&said);
                    seen.push(format!("{said:?}"));
                }
                Ok(None) => break,
                Err(refusal) => return (seen, Some(refusal)),
            }
        }
        assert!(inbox.capacity() <= 2 * LONGEST_QUESTION + 4096, "{} bytes are reserved", inbox.capacity());
    }
    (seen, None)
}

fn check(said: &ProgramFrame) {
    match said {
        ProgramFrame::Output(output) => assert!(output.len() < 1 << 20, "{} bytes of output", output.len()),
        ProgramFrame::Question { question: ProgramQuestion::Call { tool, arguments }, .. } => {
            assert!(tool.len() <= 4096 && arguments.get().starts_with('{'), "{tool:?} {arguments}");
        }
        ProgramFrame::Question { .. }
        | ProgramFrame::Cancel { .. }
        | ProgramFrame::LeftOut { .. }
        | ProgramFrame::Unfinished(_)
        | ProgramFrame::Ending(_) => {}
    }
}
