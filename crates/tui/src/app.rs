//! The state of the whole UI: what is visible, and how a message changes it. Nothing here blocks or
//! awaits.

mod draw;

use toolyard_hub::{CallTarget, ErrorKind};

use crate::key::KeyPress;
use crate::message::{CallId, ClockTime, Effect, UiCallUpdate, UiMessage, UiSettings, YardSnapshot};
use crate::popup::{Popup, PopupAction};
use crate::question_dialog::{QuestionAction, QuestionDialog};
use crate::screen::{CallPlan, CallScreen, HistoryScreen, LogScreen, Screen, ScreenAction, ServersScreen};
use crate::text::clean;
use crate::ui_state::UiState;

/// How long a notice is shown.
const NOTICE: std::time::Duration = std::time::Duration::from_secs(6);
/// The maximum depth of the screen stack; a screen opened beyond it replaces the last one.
const DEEPEST: usize = 32;

/// The state of the UI.
#[derive(Debug)]
pub struct App {
    world: UiState,
    /// The first screen is always the server list.
    screens: Vec<Screen>,
    popup: Option<Popup>,
    /// Pending questions from servers; the first one is shown.
    questions: Vec<QuestionDialog>,
    notice: Option<Notice>,
    /// Whether the end of the log is shown below every screen.
    tail: bool,
}

#[derive(Debug)]
struct Notice {
    text: String,
    tone: NoticeLevel,
    since: ClockTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeLevel {
    Good,
    Bad,
}

impl App {
    pub fn new(settings: UiSettings, yard: YardSnapshot, now: ClockTime) -> Self {
        let world = UiState::new(settings, yard, now);
        let screens = vec![Screen::Servers(ServersScreen::default())];
        Self { world, screens, popup: None, questions: Vec::new(), notice: None, tail: false }
    }

    /// Applies a message to the state and returns the effect that it requests.
    pub fn update(&mut self, message: UiMessage) -> Option<Effect> {
        match message {
            UiMessage::Key(key) => return self.press(key),
            UiMessage::Paste(text) => self.paste(&text),
            UiMessage::Tick(now) => self.tick(now),
            UiMessage::Yard(yard) => self.world.set_yard(yard),
            UiMessage::LogEntries(entries) => self.world.log.add(entries),
            UiMessage::Connectivity(away) => self.set_disconnected(away),
            UiMessage::Replicas(replicas) => self.world.replicas = replicas,
            UiMessage::History(calls) => self.world.past = Some(calls),
            UiMessage::Call(id, news) => self.apply_call_update(id, news),
            UiMessage::Done(text) => self.show_notice(&text, NoticeLevel::Good),
            UiMessage::Failed(text) => self.show_notice(&text, NoticeLevel::Bad),
        }
        None
    }

    /// Whether something on the screen is animated, so that it must be redrawn soon.
    pub fn is_animating(&self) -> bool {
        self.world.calls.running_count() > 0
    }

    /// Whether the screen shows the call history of the yard.
    pub fn shows_yard_history(&self) -> bool {
        matches!(self.screens.last(), Some(Screen::History(history)) if history.shows_yard_history())
    }

    fn set_disconnected(&mut self, away: Option<String>) {
        match (&self.world.disconnected, &away) {
            (None, Some(why)) => self.show_notice(&format!("not connected: {why}"), NoticeLevel::Bad),
            (Some(_), None) => self.show_notice("reconnected", NoticeLevel::Good),
            _ => {}
        }
        self.world.disconnected = away;
    }

    fn tick(&mut self, now: ClockTime) {
        self.world.now = now;
        let gone = |notice: &Notice| now.instant.saturating_duration_since(notice.since.instant) > NOTICE;
        if self.notice.as_ref().is_some_and(gone) {
            self.notice = None;
        }
    }

