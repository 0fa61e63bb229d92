//! Splits a result into sections: content blocks of tools, contents of resources, messages of
//! prompts.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::{HubError, Outcome};

use super::tree::is_structured;
use super::{ResultTree, SectionBody, TextPage};
use crate::message::SaveContents;
use crate::text::{clean, format_size};

/// How many blocks are shown; the JSON contains all of them.
const MOST: usize = 200;

/// A result larger than this is shown as folding JSON only, where just the visible part costs time.
const LARGE: usize = 8_000_000;

/// One section of a result.
#[derive(Debug)]
pub(crate) struct ResultSection {
    pub(crate) title: Option<String>,
    pub(crate) body: SectionBody,
    /// The file name and the contents for saving.
    pub(crate) save: Option<(String, SaveContents)>,
}

impl ResultSection {
    fn note(title: Option<String>, text: impl Into<String>) -> Self {
        Self { title, body: SectionBody::Note(text.into()), save: None }
    }

    fn text(title: Option<String>, text: Arc<str>) -> Self {
        let name = if is_structured(&text) { "result.json" } else { "result.txt" };
        let save = Some((name.to_owned(), SaveContents::Text(Arc::clone(&text))));
        let body = match is_structured(&text) {
            true => SectionBody::Tree(ResultTree::new(text)),
            false => SectionBody::Text(TextPage::new(text)),
        };
        Self { title, body, save }
    }
}

/// Splits an outcome into sections.
pub(crate) fn sections(outcome: &Outcome) -> Vec<ResultSection> {
    let whole = outcome.body.get();
    if is_large(outcome) {
        let title =
            Some(format!("{} of JSON; press Enter to unfold or to open long text", format_size(whole.len())));
        let text: Arc<str> = Arc::from(whole);
        let save = Some(("result.json".to_owned(), SaveContents::Text(Arc::clone(&text))));
        return vec![ResultSection { title, body: SectionBody::Tree(ResultTree::new(text)), save }];
    }
    let object = Object::parse(&outcome.body).unwrap_or_default();
    let mut sections = Vec::new();
    for key in ["content", "contents"] {
        for block in parse_list(object.get(key)).iter().take(MOST) {
            sections.push(block_section(block, None));
        }
        let left = parse_list(object.get(key)).len().saturating_sub(MOST);
        if left > 0 {
            sections.push(ResultSection::note(None, format!("… and {left} more; see the JSON view")));
        }
    }
    for message in parse_list(object.get("messages")).iter().take(MOST) {
        let message = Object::parse(message).unwrap_or_default();
        let role = message.get("role").and_then(parse_string).unwrap_or_default();
        match message.get("content") {
            Some(content) => sections.push(block_section(content, Some(clean(&role).into_owned()))),
            None => sections.push(ResultSection::note(Some(role), "(empty)")),
        }
    }
    if let Some(structured) = object.get("structuredContent") {
        // Most servers repeat the structured content as text for older clients; it is shown once.
        let text = structured.get();
        let same = |section: &ResultSection| matches!(&section.body, SectionBody::Tree(tree) if is_same_json(tree.text(), text));
        if let Some(repeated) = sections.iter_mut().find(|section| same(section)) {
            repeated.title = Some("structured content".to_owned());
        } else {
            sections.push(ResultSection::text(Some("structured content".to_owned()), Arc::from(text)));
        }
    }
    if sections.is_empty() {
        let text: Arc<str> = Arc::from(outcome.body.get());
        let empty = matches!(outcome.body.get().trim(), "{}" | "null");
        sections.push(if empty {
            ResultSection::note(None, "(empty result)")
        } else {
            ResultSection::text(None, text)
        });
    }
    // A single text needs no heading.
    if let [only] = sections.as_mut_slice()
        && only.title.as_deref() == Some("text")
    {
        only.title = None;
    }
    sections
}

