//! Frames on the pipe of one program. The program controls what arrives, so every length, number and
//! name is checked before use. Outgoing frames are trusted.

use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::program::{
    LastValue, ProgramBlock, ProgramData, ProgramQuestion, ProgramReply, ToolBinding, ToolFailure,
    UnawaitedCall, UnfinishedTask,
};

/// The maximum size of a request, including its arguments, in bytes.
pub(super) const LONGEST_QUESTION: usize = 16 << 20;
/// The maximum size of any other frame, in bytes. The worker sends smaller ones.
const LONGEST_OTHER: usize = 1 << 20;
/// The maximum length of a name, query or message, in bytes.
const LONGEST_STRING: usize = 4096;

/// A frame from a program.
#[derive(Debug)]
pub(super) enum ProgramFrame {
    Output(BytesMut),
    Question {
        id: u64,
        question: ProgramQuestion,
    },
    Cancel {
        id: u64,
    },
    /// The number of bytes of output that were omitted so far.
    LeftOut {
        bytes: u64,
    },
    /// The tasks that the program waits for after its last line.
    Unfinished(Vec<UnfinishedTask>),
    Ending(ProgramEndFrame),
}

/// The worker's report of how the program ended.
#[derive(Debug, Deserialize)]
#[serde(tag = "how", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ProgramEndFrame {
    Finished {
        left_out: u64,
        #[serde(default)]
        unawaited: Vec<UnawaitedCall>,
        #[serde(default)]
        unfinished: Vec<UnfinishedTask>,
        value: Option<LastValue>,
    },
    Raised {
        traceback: String,
        left_out: u64,
        #[serde(default)]
        unawaited: Vec<UnawaitedCall>,
        #[serde(default)]
        unfinished: Vec<UnfinishedTask>,
    },
    Memory {
        left_out: u64,
    },
    /// The worker failed.
    Broken {
        why: String,
    },
}

/// A request of any kind. The required fields depend on `ask`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionFrame<'a> {
    id: u64,
    ask: &'a str,
    tool: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    query: Option<String>,
    server: Option<String>,
    limit: Option<u64>,
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
}

/// Takes one complete frame from the input. Returns `None` if it is incomplete, and an error if the
/// worker never sends such a frame.
pub(super) fn decode_frame(inbox: &mut BytesMut) -> Result<Option<ProgramFrame>, String> {
    let Some(header) = inbox.first_chunk::<5>() else { return Ok(None) };
    let [a, b, c, d, kind] = *header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let longest = if kind == b'q' { LONGEST_QUESTION } else { LONGEST_OTHER };
    if length == 0 || length > longest {
        return Err(format!("invalid frame length {length}; expected 1 to {longest} bytes"));
    }
    if inbox.len() < 4 + length {
        inbox.reserve(4 + length - inbox.len());
        return Ok(None);
    }
    inbox.advance(4);
    let mut body = inbox.split_to(length);
    body.advance(1);
    match kind {
        b'o' => Ok(Some(ProgramFrame::Output(body))),
        b'q' => parse_question(&body).map(Some),
        b'c' => {
            let id = body.as_ref().try_into().map_err(|_| "malformed cancel frame".to_owned())?;
            Ok(Some(ProgramFrame::Cancel { id: u64::from_le_bytes(id) }))
        }
        b'l' => {
            let bytes = body.as_ref().try_into().map_err(|_| "malformed output count".to_owned())?;
            Ok(Some(ProgramFrame::LeftOut { bytes: u64::from_le_bytes(bytes) }))
        }
        b'u' => {
            let unfinished = serde_json::from_slice(&body);
            unfinished
                .map(|unfinished| Some(ProgramFrame::Unfinished(unfinished)))
                .map_err(|error| format!("malformed task list: {error}"))
        }
        b'e' => {
            let end = serde_json::from_slice(&body);
            end.map(|end| Some(ProgramFrame::Ending(end)))
                .map_err(|error| format!("malformed end frame: {error}"))
        }
        other => Err(format!("unknown frame kind {other}")),
    }
}

