//! The state of the whole UI: what is seen, and what a message changes about it. Nothing here waits for anything.

mod draw;

use toolyard_hub::What;

use crate::asking::{Asked, Asking};
use crate::key::Key;
use crate::message::{CallId, Effect, Message, News, Now, Settings, Snapshot};
use crate::popup::{Answer, Popup};
use crate::screen::{Calling, HistoryScreen, LogScreen, Plan, Screen, Servers, Step};
use crate::text::clean;
use crate::world::World;

/// How long a notice stays.
const NOTICE: std::time::Duration = std::time::Duration::from_secs(6);
/// How many screens one can go into; deeper ones take the place of the last.
const DEEPEST: usize = 32;

/// The state of the UI.
#[derive(Debug)]
pub struct App {
    world: World,
    /// The first is always the servers.
    screens: Vec<Screen>,
    popup: Option<Popup>,
    /// Questions of servers; the first is seen.
    asking: Vec<Asking>,
    notice: Option<Notice>,
    /// Whether the end of the log is below every screen.
    tail: bool,
}

#[derive(Debug)]
struct Notice {
    text: String,
    tone: Tone,
    since: Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Good,
    Bad,
}

impl App {
    pub fn new(settings: Settings, yard: Snapshot, now: Now) -> Self {
        let world = World::new(settings, yard, now);
        let screens = vec![Screen::Servers(Servers::default())];
        Self { world, screens, popup: None, asking: Vec::new(), notice: None, tail: false }
    }

    /// Takes a message in; what is to be done about it goes out.
    pub fn update(&mut self, message: Message) -> Option<Effect> {
        match message {
            Message::Key(key) => return self.press(key),
            Message::Paste(text) => self.paste(&text),
            Message::Tick(now) => self.pass(now),
            Message::Yard(yard) => self.world.set_yard(yard),
            Message::Logged(entries) => self.world.log.add(entries),
            Message::Away(away) => self.set_away(away),
            Message::Past(calls) => self.world.past = Some(calls),
            Message::Call(id, news) => self.hear(id, news),
            Message::Done(text) => self.say(&text, Tone::Good),
            Message::Failed(text) => self.say(&text, Tone::Bad),
        }
        None
    }

    /// Whether something moves by itself, so that it must be drawn again soon.
    pub fn is_lively(&self) -> bool {
        self.world.calls.running() > 0
    }

    /// Whether what the yard remembers of calls is looked at.
    pub fn looks_back(&self) -> bool {
        matches!(self.screens.last(), Some(Screen::History(history)) if history.looks_back())
    }

    fn set_away(&mut self, away: Option<String>) {
        match (&self.world.away, &away) {
            (None, Some(why)) => self.say(&format!("not connected: {why}"), Tone::Bad),
            (Some(_), None) => self.say("connected again", Tone::Good),
            _ => {}
        }
        self.world.away = away;
    }

    fn pass(&mut self, now: Now) {
        self.world.now = now;
        let gone = |notice: &Notice| now.instant.saturating_duration_since(notice.since.instant) > NOTICE;
        if self.notice.as_ref().is_some_and(gone) {
            self.notice = None;
        }
    }

    fn hear(&mut self, id: CallId, news: News) {
        match news {
            News::Asked(ask, questions) => {
                let call = self.world.calls.get(id);
                let who = call.map(|call| call.subject.source.to_string()).unwrap_or_default();
                self.asking.extend(Asking::new(ask, id, who, questions));
            }
            News::Unasked(ask) => self.asking.retain(|asking| asking.id != ask),
            news => {
                if let News::Ended(..) = news {
                    self.asking.retain(|asking| asking.call != id);
                    self.tell_of_the_end(id, &news);
                }
                self.world.calls.hear(id, news);
            }
        }
    }

    /// The end of a call that nobody looks at is told in a line.
    fn tell_of_the_end(&mut self, id: CallId, news: &News) {
        let seen = matches!(self.screens.last(), Some(Screen::Calling(calling)) if calling.id() == id);
        let name = self.world.calls.get(id).map(|call| clean(&call.subject.raw_name).into_owned());
        if let (false, Some(name)) = (seen, name) {
            match news {
                News::Ended(Ok(outcome), _) if !outcome.failed => {
                    self.say(&format!("{name} has answered: H shows it"), Tone::Good);
                }
                _ => self.say(&format!("{name} has failed: H shows it"), Tone::Bad),
            }
        }
    }

    fn say(&mut self, text: &str, tone: Tone) {
        self.notice = Some(Notice { text: clean(text).into_owned(), tone, since: self.world.now });
    }

    fn paste(&mut self, text: &str) {
        if let Some(asking) = self.asking.first_mut() {
            asking.paste(text);
        } else if self.popup.is_none()
            && let Some(screen) = self.screens.last_mut()
        {
            screen.paste(text, &self.world);
        }
    }

