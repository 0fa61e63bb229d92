//! Questions from servers to the user: a form to fill in, a URL to open, or a sampling request to
//! answer in place of a model. Unanswered questions are declined.

use std::collections::VecDeque;

use ratatui::layout::Rect;
use serde_json::{Value, json};
use toolyard_hub::json::{Object, from_text, to_raw};
use toolyard_hub::{ErrorKind, HubError, Question, QuestionKind, Raw, RawAnswers};

use crate::canvas::{Canvas, inset, split_bottom, split_top};
use crate::editor::{Editor, visible_window};
use crate::form::{FormAction, SchemaForm};
use crate::key::KeyPress;
use crate::list_cursor::ScrollWindow;
use crate::message::{CallId, Effect, QuestionId};
use crate::screen::KeyHints;
use crate::text::{clean, clean_lines, wrap};

/// The open questions of one call, asked one after the other.
#[derive(Debug)]
pub(crate) struct QuestionDialog {
    pub(crate) id: QuestionId,
    pub(crate) call: CallId,
    /// The server that asks.
    source: String,
    open: VecDeque<Question>,
    answers: RawAnswers,
    current: QuestionView,
}

/// The question that is shown.
#[derive(Debug)]
enum QuestionView {
    Form { message: String, form: Box<SchemaForm> },
    Address { message: String, url: String },
    Sample { text: String, scroll: ScrollWindow, typed: Editor },
}

/// The result of a key press.
#[derive(Debug)]
pub(crate) enum QuestionAction {
    Stay,
    Ignored,
    Warn(String),
    RunAndStay(Effect),
    /// All questions are answered, or one was declined for good.
    Finish(Effect),
}

impl QuestionDialog {
    pub(crate) fn new(id: QuestionId, call: CallId, who: String, questions: Vec<Question>) -> Option<Self> {
        // The question that is shown stays in the queue until it is answered.
        let open: VecDeque<Question> = questions.into();
        let now = QuestionView::from_question(open.front()?);
        Some(Self { id, call, source: who, open, answers: Vec::new(), current: now })
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.current {
            QuestionView::Form { form, .. } => form.paste(text),
            QuestionView::Sample { typed, .. } => typed.insert_text(text),
            QuestionView::Address { .. } => {}
        }
    }

    pub(crate) fn update(&mut self, key: KeyPress) -> QuestionAction {
        match &mut self.current {
            QuestionView::Form { form, .. } => match key {
                KeyPress::Ctrl('x') => self.answer(to_raw(&json!({"action": "decline"}))),
                key => match form.press(key) {
                    FormAction::Stay => QuestionAction::Stay,
                    FormAction::Ignored => QuestionAction::Ignored,
                    FormAction::Invalid(why) => QuestionAction::Warn(why),
                    FormAction::Leave => self.answer(to_raw(&json!({"action": "cancel"}))),
                    FormAction::Submit(values) => {
                        let mut answer = Object::default();
                        answer.set("action", to_raw("accept"));
                        answer.set("content", values);
                        self.answer(answer.to_raw())
                    }
                },
            },
            QuestionView::Address { url, .. } => match key {
                KeyPress::Char('a') | KeyPress::Enter => self.answer(to_raw(&json!({"action": "accept"}))),
                KeyPress::Char('d') | KeyPress::Ctrl('x') => {
                    self.answer(to_raw(&json!({"action": "decline"})))
                }
                KeyPress::Esc => self.answer(to_raw(&json!({"action": "cancel"}))),
                KeyPress::Char('y') => QuestionAction::RunAndStay(Effect::Copy(url.clone())),
                _ => QuestionAction::Ignored,
            },
            QuestionView::Sample { scroll, typed, .. } => match key {
                KeyPress::Ctrl('s') if typed.text().trim().is_empty() => {
                    QuestionAction::Warn("type an answer first, or press Ctrl-X to decline".to_owned())
                }
                KeyPress::Ctrl('s') => {
                    let answer = json!({
                        "role": "assistant",
                        "content": {"type": "text", "text": typed.text()},
                        "model": "a person",
                        "stopReason": "endTurn",
                    });
                    self.answer(to_raw(&answer))
                }
                KeyPress::Ctrl('x') | KeyPress::Esc => {
                    QuestionAction::Finish(Effect::Answer(self.id, Err(declined_error())))
                }
                KeyPress::PageUp | KeyPress::PageDown => {
                    scroll.press(key);
                    QuestionAction::Stay
                }
                key if typed.press(key) => QuestionAction::Stay,
                _ => QuestionAction::Ignored,
            },
        }
    }

    /// Stores an answer and moves on to the next question.
    fn answer(&mut self, answer: Raw) -> QuestionAction {
        if let Some(question) = self.open.pop_front() {
            self.answers.push((question.key, answer));
        }
        match self.open.front() {
            Some(next) => {
                self.current = QuestionView::from_question(next);
                QuestionAction::Stay
            }
            None => QuestionAction::Finish(Effect::Answer(self.id, Ok(std::mem::take(&mut self.answers)))),
        }
    }