/// Whether a result is shown as JSON only.
pub(crate) fn is_large(outcome: &Outcome) -> bool {
    outcome.body.get().len() > LARGE
}

/// Formats an error: the message, then the hint and the details.
pub(crate) fn error_text(error: &HubError) -> String {
    let mut text = format!("{}: {}", error.kind().as_str(), error.message());
    if let Some(suggestion) = error.suggestion() {
        text.push_str("\nhint: ");
        text.push_str(suggestion);
    }
    if let Some(details) = error.details() {
        text.push_str("\n\n");
        text.push_str(&serde_json::to_string_pretty(details).unwrap_or_default());
    }
    text
}

fn is_same_json(one: &str, other: &str) -> bool {
    const MOST: usize = 1_000_000;
    one == other
        || (one.len() < MOST
            && other.len() < MOST
            && serde_json::from_str::<Value>(one).ok() == serde_json::from_str::<Value>(other).ok())
}

fn parse_list(value: Option<&RawValue>) -> Vec<Box<RawValue>> {
    value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}

fn parse_string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn block_section(raw: &RawValue, role: Option<String>) -> ResultSection {
    let Ok(block) = Object::parse(raw) else {
        return ResultSection::text(role, Arc::from(raw.get()));
    };
    let member = |key: &str| block.get(key).and_then(parse_string);
    let kind = member("type");
    let titled = |what: &str| {
        Some(match &role {
            Some(role) => format!("{role}: {what}"),
            None => what.to_owned(),
        })
    };
    let media = member("mimeType");
    let typed = |what: &str| match &media {
        Some(media) => titled(&format!("{what}, {}", clean(media))),
        None => titled(what),
    };
    match kind.as_deref() {
        Some("text") => ResultSection::text(titled("text"), member("text").unwrap_or_default().into()),
        Some(kind @ ("image" | "audio")) => {
            binary_section(typed(kind), member("data"), media.as_deref(), kind)
        }
        Some("resource") => match block.get("resource") {
            Some(resource) => block_section(resource, Some("resource".to_owned())),
            None => ResultSection::text(role, Arc::from(raw.get())),
        },
        Some("resource_link") => {
            let uri = member("uri").unwrap_or_default();
            ResultSection::note(titled("resource link"), clean(&uri).into_owned())
        }
        // The contents of a resource have a URI instead of a type.
        _ if block.contains("uri") => {
            let uri = member("uri").unwrap_or_default();
            let title = match &media {
                Some(media) => titled(&format!("{} ({})", clean(&uri), clean(media))),
                None => titled(&clean(&uri)),
            };
            match (member("text"), member("blob")) {
                (Some(text), _) => ResultSection::text(title, text.into()),
                (None, blob) => binary_section(title, blob, media.as_deref(), "resource"),
            }
        }
        _ => ResultSection::text(titled("unknown content"), Arc::from(raw.get())),
    }
}

fn binary_section(
    title: Option<String>,
    data: Option<String>,
    media: Option<&str>,
    name: &str,
) -> ResultSection {
    let Some(data) = data else { return ResultSection::note(title, "(no data)") };
    let bytes = data.trim_end_matches('=').len() * 3 / 4;
    let ending = match media.and_then(|media| media.split(';').next()) {
        Some("image/png") => "png",
        Some("image/jpeg") => "jpg",
        Some("image/gif") => "gif",
        Some("image/webp") => "webp",
        Some("image/svg+xml") => "svg",
        Some("audio/wav" | "audio/x-wav") => "wav",
        Some("audio/mpeg") => "mp3",
        Some("audio/ogg") => "ogg",
        Some("application/pdf") => "pdf",
        Some("application/zip") => "zip",
        Some("application/gzip") => "gz",
        _ => "bin",
    };
    let text = format!("{} of data; press s to save it to a file", format_size(bytes));
    ResultSection {
        title,
        body: SectionBody::Note(text),
        save: Some((format!("{name}.{ending}"), SaveContents::Base64(data.into()))),
    }
}
