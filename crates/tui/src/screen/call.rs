//! One call: its progress, then its result.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use toolyard_hub::ErrorKind;

use super::item::draw_tabs;
use super::{ArgumentsScreen, CallPlan, KeyHints, Screen, ScreenAction};
use crate::calls::{CallState, SessionCall};
use crate::canvas::{Canvas, inset, split_top};
use crate::catalog_item::CatalogItem;
use crate::key::KeyPress;
use crate::message::{CallId, Effect};
use crate::popup::Popup;
use crate::result::{ResultAction, ResultDocument, error_text, is_large, sections};
use crate::text::{clean, clip, format_duration, format_size, width};
use crate::ui_state::UiState;

#[derive(Debug)]
pub(crate) struct CallScreen {
    id: CallId,
    tab: usize,
    /// Created when the call has ended.
    content: Option<ResultDocument>,
    json: Option<ResultDocument>,
}

/// Converts the result of a key press in a document into a screen action.
pub(super) fn result_action_to_screen(read: ResultAction) -> ScreenAction {
    match read {
        ResultAction::Stay => ScreenAction::Stay,
        ResultAction::Ignored => ScreenAction::Ignored,
        ResultAction::Save(name, contents) => ScreenAction::Run(Effect::Save(name, contents)),
        ResultAction::Open(name, text) => ScreenAction::Open(Box::new(Screen::Text(
            clean(&name).into_owned(),
            ResultDocument::from_text(text),
        ))),
        ResultAction::Notify(text) => ScreenAction::Warn(text),
    }
}

impl CallScreen {
    pub(crate) fn new(id: CallId) -> Self {
        Self { id, tab: 0, content: None, json: None }
    }

    pub(crate) fn id(&self) -> CallId {
        self.id
    }

    pub(crate) fn title(&self, world: &UiState) -> String {
        let running = world.calls.get(self.id).is_some_and(SessionCall::is_running);
        if running { "running".to_owned() } else { "result".to_owned() }
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.content.as_ref().is_some_and(ResultDocument::is_typing)
            || self.json.as_ref().is_some_and(ResultDocument::is_typing)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(document) = self.document() {
            document.paste(text);
        }
    }

    fn document(&mut self) -> Option<&mut ResultDocument> {
        if self.tab == 0 { self.content.as_mut() } else { self.json.as_mut() }
    }

    /// Creates the documents for a call that has ended.
    fn load_result(&mut self, world: &UiState) {
        if self.content.is_some() {
            return;
        }
        match world.calls.get(self.id).map(|call| &call.state) {
            Some(CallState::Answered(outcome, _)) => {
                self.content = Some(ResultDocument::new(sections(outcome)));
                self.json =
                    (!is_large(outcome)).then(|| ResultDocument::from_json(Arc::from(outcome.body.get())));
            }
            Some(CallState::Errored(error, _)) => {
                self.content = Some(ResultDocument::from_text(error_text(error)))
            }
            Some(CallState::Evicted(..)) | None => {
                self.content = Some(ResultDocument::from_text(
                    "The result was dropped to free memory for newer results.",
                ));
            }
            Some(CallState::Running) => {}
        }
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        self.load_result(world);
        let Some(call) = world.calls.get(self.id) else { return ScreenAction::Ignored };
        if call.is_running() {
            return match key {
                KeyPress::Char('x') | KeyPress::Ctrl('c') => ScreenAction::Run(Effect::Cancel(self.id)),
                _ => ScreenAction::Ignored,
            };
        }
        if !self.is_typing() {
            match key {
                KeyPress::Tab | KeyPress::BackTab if self.json.is_some() => {
                    self.tab = 1 - self.tab;
                    return ScreenAction::Stay;
                }
                KeyPress::Char('r') => return repeat(call, world),
                KeyPress::Char('e') => return edit(call, world),
                KeyPress::Char('y') => return ScreenAction::Popup(Box::new(Popup::copy_menu(call))),
                _ => {}
            }
        }
        match self.document() {
            Some(document) => result_action_to_screen(document.press(key)),
            None => ScreenAction::Ignored,
        }
    }

