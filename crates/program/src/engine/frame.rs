//! Frames on the pipe of one program. What arrives was written by the program, so every length, number and word is checked
//! before anything is done with it; what goes out is ours.

use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::program::{
    LastValue, ProgramBlock, ProgramData, ProgramQuestion, ProgramReply, ToolBinding, ToolFailure,
    UnawaitedCall, UnfinishedTask,
};

/// The longest question, arguments included.
pub(super) const LONGEST_QUESTION: usize = 16 << 20;
/// The longest piece of output, and the longest ending; the worker says both in smaller pieces.
const LONGEST_OTHER: usize = 1 << 20;
const LONGEST_WORD: usize = 4096;

/// Something that a program said.
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
    /// How many bytes of output were left out so far.
    LeftOut {
        bytes: u64,
    },
    /// The tasks that it waits for after its last line.
    Unfinished(Vec<UnfinishedTask>),
    Ending(ProgramEndFrame),
}

/// How the program says that it ended.
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
    /// Our own part in it could not do its work.
    Broken {
        why: String,
    },
}

/// Any question; which fields there must be depends on what is asked.
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

/// Takes one whole frame out of what has arrived; nothing if more has to come; words if no honest program says this.
pub(super) fn decode_frame(inbox: &mut BytesMut) -> Result<Option<ProgramFrame>, String> {
    let Some(header) = inbox.first_chunk::<5>() else { return Ok(None) };
    let [a, b, c, d, kind] = *header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let longest = if kind == b'q' { LONGEST_QUESTION } else { LONGEST_OTHER };
    if length == 0 || length > longest {
        return Err(format!("a frame of {length} bytes, where 1 to {longest} are allowed"));
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
            let id = body.as_ref().try_into().map_err(|_| "a cancellation that is no number".to_owned())?;
            Ok(Some(ProgramFrame::Cancel { id: u64::from_le_bytes(id) }))
        }
        b'l' => {
            let bytes = body.as_ref().try_into().map_err(|_| "a length that is no number".to_owned())?;
            Ok(Some(ProgramFrame::LeftOut { bytes: u64::from_le_bytes(bytes) }))
        }
        b'u' => {
            let unfinished = serde_json::from_slice(&body);
            unfinished
                .map(|unfinished| Some(ProgramFrame::Unfinished(unfinished)))
                .map_err(|error| format!("tasks that are none: {error}"))
        }
        b'e' => {
            let ended = serde_json::from_slice(&body);
            ended
                .map(|ended| Some(ProgramFrame::Ending(ended)))
                .map_err(|error| format!("an ending that is none: {error}"))
        }
        other => Err(format!("a frame of the unknown kind {other}")),
    }
}

fn parse_question(body: &[u8]) -> Result<ProgramFrame, String> {
    let text = std::str::from_utf8(body).map_err(|_| "a question that is not UTF-8".to_owned())?;
    let asks: QuestionFrame<'_> =
        serde_json::from_str(text).map_err(|error| format!("a question that is none: {error}"))?;
    let id = asks.id;
    let question = match asks.ask {
        "call" => {
            let arguments = asks.arguments.filter(|arguments| arguments.get().starts_with('{'));
            let arguments = arguments.ok_or("a call whose arguments are no object")?;
            ProgramQuestion::Call { tool: required_string(asks.tool)?, arguments: arguments.to_owned() }
        }
        "face" => ProgramQuestion::Binding { tool: required_string(asks.tool)? },
        "inspect" => ProgramQuestion::Inspect { tool: required_string(asks.tool)? },
        "search" => {
            let server = asks.server.map(check_length).transpose()?;
            ProgramQuestion::Search { query: required_string(asks.query)?, server, limit: asks.limit }
        }
        "progress" => {
            let progress = asks.progress.ok_or("progress without a number")?;
            let message = asks.message.map(check_length).transpose()?;
            ProgramQuestion::Progress { progress, total: asks.total, message }
        }
        other => {
            return Err(format!(
                "a question of the unknown kind {:?}",
                other.chars().take(40).collect::<String>()
            ));
        }
    };
    Ok(ProgramFrame::Question { id, question })
}

fn required_string(name: Option<String>) -> Result<String, String> {
    check_length(name.ok_or("a question without a name")?)
}

fn check_length(word: String) -> Result<String, String> {
    if word.len() <= LONGEST_WORD { Ok(word) } else { Err(format!("a name of {} bytes", word.len())) }
}

/// What the worker is to run.
pub(super) fn encode_program(
    code: &str,
    faces: &[ToolBinding],
    output: u64,
) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::json!({ "code": code, "faces": faces, "output": output });
    Ok(encode_frame(b'p', serde_json::to_vec(&body)?))
}

/// The answer to a question. The number is in front, so that the worker need not read the rest to know whose it is.
pub(super) fn encode_reply(id: u64, reply: &ProgramReply) -> Result<Vec<u8>, serde_json::Error> {
    let (kind, rest) = match reply {
        ProgramReply::Data(given) => encode_data(given)?,
        ProgramReply::Binding(face) => (b'f', serde_json::to_vec(face)?),
        ProgramReply::Failed(ToolFailure { message, kind, tool, details }) => {
            let words =
                serde_json::json!({ "message": message, "kind": kind, "tool": tool, "details": details });
            (b'x', serde_json::to_vec(&words)?)
        }
    };
    let mut body = Vec::with_capacity(rest.len() + 8);
    body.extend(id.to_le_bytes());
    body.extend(rest);
    Ok(encode_frame(kind, body))
}

fn encode_data(given: &ProgramData) -> Result<(u8, Vec<u8>), serde_json::Error> {
    Ok(match given {
        ProgramData::Json(raw) => (b'j', raw.get().as_bytes().to_vec()),
        ProgramData::Text(text) => (b't', text.as_bytes().to_vec()),
        ProgramData::Blocks(blocks) => {
            (b'b', serde_json::to_vec(&blocks.iter().map(BlockFrame::from_block).collect::<Vec<_>>())?)
        }
        // Status and headers come first, with their length, and then what would have come without them.
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

/// Whatever is longer than four bytes can say is longer than any program may be or any memory may hold.
fn encode_frame(kind: u8, body: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(body.len() + 5);
    frame.extend(length.to_le_bytes());
    frame.push(kind);
    frame.extend(body);
    frame
}
