//! Entry points for the fuzz targets in `fuzz/` and for the test that replays their corpus. Each
//! takes arbitrary bytes and panics if an invariant is violated.

use bytes::BytesMut;

use super::frame::{LONGEST_QUESTION, ProgramFrame, decode_frame};
use crate::program::ProgramQuestion;

/// Checks that decoding does not depend on how the bytes are split. The first byte is the chunk
/// size.
pub fn frames(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let whole = decode_all(bytes, bytes.len().max(1));
    let split = decode_all(bytes, usize::from(*size).max(1));
    assert_eq!(whole, split, "decoding depends on how the bytes are split");
}

/// Returns every decoded frame, and the error that ended decoding, if any.
fn decode_all(bytes: &[u8], size: usize) -> (Vec<String>, Option<String>) {
    let (mut inbox, mut frames) = (BytesMut::new(), Vec::new());
    for chunk in bytes.chunks(size) {
        inbox.extend_from_slice(chunk);
        loop {
            match decode_frame(&mut inbox) {
                Ok(Some(frame)) => {
                    check(&frame);
                    frames.push(format!("{frame:?}"));
                }
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(inbox.capacity() <= 2 * LONGEST_QUESTION + 4096, "{} bytes are reserved", inbox.capacity());
    }
    (frames, None)
}

fn check(frame: &ProgramFrame) {
    match frame {
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