    pub(crate) fn keys(&self) -> KeyHints {
        match &self.current {
            QuestionView::Form { form, .. } => {
                let mut keys = form.keys();
                keys.retain(|(key, _)| *key != "Esc");
                keys.extend([("Ctrl-X", "decline"), ("Esc", "cancel")]);
                keys
            }
            QuestionView::Address { .. } => {
                vec![("a", "accept"), ("y", "copy URL"), ("d", "decline"), ("Esc", "cancel")]
            }
            QuestionView::Sample { .. } => {
                vec![("type", "answer"), ("Ctrl-S", "submit"), ("PgUp PgDn", "scroll"), ("Ctrl-X", "decline")]
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let theme = canvas.theme;
        let columns = area.width.saturating_sub(6).min(100);
        let left =
            if self.open.len() > 1 { format!(" ({} more)", self.open.len() - 1) } else { String::new() };
        let title = format!("Input requested by {}{left}", clean(&self.source));
        let inside = canvas.dialog(area, &title, columns, area.height.saturating_sub(2));
        let width = usize::from(inside.width);
        match &mut self.current {
            QuestionView::Form { message, form } => {
                let lines = wrap(message, width);
                let height = u16::try_from(lines.len()).unwrap_or(4).min(inside.height / 3);
                let (head, body) = split_top(inside, height + 1);
                for (row, line) in lines.iter().take(usize::from(height)).enumerate() {
                    canvas.text(head, row, line, theme.strong());
                }
                form.draw(canvas, body);
            }
            QuestionView::Address { message, url } => {
                let mut row = 0;
                for line in wrap(message, width) {
                    canvas.text(inside, row, &line, theme.strong());
                    row += 1;
                }
                row += 1;
                canvas.text(inside, row, "Open this URL in a browser:", theme.plain());
                row += 2;
                for line in wrap(url, width) {
                    canvas.text(inside, row, &line, theme.accent());
                    row += 1;
                }
                row += 1;
                canvas.text(inside, row, "Check the URL before you open it.", theme.warn());
            }
            QuestionView::Sample { text, scroll, typed } => {
                let (upper, lower) = split_bottom(inside, inside.height / 2);
                canvas.text(
                    upper,
                    0,
                    "The server requests a language model completion. You can write it.",
                    theme.warn(),
                );
                let (_, prompt_area) = split_top(upper, 2);
                let lines = wrap(text, width.saturating_sub(1));
                let window = scroll.window(lines.len(), usize::from(prompt_area.height));
                for (row, at) in window.clone().enumerate() {
                    canvas.text(prompt_area, row, &lines[at], theme.plain());
                }
                canvas.scrollbar(prompt_area, window.start, lines.len());
                canvas.rule(lower, 0);
                let (_, page) = split_top(inset(lower, 0), 1);
                let (line, at) = typed.cursor_position();
                let first = line.saturating_sub(usize::from(page.height).saturating_sub(1));
                for (row, shown) in
                    typed.text().split('\n').enumerate().skip(first).take(usize::from(page.height))
                {
                    let (shown, column) = visible_window(shown, if row == line { at } else { 0 }, width);
                    canvas.text(page, row - first, &shown, theme.plain());
                    if row == line {
                        canvas.set_cursor(page, row - first, column);
                    }
                }
            }
        }
    }
}

impl QuestionView {
    fn from_question(question: &Question) -> Self {
        let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
        let param = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = clean_lines(param("message"));
        match question.kind {
            QuestionKind::ElicitForm => {
                let schema =
                    Object::parse(&question.params).ok().and_then(|mut all| all.remove("requestedSchema"));
                let schema = schema.unwrap_or_else(|| from_text(r#"{"type":"object"}"#.to_owned()));
                Self::Form { message, form: Box::new(SchemaForm::new(schema, "submit")) }
            }
            QuestionKind::ElicitUrl => Self::Address { message, url: clean(param("url")).into_owned() },
            QuestionKind::Sample | QuestionKind::Roots => Self::Sample {
                text: sampling_text(&params),
                scroll: ScrollWindow::default(),
                typed: Editor::multi_line(""),
            },
        }
    }
}

/// Formats the messages that a model would receive.
fn sampling_text(params: &Value) -> String {
    let mut text = String::new();
    if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
        text.push_str(&format!("system: {system}\n\n"));
    }
    for message in params.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
        let blocks = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            Some(block) => vec![block],
            None => Vec::new(),
        };
        for block in blocks {
            match block.get("text").and_then(Value::as_str) {
                Some(content) => text.push_str(&format!("{role}: {content}\n\n")),
                None => {
                    let kind = block.get("type").and_then(Value::as_str).unwrap_or("unknown content");
                    text.push_str(&format!("{role}: ({kind})\n\n"));
                }
            }
        }
    }
    if let Some(most) = params.get("maxTokens").and_then(Value::as_u64) {
        text.push_str(&format!("max tokens: {most}"));
    }
    clean_lines(&text)
}

/// The error that a server receives when the user declines a sampling request.
fn declined_error() -> HubError {
    HubError::new(ErrorKind::Forbidden, "the user declined the request")
}
