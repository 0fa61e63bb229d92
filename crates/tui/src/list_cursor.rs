//! A cursor in a long list and the visible window around it. Only the rows in the window are drawn.

use crate::key::KeyPress;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListCursor {
    pub(crate) at: usize,
    top: usize,
    /// The height of the window when it was last drawn.
    height: usize,
}

impl ListCursor {
    pub(crate) fn at_index(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Moves the cursor; returns whether the key was a movement key.
    pub(crate) fn press(&mut self, key: KeyPress, len: usize) -> bool {
        let page = self.height.max(2) - 1;
        let last = len.saturating_sub(1);
        self.at = match key {
            KeyPress::Up | KeyPress::Char('k') => self.at.saturating_sub(1),
            KeyPress::Down | KeyPress::Char('j') => self.at + 1,
            KeyPress::PageUp | KeyPress::Ctrl('b') => self.at.saturating_sub(page),
            KeyPress::PageDown | KeyPress::Ctrl('f') => self.at + page,
            KeyPress::Ctrl('u') => self.at.saturating_sub(page / 2),
            KeyPress::Ctrl('d') => self.at + page / 2,
            KeyPress::Home | KeyPress::Char('g') => 0,
            KeyPress::End | KeyPress::Char('G') => last,
            _ => return false,
        }
        .min(last);
        true
    }

    /// Keeps the cursor within a list that may have become shorter.
    pub(crate) fn clamp(&mut self, len: usize) {
        self.at = self.at.min(len.saturating_sub(1));
    }

    /// Returns the part of the list to draw in the given number of lines.
    pub(crate) fn window(&mut self, len: usize, height: usize) -> std::ops::Range<usize> {
        self.height = height;
        self.clamp(len);
        // Where there is space, one line of context before and after the cursor shows that the list
        // continues.
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

/// A scroll window over text, without a cursor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScrollWindow {
    pub(crate) top: usize,
    height: usize,
}

impl ScrollWindow {
    pub(crate) fn press(&mut self, key: KeyPress) -> bool {
        let page = self.height.max(2) - 1;
        self.top = match key {
            KeyPress::Up | KeyPress::Char('k') => self.top.saturating_sub(1),
            KeyPress::Down | KeyPress::Char('j') => self.top + 1,
            KeyPress::PageUp | KeyPress::Ctrl('b') => self.top.saturating_sub(page),
            KeyPress::PageDown | KeyPress::Ctrl('f') | KeyPress::Char(' ') => self.top + page,
            KeyPress::Ctrl('u') => self.top.saturating_sub(page / 2),
            KeyPress::Ctrl('d') => self.top + page / 2,
            KeyPress::Home | KeyPress::Char('g') => 0,
            KeyPress::End | KeyPress::Char('G') => usize::MAX / 2,
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
    use super::ListCursor;
    use crate::key::KeyPress;

    #[test]
    fn the_window_follows_the_place_and_never_leaves_the_list() {
        let mut pick = ListCursor::default();
        assert_eq!(pick.window(100, 10), 0..10);
        for _ in 0..9 {
            pick.press(KeyPress::Down, 100);
        }
        assert_eq!((pick.at, pick.window(100, 10)), (9, 1..11));
        pick.press(KeyPress::End, 100);
        assert_eq!((pick.at, pick.window(100, 10)), (99, 90..100));
        // The list became short, then empty.
        assert_eq!((pick.window(3, 10), pick.at), (0..3, 2));
        assert_eq!((pick.window(0, 10), pick.at), (0..0, 0));
        assert!(!pick.press(KeyPress::Enter, 0));
    }
}
