//! Dialogs over a screen: confirmation of a call, copy formats, help, and quitting.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use toolyard_hub::CallTarget;

use crate::calls::{CallSpec, CallState, SessionCall};
use crate::canvas::Canvas;
use crate::copy_formats::{as_command, as_curl, as_message};
use crate::details::describe_hints;
use crate::help::HELP;
use crate::key::KeyPress;
use crate::list_cursor::{ListCursor, ScrollWindow};
use crate::message::{Effect, UiTestCall};
use crate::screen::{CallPlan, KeyHints};
use crate::text::{clean, clip, format_count, truncate, width, wrap};
use crate::ui_state::UiState;

/// The largest result that can be copied, in bytes.
const MOST_COPIED: usize = 1_000_000;

#[derive(Debug)]
pub(crate) enum Popup {
    /// Confirms a call that is not annotated as read-only.
    Confirm(Box<CallPlan>),
    Copy {
        subject: CallSpec,
        result: Option<String>,
        pick: ListCursor,
    },
    Help(ScrollWindow),
    Quit,
}

/// The result of a key press in a popup.
#[derive(Debug)]
pub(crate) enum PopupAction {
    Stay,
    Close,
    Call(Box<CallPlan>),
    Run(Effect),
    /// Run the effect and keep the popup open.
    RunAndStay(Effect),
}

impl Popup {
    /// Opens the list of formats in which a call can be copied.
    pub(crate) fn copy_menu(call: &SessionCall) -> Self {
        let result = match &call.state {
            CallState::Answered(outcome, _) if outcome.body.get().len() <= MOST_COPIED => {
                Some(outcome.body.get().to_owned())
            }
            _ => None,
        };
        Self::Copy { subject: call.subject.clone(), result, pick: ListCursor::default() }
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> PopupAction {
        match self {
            Self::Confirm(plan) => match key {
                KeyPress::Char('y') | KeyPress::Enter => PopupAction::Call(plan.clone()),
                KeyPress::Char('n' | 'q') | KeyPress::Esc | KeyPress::Left => PopupAction::Close,
                _ => PopupAction::Stay,
            },
            Self::Copy { subject, result, pick } => {
                let ways = copy_options(subject, result.as_deref(), world);
                if pick.press(key, ways.len()) {
                    return PopupAction::Stay;
                }
                match key {
                    KeyPress::Enter | KeyPress::Char('y') => match ways.into_iter().nth(pick.at) {
                        Some((_, text)) => PopupAction::RunAndStay(Effect::Copy(text)),
                        None => PopupAction::Close,
                    },
                    KeyPress::Esc | KeyPress::Char('q') => PopupAction::Close,
                    _ => PopupAction::Stay,
                }
            }
            Self::Help(scroll) => match scroll.press(key) {
                true => PopupAction::Stay,
                false => PopupAction::Close,
            },
            Self::Quit => match key {
                KeyPress::Char('y') | KeyPress::Enter | KeyPress::Ctrl('c') => PopupAction::Run(Effect::Quit),
                KeyPress::Char('n' | 'q') | KeyPress::Esc => PopupAction::Close,
                _ => PopupAction::Stay,
            },
        }
    }

    pub(crate) fn keys(&self) -> KeyHints {
        match self {
            Self::Confirm(_) => vec![("y", "call"), ("n", "cancel")],
            Self::Copy { .. } => vec![("↑↓", "move"), ("Enter", "copy"), ("Esc", "close")],
            Self::Help(_) => vec![("↑↓", "scroll"), ("Esc", "close")],
            Self::Quit => vec![("y", "quit"), ("n", "stay")],
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        match self {
            Self::Confirm(plan) => draw_confirm(canvas, area, plan),
            Self::Copy { subject, result, pick } => {
                draw_copy(canvas, area, &copy_options(subject, result.as_deref(), world), pick);
            }
            Self::Help(scroll) => draw_help(canvas, area, scroll),
            Self::Quit => {
                let message = format!(
                    "{} still running and will be canceled.",
                    calls_with_verb(world.calls.running_count())
                );
                let inside = canvas.dialog(area, "Quit?", 48, 3);
                canvas.text(inside, 0, &message, canvas.theme.plain());
                canvas.text(inside, 2, "y quit   n stay", canvas.theme.dim());
            }
        }
    }
}

fn calls_with_verb(calls: usize) -> String {
    format!("{} {}", format_count(calls, "call"), if calls == 1 { "is" } else { "are" })
}

/// Returns every format in which a call can be copied, by name.
fn copy_options(subject: &CallSpec, result: Option<&str>, world: &UiState) -> Vec<(&'static str, String)> {
    let mut ways = vec![("CLI command", as_command(subject, &world.settings))];
    ways.extend(as_curl(subject, &world.settings).map(|text| ("curl command (REST)", text)));
    ways.push(("JSON-RPC message", as_message(subject)));
    ways.extend(subject.arguments().map(|raw| ("arguments", raw.get().to_owned())));
    ways.extend(result.map(|text| ("result", text.to_owned())));
    if let (Some(writer), Some(result), false) = (&world.settings.test_writer, result, is_completion(subject))
    {
        let server = subject.source.as_str();
        let call = UiTestCall { server, raw_name: &subject.raw_name, target: &subject.target, result };
        ways.push(("test file for `toolyard test`", writer.write(&call)));
    }
    ways
}

fn is_completion(subject: &CallSpec) -> bool {
    matches!(subject.target, CallTarget::Completion { .. })
}

fn draw_copy(canvas: &mut Canvas<'_>, area: Rect, ways: &[(&'static str, String)], pick: &mut ListCursor) {
    let rows = u16::try_from(ways.len()).unwrap_or(5) + 8;
    let inside = canvas.dialog(area, "Copy", area.width.saturating_sub(8).min(100), rows);
    pick.clamp(ways.len());
    for (line, (name, _)) in ways.iter().enumerate() {
        if line == pick.at {
            canvas.select(inside, line);
        }
        canvas.text(inside, line, &format!(" {name}"), canvas.theme.plain());
    }
    let from = ways.len() + 1;
    let room = usize::from(inside.height).saturating_sub(from);
    if let Some((_, text)) = ways.get(pick.at) {
        let text = truncate(text, 4_000);
        for (line, part) in wrap(&clean(&text), usize::from(inside.width)).iter().take(room).enumerate() {
            canvas.text(inside, from + line, part, canvas.theme.dim());
        }
    }
}