    fn apply_call_update(&mut self, id: CallId, news: UiCallUpdate) {
        match news {
            UiCallUpdate::Questions(ask, questions) => {
                let call = self.world.calls.get(id);
                let who = call.map(|call| call.subject.source.to_string()).unwrap_or_default();
                self.questions.extend(QuestionDialog::new(ask, id, who, questions));
            }
            UiCallUpdate::QuestionsWithdrawn(ask) => self.questions.retain(|asking| asking.id != ask),
            news => {
                if let UiCallUpdate::Ended(..) = news {
                    self.questions.retain(|asking| asking.call != id);
                    self.notify_call_ended(id, &news);
                }
                self.world.calls.apply(id, news);
            }
        }
    }

    /// Shows a notice when a call ends that is not on the screen.
    fn notify_call_ended(&mut self, id: CallId, news: &UiCallUpdate) {
        let seen = matches!(self.screens.last(), Some(Screen::Call(calling)) if calling.id() == id);
        let name = self.world.calls.get(id).map(|call| clean(&call.subject.raw_name).into_owned());
        if let (false, Some(name)) = (seen, name) {
            match news {
                UiCallUpdate::Ended(Ok(outcome), _) if !outcome.failed => {
                    self.show_notice(&format!("{name} succeeded; press H to show it"), NoticeLevel::Good);
                }
                UiCallUpdate::Ended(Err(error), _) if error.kind() == ErrorKind::Cancelled => {
                    self.show_notice(&format!("{name} was canceled; press H to show it"), NoticeLevel::Bad);
                }
                _ => self.show_notice(&format!("{name} failed; press H to show it"), NoticeLevel::Bad),
            }
        }
    }

    fn show_notice(&mut self, text: &str, tone: NoticeLevel) {
        self.notice = Some(Notice { text: clean(text).into_owned(), tone, since: self.world.now });
    }

    fn paste(&mut self, text: &str) {
        if let Some(asking) = self.questions.first_mut() {
            asking.paste(text);
        } else if self.popup.is_none()
            && let Some(screen) = self.screens.last_mut()
        {
            screen.paste(text, &self.world);
        }
    }

    fn press(&mut self, key: KeyPress) -> Option<Effect> {
        // The next key press dismisses the notice.
        self.notice = None;
        if key == KeyPress::Ctrl('z') {
            return Some(Effect::Suspend);
        }
        if !self.questions.is_empty() {
            return self.press_question(key);
        }
        if let Some(popup) = &mut self.popup {
            let answer = popup.update(key, &self.world);
            return self.apply_popup_action(answer);
        }
        let screen = self.screens.last_mut()?;
        let typing = screen.is_typing();
        match screen.update(key, &self.world) {
            ScreenAction::Ignored => self.press_global(key, typing),
            step => self.apply_screen_action(step),
        }
    }

    fn press_question(&mut self, key: KeyPress) -> Option<Effect> {
        let asking = self.questions.first_mut()?;
        match asking.update(key) {
            QuestionAction::Stay => None,
            QuestionAction::Warn(why) => {
                self.show_notice(&why, NoticeLevel::Bad);
                None
            }
            QuestionAction::RunAndStay(effect) => Some(effect),
            QuestionAction::Finish(effect) => {
                self.questions.remove(0);
                Some(effect)
            }
            QuestionAction::Ignored if key == KeyPress::Ctrl('c') => {
                self.cancel(self.questions.first()?.call)
            }
            QuestionAction::Ignored => None,
        }
    }

    fn apply_popup_action(&mut self, answer: PopupAction) -> Option<Effect> {
        match answer {
            PopupAction::Stay => None,
            PopupAction::Close => {
                self.popup = None;
                None
            }
            PopupAction::Call(plan) => {
                self.popup = None;
                self.start_call(*plan)
            }
            PopupAction::Run(effect) => {
                self.popup = None;
                Some(effect)
            }
            PopupAction::RunAndStay(effect) => Some(effect),
        }
    }

