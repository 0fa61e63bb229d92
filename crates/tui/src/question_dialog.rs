//! Questions of servers, put to the person: a form to fill in, an address to open, a message to answer in place of a
//! model. What is not answered is declined.

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

/// The questions of one call that are open, one after the other.
#[derive(Debug)]
pub(crate) struct QuestionDialog {
    pub(crate) id: QuestionId,
    pub(crate) call: CallId,
    /// Who asks.
    source: String,
    open: VecDeque<Question>,
    answers: RawAnswers,
    current: QuestionView,
}

/// The question that is seen.
#[derive(Debug)]
enum QuestionView {
    Form { message: String, form: Box<SchemaForm> },
    Address { message: String, url: String },
    Sample { text: String, scroll: ScrollWindow, typed: Editor },
}

/// What a key leads to.
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
        // The one that is seen stays in the queue until it is answered.
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
                    QuestionAction::Warn("type an answer first, or decline with Ctrl-X".to_owned())
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

    /// Keeps an answer, and goes on to the next question.
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
                vec![("a", "I have opened it"), ("y", "copy address"), ("d", "decline"), ("Esc", "cancel")]
            }
            QuestionView::Sample { .. } => vec![
                ("type", "the answer"),
                ("Ctrl-S", "send"),
                ("PgUp PgDn", "scroll"),
                ("Ctrl-X", "decline"),
            ],
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let theme = canvas.theme;
        let columns = area.width.saturating_sub(6).min(100);
        let left =
            if self.open.len() > 1 { format!(" ({} more)", self.open.len() - 1) } else { String::new() };
        let title = format!("{} asks you{left}", clean(&self.source));
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
                canvas.text(inside, row, "It wants you to open this address in a browser:", theme.plain());
                row += 2;
                for line in wrap(url, width) {
                    canvas.text(inside, row, &line, theme.accent());
                    row += 1;
                }
                row += 1;
                canvas.text(inside, row, "Look at the address before you trust it.", theme.warn());
            }
            QuestionView::Sample { text, scroll, typed } => {
                let (upper, lower) = split_bottom(inside, inside.height / 2);
                canvas.text(
                    upper,
                    0,
                    "It wants a language model to answer this; you may answer in its place.",
                    theme.warn(),
                );
                let (_, said) = split_top(upper, 2);
                let lines = wrap(text, width.saturating_sub(1));
                let window = scroll.window(lines.len(), usize::from(said.height));
                for (row, at) in window.clone().enumerate() {
                    canvas.text(said, row, &lines[at], theme.plain());
                }
                canvas.scrollbar(said, window.start, lines.len());
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
        let said = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = clean_lines(said("message"));
        match question.kind {
            QuestionKind::ElicitForm => {
                let schema =
                    Object::parse(&question.params).ok().and_then(|mut all| all.remove("requestedSchema"));
                let schema = schema.unwrap_or_else(|| from_text(r#"{"type":"object"}"#.to_owned()));
                Self::Form { message, form: Box::new(SchemaForm::new(schema, "accept")) }
            }
            QuestionKind::ElicitUrl => Self::Address { message, url: clean(said("url")).into_owned() },
            QuestionKind::Sample | QuestionKind::Roots => Self::Sample {
                text: sampling_text(&params),
                scroll: ScrollWindow::default(),
                typed: Editor::multi_line(""),
            },
        }
    }
}

/// What a model would be shown.
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
                Some(said) => text.push_str(&format!("{role}: {said}\n\n")),
                None => {
                    let kind = block.get("type").and_then(Value::as_str).unwrap_or("something");
                    text.push_str(&format!("{role}: ({kind})\n\n"));
                }
            }
        }
    }
    if let Some(most) = params.get("maxTokens").and_then(Value::as_u64) {
        text.push_str(&format!("at most {most} tokens"));
    }
    clean_lines(&text)
}

/// What a server hears whose question for a model nobody wanted to answer.
fn declined_error() -> HubError {
    HubError::new(ErrorKind::Forbidden, "the person at the terminal declined to answer")
}
