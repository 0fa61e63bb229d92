//! One call: how it goes, and then what came of it.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::showing::draw_tabs;
use super::{Filling, Keys, Plan, Screen, Step};
use crate::calls::{CallState, OneCall};
use crate::canvas::{Canvas, inset, top};
use crate::key::Key;
use crate::message::{CallId, Effect};
use crate::popup::Popup;
use crate::result::{Document, Read, error_text, is_large, sections};
use crate::text::{clean, clip, size, span, width};
use crate::thing::Thing;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Calling {
    id: CallId,
    tab: usize,
    /// Made when the call is over.
    content: Option<Document>,
    json: Option<Document>,
}

/// A key that a document had to do with, as a step.
pub(super) fn read(read: Read) -> Step {
    match read {
        Read::Stay => Step::Stay,
        Read::Ignored => Step::Ignored,
        Read::Save(name, contents) => Step::Do(Effect::Save(name, contents)),
        Read::Open(name, text) => {
            Step::Go(Box::new(Screen::Text(clean(&name).into_owned(), Document::of_text(text))))
        }
        Read::Say(text) => Step::Warn(text),
    }
}

impl Calling {
    pub(crate) fn new(id: CallId) -> Self {
        Self { id, tab: 0, content: None, json: None }
    }

    pub(crate) fn id(&self) -> CallId {
        self.id
    }

    pub(crate) fn title(&self, world: &World) -> String {
        let running = world.calls.get(self.id).is_some_and(OneCall::is_running);
        if running { "running".to_owned() } else { "result".to_owned() }
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.content.as_ref().is_some_and(Document::is_typing)
            || self.json.as_ref().is_some_and(Document::is_typing)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(document) = self.document() {
            document.paste(text);
        }
    }

    fn document(&mut self) -> Option<&mut Document> {
        if self.tab == 0 { self.content.as_mut() } else { self.json.as_mut() }
    }

    /// Makes what is shown of a call that is over.
    fn settle(&mut self, world: &World) {
        if self.content.is_some() {
            return;
        }
        match world.calls.get(self.id).map(|call| &call.state) {
            Some(CallState::Answered(outcome, _)) => {
                self.content = Some(Document::new(sections(outcome)));
                self.json = (!is_large(outcome)).then(|| Document::of_json(Arc::from(outcome.body.get())));
            }
            Some(CallState::Broken(error, _)) => self.content = Some(Document::of_text(error_text(error))),
            Some(CallState::Forgotten(_)) | None => {
                self.content =
                    Some(Document::of_text("The result was let go of to make room for newer ones."));
            }
            Some(CallState::Running) => {}
        }
    }

    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        self.settle(world);
        let Some(call) = world.calls.get(self.id) else { return Step::Ignored };
        if call.is_running() {
            return match key {
                Key::Char('x') | Key::Ctrl('c') => Step::Do(Effect::Cancel(self.id)),
                _ => Step::Ignored,
            };
        }
        if !self.is_typing() {
            match key {
                Key::Tab | Key::BackTab if self.json.is_some() => {
                    self.tab = 1 - self.tab;
                    return Step::Stay;
                }
                Key::Char('r') => return repeat(call, world),
                Key::Char('e') => return edit(call, world),
                Key::Char('y') => return Step::Popup(Box::new(Popup::copy(call))),
                _ => {}
            }
        }
        match self.document() {
            Some(document) => read(document.press(key)),
            None => Step::Ignored,
        }
    }

    pub(crate) fn keys(&self, world: &World) -> Keys {
        if world.calls.get(self.id).is_some_and(OneCall::is_running) {
            return vec![("x", "cancel"), ("Esc", "leave it running"), ("L", "log"), ("?", "help")];
        }
        if self.is_typing() {
            return vec![("type", "search"), ("Enter", "find"), ("Esc", "close")];
        }
        let mut keys = vec![("↑↓", "move")];
        if matches!(world.calls.get(self.id).map(|call| &call.state), Some(CallState::Answered(..))) {
            if self.json.is_some() {
                keys.push(("Tab", if self.tab == 0 { "JSON" } else { "content" }));
            }
            keys.extend([("Enter", "fold"), ("/", "search"), ("s", "save")]);
        }
        keys.extend([("y", "copy"), ("r", "repeat"), ("e", "edit"), ("Esc", "back"), ("?", "help")]);
        keys
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        self.settle(world);
        let Some(call) = world.calls.get(self.id) else { return };
        if call.is_running() {
            draw_running(canvas, inset(area, 1), call, world);
            return;
        }
        let (head, body) = top(area, 3);
        let (mark, words) = verdict(call);
        let theme = canvas.theme;
        let style = match &call.state {
            CallState::Answered(outcome, _) if !outcome.failed => theme.good(),
            CallState::Forgotten(_) => theme.dim(),
            _ => theme.bad(),
        };
        let name = clip(&clean(&call.subject.raw_name), usize::from(head.width) / 2).into_owned();
        let mut spans = vec![Span::styled(format!(" {mark} "), style), Span::styled(name, theme.strong())];
        spans.push(Span::raw(format!(" {words}")));
        canvas.line(head, 0, &Line::from(spans));
        let tabs: &[&str] = match (&self.json, &call.state) {
            (Some(_), _) => &["Content", "JSON"],
            (None, CallState::Answered(..)) => &["JSON"],
            (None, _) => &["Error"],
        };
        draw_tabs(canvas, top(head, 1).1, tabs, self.tab);
        canvas.rule(head, 2);
        if let Some(document) = self.document() {
            document.draw(canvas, inset(body, 1));
            let place = document.whereabouts();
            let right = Rect {
                x: head.right().saturating_sub(u16::try_from(width(&place) + 1).unwrap_or(0)),
                ..head
            };
            canvas.text(right, 1, &place, theme.dim());
        }
    }
}