fn parse_question(body: &[u8]) -> Result<ProgramFrame, String> {
    let text = std::str::from_utf8(body).map_err(|_| "malformed request: not UTF-8".to_owned())?;
    let frame: QuestionFrame<'_> =
        serde_json::from_str(text).map_err(|error| format!("malformed request: {error}"))?;
    let id = frame.id;
    let question = match frame.ask {
        "call" => {
            let arguments = frame.arguments.filter(|arguments| arguments.get().starts_with('{'));
            let arguments = arguments.ok_or("the arguments of a call are not an object")?;
            ProgramQuestion::Call { tool: required_string(frame.tool)?, arguments: arguments.to_owned() }
        }
        "face" => ProgramQuestion::Binding { tool: required_string(frame.tool)? },
        "inspect" => ProgramQuestion::Inspect { tool: required_string(frame.tool)? },
        "search" => {
            let server = frame.server.map(check_length).transpose()?;
            ProgramQuestion::Search { query: required_string(frame.query)?, server, limit: frame.limit }
        }
        "progress" => {
            let progress = frame.progress.ok_or("progress without a value")?;
            let message = frame.message.map(check_length).transpose()?;
            ProgramQuestion::Progress { progress, total: frame.total, message }
        }
        other => {
            return Err(format!("unknown request kind {:?}", other.chars().take(40).collect::<String>()));
        }
    };
    Ok(ProgramFrame::Question { id, question })
}

fn required_string(name: Option<String>) -> Result<String, String> {
    check_length(name.ok_or("a request without a name")?)
}

fn check_length(text: String) -> Result<String, String> {
    if text.len() <= LONGEST_STRING {
        Ok(text)
    } else {
        Err(format!("a string of {} bytes exceeds the limit of {LONGEST_STRING} bytes", text.len()))
    }
}

/// Encodes the program for the worker.
pub(super) fn encode_program(
    code: &str,
    bindings: &[ToolBinding],
    output: u64,
) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::json!({ "code": code, "faces": bindings, "output": output });
    Ok(encode_frame(b'p', serde_json::to_vec(&body)?))
}

/// Encodes a reply. The ID comes first, so that the worker can match the reply without parsing it.
pub(super) fn encode_reply(id: u64, reply: &ProgramReply) -> Result<Vec<u8>, serde_json::Error> {
    let (kind, rest) = match reply {
        ProgramReply::Data(data) => encode_data(data)?,
        ProgramReply::Binding(binding) => (b'f', serde_json::to_vec(binding)?),
        ProgramReply::Failed(ToolFailure { message, kind, tool, details }) => {
            let failure =
                serde_json::json!({ "message": message, "kind": kind, "tool": tool, "details": details });
            (b'x', serde_json::to_vec(&failure)?)
        }
    };
    let mut body = Vec::with_capacity(rest.len() + 8);
    body.extend(id.to_le_bytes());
    body.extend(rest);
    Ok(encode_frame(kind, body))
}

fn encode_data(data: &ProgramData) -> Result<(u8, Vec<u8>), serde_json::Error> {
    Ok(match data {
        ProgramData::Json(raw) => (b'j', raw.get().as_bytes().to_vec()),
        ProgramData::Text(text) => (b't', text.as_bytes().to_vec()),
        ProgramData::Blocks(blocks) => {
            (b'b', serde_json::to_vec(&blocks.iter().map(BlockFrame::from_block).collect::<Vec<_>>())?)
        }
        // The length and JSON of status and headers, followed by the kind and encoding of the data.
        ProgramData::Http { data: inner, http } => {
            let (kind, rest) = encode_data(inner)?;
            let http = http.get().as_bytes();
            let mut body = Vec::with_capacity(http.len() + rest.len() + 5);
            body.extend(u32::try_from(http.len()).unwrap_or(u32::MAX).to_le_bytes());
            body.extend(http);
            body.push(kind);
            body.extend(rest);
            (b'h', body)
        }
    })
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum BlockFrame<'a> {
    Json { json: &'a RawValue },
    Text { text: &'a str },
    Media { kind: &'a str, mime_type: &'a str, base64: &'a str, uri: Option<&'a str> },
}

impl<'a> BlockFrame<'a> {
    fn from_block(block: &'a ProgramBlock) -> Self {
        match block {
            ProgramBlock::Json(raw) => Self::Json { json: raw },
            ProgramBlock::Text(text) => Self::Text { text },
            ProgramBlock::Media { kind, mime_type, base64, uri } => {
                Self::Media { kind, mime_type, base64, uri: uri.as_deref() }
            }
        }
    }
}

/// Encodes a frame. A body whose length does not fit into four bytes exceeds all other limits.
fn encode_frame(kind: u8, body: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(body.len() + 5);
    frame.extend(length.to_le_bytes());
    frame.push(kind);
    frame.extend(body);
    frame
}
