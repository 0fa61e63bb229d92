//! A place in a long list, and the window through which it is seen. Only what is in the window is ever drawn.

use crate::key::Key;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) at: usize,
    top: usize,
    /// How many lines the window had when it was last drawn.
    height: usize,
}

impl Pick {
    pub(crate) fn at(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Moves as lists do; whether the key was one of those.
    pub(crate) fn press(&mut self, key: Key, len: usize) -> bool {
        let page = self.height.max(2) - 1;
        let last = len.saturating_sub(1);
        self.at = match key {
            Key::Up | Key::Char('k') => self.at.saturating_sub(1),
            Key::Down | Key::Char('j') => self.at + 1,
            Key::PageUp | Key::Ctrl('b') => self.at.saturating_sub(page),
            Key::PageDown | Key::Ctrl('f') => self.at + page,
            Key::Ctrl('u') => self.at.saturating_sub(page / 2),
            Key::Ctrl('d') => self.at + page / 2,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return false,
        }
        .min(last);
        true
    }

    /// Stays within a list that may have become shorter.
    pub(crate) fn keep_within(&mut self, len: usize) {
        self.at = self.at.min(len.saturating_sub(1));
    }

    /// The part of the list that is to be drawn in so many lines.
    pub(crate) fn window(&mut self, len: usize, height: usize) -> std::ops::Range<usize> {
        self.height = height;
        self.keep_within(len);
        // One line of what comes before and after is shown where there is room, so that one sees that there is more.
        let margin = usize::from(height > 4);
        if self.at < self.top + margin {
            self.top = self.at.saturating_sub(margin);
        }
        if self.at + margin >= self.top + height {
            self.top = (self.at + margin + 1).saturating_sub(height);
        }
        self.top = self.top.min(len.saturating_sub(height));
        self.top..(self.top + height).min(len)
    }

    pub(crate) fn top(&self) -> usize {
        self.top
    }
}

/// A window over text, without a place of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    pub(crate) top: usize,
    height: usize,
}

impl Scroll {
    pub(crate) fn press(&mut self, key: Key) -> bool {
        let page = self.height.max(2) - 1;
        self.top = match key {
            Key::Up | Key::Char('k') => self.top.saturating_sub(1),
            Key::Down | Key::Char('j') => self.top + 1,
            Key::PageUp | Key::Ctrl('b') => self.top.saturating_sub(page),
            Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => self.top + page,
            Key::Ctrl('u') => self.top.saturating_sub(page / 2),
            Key::Ctrl('d') => self.top + page / 2,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => usize::MAX / 2,
            _ => return false,
        };
        true
    }

    pub(crate) fn window(&mut self, len: usize, height: usize) -> std::ops::Range<usize> {
        self.height = height;
        self.top = self.top.min(len.saturating_sub(height));
        self.top..(self.top + height).min(len)
    }
}

#[cfg(test)]
mod tests {
    use super::Pick;
    use crate::key::Key;

    #[test]
    fn the_window_follows_the_place_and_never_leaves_the_list() {
        let mut pick = Pick::default();
        assert_eq!(pick.window(100, 10), 0..10);
        for _ in 0..9 {
            pick.press(Key::Down, 100);
        }
        assert_eq!((pick.at, pick.window(100, 10)), (9, 1..11));
        pick.press(Key::End, 100);
        assert_eq!((pick.at, pick.window(100, 10)), (99, 90..100));
        // The list became short, then empty.
        assert_eq!((pick.window(3, 10), pick.at), (0..3, 2));
        assert_eq!((pick.window(0, 10), pick.at), (0..0, 0));
        assert!(!pick.press(Key::Enter, 0));
    }
}