    fn press(&mut self, key: Key) -> Option<Effect> {
        // What was said has been read by whoever goes on.
        self.notice = None;
        if key == Key::Ctrl('z') {
            return Some(Effect::Suspend);
        }
        if !self.asking.is_empty() {
            return self.press_asking(key);
        }
        if let Some(popup) = &mut self.popup {
            let answer = popup.update(key, &self.world);
            return self.answered(answer);
        }
        let screen = self.screens.last_mut()?;
        let typing = screen.is_typing();
        match screen.update(key, &self.world) {
            Step::Ignored => self.press_anywhere(key, typing),
            step => self.step(step),
        }
    }

    fn press_asking(&mut self, key: Key) -> Option<Effect> {
        let asking = self.asking.first_mut()?;
        match asking.update(key) {
            Asked::Stay => None,
            Asked::Warn(why) => {
                self.say(&why, Tone::Bad);
                None
            }
            Asked::Also(effect) => Some(effect),
            Asked::Over(effect) => {
                self.asking.remove(0);
                Some(effect)
            }
            Asked::Ignored if key == Key::Ctrl('c') => self.cancel(self.asking.first()?.call),
            Asked::Ignored => None,
        }
    }

    fn answered(&mut self, answer: Answer) -> Option<Effect> {
        match answer {
            Answer::Stay => None,
            Answer::Close => {
                self.popup = None;
                None
            }
            Answer::Call(plan) => {
                self.popup = None;
                self.call(*plan)
            }
            Answer::Do(effect) => {
                self.popup = None;
                Some(effect)
            }
            Answer::Also(effect) => Some(effect),
        }
    }

    /// Keys that mean the same on every screen that has no use of its own for them.
    fn press_anywhere(&mut self, key: Key, typing: bool) -> Option<Effect> {
        match key {
            Key::Esc => return self.step(Step::Back),
            Key::Ctrl('c') => return self.quit(),
            Key::F1 => self.popup = Some(Popup::Help(Default::default())),
            _ if typing => {}
            Key::Char('?') => self.popup = Some(Popup::Help(Default::default())),
            Key::Char('q') => return self.quit(),
            Key::Char('H') => self.visit(Screen::History(HistoryScreen::default())),
            Key::Char('L') => self.visit(Screen::Log(LogScreen::new())),
            Key::Char('T') => self.tail = !self.tail,
            Key::Left | Key::Char('h') | Key::Backspace => return self.step(Step::Back),
            _ => {}
        }
        None
    }

    fn quit(&mut self) -> Option<Effect> {
        if self.world.calls.running() > 0 {
            self.popup = Some(Popup::Quit);
            return None;
        }
        Some(Effect::Quit)
    }

    /// Goes to a screen of which there is one; where one is there already, back to what was before it.
    fn visit(&mut self, screen: Screen) {
        let same = |open: &Screen| std::mem::discriminant(open) == std::mem::discriminant(&screen);
        match self.screens.iter().position(same) {
            Some(at) if at + 1 == self.screens.len() => drop(self.screens.pop()),
            Some(at) => {
                let open = self.screens.remove(at);
                self.screens.push(open);
            }
            None => self.go(screen),
        }
    }

    fn go(&mut self, screen: Screen) {
        if self.screens.len() >= DEEPEST {
            self.screens.pop();
        }
        self.screens.push(screen);
    }

    fn step(&mut self, step: Step) -> Option<Effect> {
        match step {
            Step::Stay | Step::Ignored => None,
            Step::Back => {
                if self.screens.len() > 1 {
                    self.screens.pop();
                }
                None
            }
            Step::Go(screen) => {
                self.go(*screen);
                None
            }
            Step::Do(Effect::Cancel(id)) => self.cancel(id),
            Step::Do(effect) => Some(effect),
            Step::Say(text) => {
                self.say(&text, Tone::Good);
                None
            }
            Step::Warn(text) => {
                self.say(&text, Tone::Bad);
                None
            }
            Step::Popup(popup) => {
                self.popup = Some(*popup);
                None
            }
            Step::Call(plan) => {
                // What nobody hints to be harmless is asked about first. Without the definition there is no hint.
                let harmless = match (&plan.thing, &plan.subject.what) {
                    (Some(thing), _) => thing.is_hinted_read_only(),
                    (None, What::Tool { .. }) => false,
                    (None, _) => true,
                };
                if harmless {
                    return self.call(*plan);
                }
                self.popup = Some(Popup::Confirm(plan));
                None
            }
        }
    }

    fn call(&mut self, plan: Plan) -> Option<Effect> {
        let what = plan.subject.what.clone();
        let id = self.world.calls.begin(plan.subject, self.world.now);
        // The result of the call before has had its time.
        if let Some(Screen::Calling(_)) = self.screens.last() {
            self.screens.pop();
        }
        self.go(Screen::Calling(Calling::new(id)));
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