/// How a call ended, in a mark and in words.
pub(super) fn verdict(call: &OneCall) -> (&'static str, String) {
    match &call.state {
        CallState::Running => ("◌", "is running".to_owned()),
        CallState::Answered(outcome, took) if outcome.failed => {
            ("✗", format!("says that it failed · {} · {}", span(*took), size(outcome.body.get().len())))
        }
        CallState::Answered(outcome, took) => {
            ("✓", format!("answered · {} · {}", span(*took), size(outcome.body.get().len())))
        }
        CallState::Broken(error, took) => ("✗", format!("{} · {}", error.kind().as_str(), span(*took))),
        CallState::Forgotten(took) => ("·", format!("answered · {}", span(*took))),
    }
}

/// The same call once more.
pub(super) fn repeat(call: &OneCall, world: &World) -> Step {
    let thing = thing_of(call, world);
    Step::Call(Box::new(Plan { thing, subject: call.subject.clone() }))
}

/// The same call with other arguments.
pub(super) fn edit(call: &OneCall, world: &World) -> Step {
    match thing_of(call, world) {
        Some(Thing::Resource(_)) => Step::Say("a resource takes no arguments; r reads it again".to_owned()),
        Some(thing) => Step::Go(Box::new(Screen::Filling(Filling::again(thing, &call.subject)))),
        None => Step::Warn("it is not offered any more".to_owned()),
    }
}

/// What was called, as it is offered now.
pub(super) fn thing_of(call: &OneCall, world: &World) -> Option<Thing> {
    use toolyard_hub::{Lookup, What};
    let catalog = world.yard.view.catalog();
    let subject = &call.subject;
    match &subject.what {
        What::Tool { name, .. } => match catalog.tool(name) {
            Lookup::Found(tool) => Some(Thing::Tool(tool)),
            Lookup::Ambiguous(_) | Lookup::Unknown => None,
        },
        What::Prompt { name, .. } => match catalog.prompt(name) {
            Lookup::Found(prompt) => Some(Thing::Prompt(prompt)),
            Lookup::Ambiguous(_) | Lookup::Unknown => None,
        },
        What::Resource { uri } => {
            let resource = catalog.resource_of(&subject.source, uri).cloned().map(Thing::Resource);
            resource.or_else(|| catalog.template_of(&subject.source, uri).cloned().map(Thing::Template))
        }
        What::Completion { .. } => None,
    }
}

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// A sign that something moves.
pub(crate) fn spinner(world: &World) -> &'static str {
    let tenths =
        world.now.wall.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis()
            / 100;
    SPINNER[usize::try_from(tenths % 8).unwrap_or(0)]
}

fn draw_running(canvas: &mut Canvas<'_>, area: Rect, call: &OneCall, world: &World) {
    let theme = canvas.theme;
    let took = world.now.instant.saturating_duration_since(call.began.instant);
    let state = if call.cancelling { "is being cancelled" } else { "is running" };
    canvas.line(
        area,
        0,
        &Line::from(vec![
            Span::styled(format!("{} ", spinner(world)), theme.accent()),
            Span::styled(clean(&call.subject.raw_name).into_owned(), theme.strong()),
            Span::raw(format!(" {state} · {}", span(took))),
        ]),
    );
    if let Some(progress) = &call.progress {
        canvas.text(area, 2, &bar(progress, usize::from(area.width)), theme.accent());
        if let Some(message) = &progress.message {
            canvas.text(area, 3, &clean(message), theme.plain());
        }
    }
    let (_, said) = top(area, 5);
    let height = usize::from(said.height);
    let skipped = call.heard.len().saturating_sub(height);
    for (line, text) in call.heard.iter().skip(skipped).enumerate() {
        canvas.text(said, line, &clean(text), theme.dim());
    }
}

/// How far a call is.
fn bar(progress: &toolyard_hub::Progress, columns: usize) -> String {
    let number =
        |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    let Some(total) = progress.total.filter(|total| *total > 0.0) else {
        return format!("{} so far", number(progress.progress));
    };
    let share = (progress.progress / total).clamp(0.0, 1.0);
    let room = columns.saturating_sub(24).clamp(10, 50);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "columns"
    )]
    let full = (share * room as f64).round() as usize;
    format!(
        "{}{} {:>3.0} %  {} of {}",
        "█".repeat(full),
        "░".repeat(room - full),
        share * 100.0,
        number(progress.progress),
        number(total)
    )
}
