//! Prints the result of a call for people and for pipes. Text is printed. Anything else is saved to
//! a file or summarized.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::Exit;
use crate::clean::clean_line;
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, print_error, print_hint, print_note, print_stderr_text};

/// One block of a result.
#[derive(Debug, PartialEq)]
pub(super) enum ResultBlock {
    Text(String),
    /// An image, audio, or a file that is not text.
    Binary {
        kind: String,
        bytes: Vec<u8>,
    },
    /// A block of an unknown type, as JSON.
    Other(Value),
}

/// Parses a list of content blocks, or the contents of a resource.
pub(super) fn result_blocks<'a>(blocks: impl Iterator<Item = &'a Value>) -> Vec<ResultBlock> {
    blocks.map(parse_block).collect()
}

fn parse_block(block: &Value) -> ResultBlock {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").map(|text| ResultBlock::Text(text.to_owned())),
        Some("image" | "audio") => decode_binary(block, "data"),
        Some("resource") => block.get("resource").and_then(parse_resource_contents),
        Some("resource_link") => text("uri").map(|uri| ResultBlock::Text(uri.to_owned())),
        Some(_) => None,
        None => parse_resource_contents(block),
    }
    .unwrap_or_else(|| ResultBlock::Other(block.clone()))
}

fn parse_resource_contents(resource: &Value) -> Option<ResultBlock> {
    match resource.get("text").and_then(Value::as_str) {
        Some(text) => Some(ResultBlock::Text(text.to_owned())),
        None => decode_binary(resource, "blob"),
    }
}

fn decode_binary(block: &Value, key: &str) -> Option<ResultBlock> {
    let bytes = STANDARD.decode(block.get(key)?.as_str()?).ok()?;
    let kind = block.get("mimeType").and_then(Value::as_str).unwrap_or("application/octet-stream");
    Some(ResultBlock::Binary { kind: kind.to_owned(), bytes })
}

/// Where a result goes.
pub(super) struct Destination<'a> {
    pub(super) file: Option<&'a Path>,
    /// Whether bytes may go to standard output. True if they are the whole result.
    pub(super) raw_bytes: bool,
}

/// Prints blocks, or saves them.
pub(super) fn print(
    out: &mut StdoutWriter,
    blocks: &[ResultBlock],
    to: &Destination<'_>,
) -> Result<(), CommandError> {
    let has_binary = blocks.iter().any(|block| matches!(block, ResultBlock::Binary { .. }));
    if let (Some(file), false) = (to.file, has_binary) {
        let texts: Vec<String> = blocks.iter().map(block_text).collect();
        return save(file, texts.join("\n").as_bytes());
    }
    let mut saved = 0;
    for block in blocks {
        match (block, to.file) {
            (ResultBlock::Binary { bytes, .. }, Some(file)) => {
                saved += 1;
                save(&numbered(file, saved), bytes)?;
            }
            (ResultBlock::Binary { bytes, .. }, None) if to.raw_bytes && !out.is_terminal() => {
                out.write_bytes(bytes)?
            }
            (ResultBlock::Binary { kind, bytes }, None) => {
                let (kind, length) = (clean_line(kind), bytes.len());
                print_note(&format!("the result contains {kind} ({length} bytes)"));
                print_hint("run with `-o FILE` to save it");
            }
            (ResultBlock::Text(text), _) => match pretty_json(text).filter(|_| out.is_terminal()) {
                Some(pretty) => out.write_text(&pretty)?,
                None => out.write_text(text)?,
            },
            (ResultBlock::Other(value), _) => print_json(out, value)?,
        }
    }
    Ok(())
}

/// Prints JSON: indented on a terminal, on one line in a pipe.
pub(super) fn print_json(out: &mut StdoutWriter, value: &Value) -> Result<(), CommandError> {
    let pretty = out.is_terminal().then(|| serde_json::to_string_pretty(value).ok()).flatten();
    Ok(out.write_text(&pretty.unwrap_or_else(|| value.to_string()))?)
}

/// Prints the message of a failed tool to standard error, because it is not a result.
pub(super) fn print_failure(blocks: &[ResultBlock]) -> Exit {
    if blocks.is_empty() {
        print_error("the tool failed without a message");
    }
    for block in blocks {
        match block {
            ResultBlock::Binary { kind, bytes } => {
                print_note(&format!("the result contains {} ({} bytes)", clean_line(kind), bytes.len()));
            }
            other => print_stderr_text(&block_text(other)),
        }
    }
    Exit::ToolFailed
}

fn block_text(block: &ResultBlock) -> String {
    match block {
        ResultBlock::Text(text) => text.clone(),
        ResultBlock::Binary { .. } => String::new(),
        ResultBlock::Other(value) => value.to_string(),
    }
}

/// Indents JSON. Returns `None` if the text is not JSON, or too large to be read by a person.
fn pretty_json(text: &str) -> Option<String> {
    const LARGEST: usize = 4 * 1024 * 1024;
    let begins = text.trim_start().starts_with(['{', '[']);
    if !begins || text.len() > LARGEST {
        return None;
    }
    serde_json::to_string_pretty(&serde_json::from_str::<Value>(text).ok()?).ok()
}

pub(super) fn save(file: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let written = std::fs::File::create(file).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| {
        CommandError::new(Exit::Failed, format!("cannot write {}: {error}", file.display()))
    })?;
    print_note(&format!("saved {} bytes to {}", bytes.len(), file.display()));
    Ok(())
}

/// Returns the file itself for the first block, and adds a number before the extension for others.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let ending = file.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-{number}{ending}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{ResultBlock, numbered, result_blocks};

    #[test]
    fn every_kind_of_content_becomes_text_bytes_or_json() {
        let blocks = [
            json!({"type": "text", "text": "hi"}),
            json!({"type": "image", "data": "AAEC", "mimeType": "image/png"}),
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}),
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AAEC"}}),
            json!({"type": "resource_link", "uri": "a:b", "name": "link"}),
            json!({"uri": "a:b", "text": "of a resource"}),
            json!({"type": "hologram", "text": "3d"}),
            json!({"type": "image", "data": "!", "mimeType": "image/png"}),
            json!(7),
        ];
        let text = |text: &str| ResultBlock::Text(text.to_owned());
        let bytes = |kind: &str| ResultBlock::Binary { kind: kind.to_owned(), bytes: vec![0, 1, 2] };
        let expected = vec![
            text("hi"),
            bytes("image/png"),
            text("inside"),
            bytes("application/octet-stream"),
            text("a:b"),
            text("of a resource"),
            ResultBlock::Other(blocks[6].clone()),
            ResultBlock::Other(blocks[7].clone()),
            ResultBlock::Other(blocks[8].clone()),
        ];
        assert_eq!(result_blocks(blocks.iter()), expected);
    }

    #[test]
    fn several_files_are_numbered() {
        let name = |number| numbered(Path::new("out/a.png"), number).display().to_string();
        assert_eq!([name(1), name(2)], ["out/a.png", "out/a-2.png"]);
    }
}