fn draw_confirm(canvas: &mut Canvas<'_>, area: Rect, plan: &CallPlan) {
    let theme = canvas.theme;
    let columns = usize::from(area.width.saturating_sub(8).min(76));
    let mut lines: Vec<(String, Style)> = Vec::new();
    let mut say = |text: &str, style: Style| {
        lines.extend(wrap(text, columns).into_iter().map(|line| (line, style)));
    };
    let name = clean(&plan.subject.raw_name).into_owned();
    say(&format!("{name} on {}", clean(plan.subject.source.as_str())), theme.strong());
    say("", theme.plain());
    let hints = plan.thing.as_ref().map(|thing| describe_hints(&thing.definition())).unwrap_or_default();
    match hints.is_empty() {
        true => say("The server does not annotate this tool as read-only.", theme.warn()),
        false => say(&format!("Server annotations (unverified): {}", hints.join(", ")), theme.warn()),
    }
    say("", theme.plain());
    if let Some(arguments) = plan.subject.arguments() {
        let text = arguments.get();
        let shown = clean(&truncate(text, 600)).into_owned();
        say(&format!("Arguments: {}", clip(&shown, columns * 4)), theme.plain());
        say("", theme.plain());
    }
    say("Call this tool?   y call   n cancel", theme.accent());
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inside = canvas.dialog(area, "Confirm call", u16::try_from(columns).unwrap_or(60), rows);
    // The question must stay visible, however long the rest is.
    let room = usize::from(inside.height);
    if lines.len() > room
        && room > 1
        && let Some(question) = lines.pop()
    {
        lines.truncate(room - 1);
        lines.push(question);
    }
    for (row, (line, style)) in lines.iter().enumerate() {
        canvas.text(inside, row, line, *style);
    }
}

fn draw_help(canvas: &mut Canvas<'_>, area: Rect, scroll: &mut ScrollWindow) {
    let theme = canvas.theme;
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (heading, keys) in HELP {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(Span::styled(*heading, theme.accent())));
        for (key, what) in *keys {
            let padding = " ".repeat(20_usize.saturating_sub(width(key)));
            lines.push(Line::from(vec![
                Span::styled(format!("  {key}{padding}"), theme.strong()),
                Span::raw(*what),
            ]));
        }
    }
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inside = canvas.dialog(area, "Keys", 72, rows);
    let window = scroll.window(lines.len(), usize::from(inside.height));
    for (row, at) in window.clone().enumerate() {
        canvas.line(inside, row, &lines[at]);
    }
    canvas.scrollbar(inside, window.start, lines.len());
}