    /// Handles keys that have the same meaning on every screen that does not use them itself.
    fn press_global(&mut self, key: KeyPress, typing: bool) -> Option<Effect> {
        match key {
            KeyPress::Esc => return self.apply_screen_action(ScreenAction::Back),
            KeyPress::Ctrl('c') => return self.quit(),
            KeyPress::F1 => self.popup = Some(Popup::Help(Default::default())),
            _ if typing => {}
            KeyPress::Char('?') => self.popup = Some(Popup::Help(Default::default())),
            KeyPress::Char('q') => return self.quit(),
            KeyPress::Char('H') => self.toggle_screen(Screen::History(HistoryScreen::default())),
            KeyPress::Char('L') => self.toggle_screen(Screen::Log(LogScreen::new())),
            KeyPress::Char('T') => self.tail = !self.tail,
            KeyPress::Left | KeyPress::Char('h') | KeyPress::Backspace => {
                return self.apply_screen_action(ScreenAction::Back);
            }
            _ => {}
        }
        None
    }

    fn quit(&mut self) -> Option<Effect> {
        if self.world.calls.running_count() > 0 {
            self.popup = Some(Popup::Quit);
            return None;
        }
        Some(Effect::Quit)
    }

    /// Opens a screen that exists at most once, brings it to the front, or closes it if it is in
    /// front.
    fn toggle_screen(&mut self, screen: Screen) {
        let same = |open: &Screen| std::mem::discriminant(open) == std::mem::discriminant(&screen);
        match self.screens.iter().position(same) {
            Some(at) if at + 1 == self.screens.len() => drop(self.screens.pop()),
            Some(at) => {
                let open = self.screens.remove(at);
                self.screens.push(open);
            }
            None => self.push_screen(screen),
        }
    }

    fn push_screen(&mut self, screen: Screen) {
        if self.screens.len() >= DEEPEST {
            self.screens.pop();
        }
        self.screens.push(screen);
    }

    fn apply_screen_action(&mut self, step: ScreenAction) -> Option<Effect> {
        match step {
            ScreenAction::Stay | ScreenAction::Ignored => None,
            ScreenAction::Back => {
                if self.screens.len() > 1 {
                    self.screens.pop();
                }
                None
            }
            ScreenAction::Open(screen) => {
                self.push_screen(*screen);
                None
            }
            ScreenAction::Run(Effect::Cancel(id)) => self.cancel(id),
            ScreenAction::Run(effect) => Some(effect),
            ScreenAction::Notify(text) => {
                self.show_notice(&text, NoticeLevel::Good);
                None
            }
            ScreenAction::Warn(text) => {
                self.show_notice(&text, NoticeLevel::Bad);
                None
            }
            ScreenAction::Popup(popup) => {
                self.popup = Some(*popup);
                None
            }
            ScreenAction::Call(plan) => {
                // Calls are confirmed unless the server annotates the tool as read-only. Without a
                // definition there is no annotation.
                let harmless = match (&plan.thing, &plan.subject.target) {
                    (Some(thing), _) => thing.is_hinted_read_only(),
                    (None, CallTarget::Tool { .. }) => false,
                    (None, _) => true,
                };
                if harmless {
                    return self.start_call(*plan);
                }
                self.popup = Some(Popup::Confirm(plan));
                None
            }
        }
    }

    fn start_call(&mut self, plan: CallPlan) -> Option<Effect> {
        let what = plan.subject.target.clone();
        let id = self.world.calls.begin(plan.subject, self.world.now);
        // A new call replaces the result screen of the previous one.
        if let Some(Screen::Call(_)) = self.screens.last() {
            self.screens.pop();
        }
        self.push_screen(Screen::Call(CallScreen::new(id)));
        Some(Effect::Call(id, what))
    }

    fn cancel(&mut self, id: CallId) -> Option<Effect> {
        let call = self.world.calls.get_mut(id).filter(|call| call.is_running())?;
        call.cancelling = true;
        Some(Effect::Cancel(id))
    }
}

#[cfg(test)]
mod tests;