    pub(crate) fn keys(&self, world: &UiState) -> KeyHints {
        if world.calls.get(self.id).is_some_and(SessionCall::is_running) {
            return vec![("x", "cancel"), ("Esc", "leave running"), ("L", "log"), ("?", "help")];
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

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        self.load_result(world);
        let Some(call) = world.calls.get(self.id) else { return };
        if call.is_running() {
            draw_running(canvas, inset(area, 1), call, world);
            return;
        }
        let (head, body) = split_top(area, 3);
        let (mark, words) = outcome_label(call);
        let theme = canvas.theme;
        let style = match &call.state {
            CallState::Answered(outcome, _) if !outcome.failed => theme.good(),
            CallState::Evicted(..) => theme.dim(),
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
        draw_tabs(canvas, split_top(head, 1).1, tabs, self.tab);
        canvas.rule(head, 2);
        if let Some(document) = self.document() {
            document.draw(canvas, inset(body, 1));
            let place = document.position_label();
            let right = Rect {
                x: head.right().saturating_sub(u16::try_from(width(&place) + 1).unwrap_or(0)),
                ..head
            };
            canvas.text(right, 1, &place, theme.dim());
        }
    }
}

/// Describes how a call ended, as a mark and a text.
pub(super) fn outcome_label(call: &SessionCall) -> (&'static str, String) {
    let status = call.status().as_str();
    match &call.state {
        CallState::Running => ("◌", status.to_owned()),
        CallState::Answered(outcome, took) => {
            let mark = if outcome.failed { "✗" } else { "✓" };
            let size = format_size(outcome.body.get().len());
            (mark, format!("{status} · {} · {size}", format_duration(*took)))
        }
        CallState::Errored(error, took) if error.kind() == ErrorKind::Cancelled => {
            ("✗", format!("{status} · {}", format_duration(*took)))
        }
        CallState::Errored(error, took) => {
            ("✗", format!("{status}: {} · {}", error.kind().as_str(), format_duration(*took)))
        }
        CallState::Evicted(_, took) => ("·", format!("{status} · {}", format_duration(*took))),
    }
}

/// Repeats a call.
pub(super) fn repeat(call: &SessionCall, world: &UiState) -> ScreenAction {
    let thing = current_item(call, world);
    ScreenAction::Call(Box::new(CallPlan { thing, subject: call.subject.clone() }))
}

/// Opens the form to repeat a call with different arguments.
pub(super) fn edit(call: &SessionCall, world: &UiState) -> ScreenAction {
    match current_item(call, world) {
        Some(CatalogItem::Resource(_)) => {
            ScreenAction::Notify("a resource takes no arguments; press r to read it again".to_owned())
        }
        Some(thing) => {
            ScreenAction::Open(Box::new(Screen::Arguments(ArgumentsScreen::from_call(thing, &call.subject))))
        }
        None => ScreenAction::Warn("this item is no longer available".to_owned()),
    }
}

/// Returns the called item as it is in the catalog now.
pub(super) fn current_item(call: &SessionCall, world: &UiState) -> Option<CatalogItem> {
    use toolyard_hub::{CallTarget, Lookup};
    let catalog = world.yard.view.catalog();
    let subject = &call.subject;
    match &subject.target {
        CallTarget::Tool { name, .. } => match catalog.tool(name) {
            Lookup::Found(tool) => Some(CatalogItem::Tool(tool)),
            Lookup::Ambiguous(_) | Lookup::Unknown => None,
        },
        CallTarget::Prompt { name, .. } => match catalog.prompt(name) {
            Lookup::Found(prompt) => Some(CatalogItem::Prompt(prompt)),
            Lookup::Ambiguous(_) | Lookup::Unknown => None,
        },
        CallTarget::Resource { uri } => {
            let resource =
                catalog.resource_in_source(&subject.source, uri).cloned().map(CatalogItem::Resource);
            resource.or_else(|| {
                catalog.template_in_source(&subject.source, uri).cloned().map(CatalogItem::Template)
            })
        }
        CallTarget::Completion { .. } => None,
    }
}

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// Returns the current frame of the spinner.
pub(crate) fn spinner(world: &UiState) -> &'static str {
    let tenths =
        world.now.wall.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis()
            / 100;
    SPINNER[usize::try_from(tenths % 8).unwrap_or(0)]
}

fn draw_running(canvas: &mut Canvas<'_>, area: Rect, call: &SessionCall, world: &UiState) {
    let theme = canvas.theme;
    let took = world.now.instant.saturating_duration_since(call.began.instant);
    let state = if call.cancelling { "is being canceled" } else { "is running" };
    canvas.line(
        area,
        0,
        &Line::from(vec![
            Span::styled(format!("{} ", spinner(world)), theme.accent()),
            Span::styled(clean(&call.subject.raw_name).into_owned(), theme.strong()),
            Span::raw(format!(" {state} · {}", format_duration(took))),
        ]),
    );
    if let Some(progress) = &call.progress {
        canvas.text(area, 2, &progress_bar(progress, usize::from(area.width)), theme.accent());
        if let Some(message) = &progress.message {
            canvas.text(area, 3, &clean(message), theme.plain());
        }
    }
    let (_, output_area) = split_top(area, 5);
    let height = usize::from(output_area.height);
    let skipped = call.output_lines.len().saturating_sub(height);
    for (line, text) in call.output_lines.iter().skip(skipped).enumerate() {
        canvas.text(output_area, line, &clean(text), theme.dim());
    }
}

/// Formats the progress of a call.
fn progress_bar(progress: &toolyard_hub::Progress, columns: usize) -> String {
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
