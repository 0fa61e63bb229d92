//! The log: events of the yard, standard error of servers, and the messages exchanged with them.

use std::collections::VecDeque;
use std::time::SystemTime;

use crate::text::floor_char_boundary;

/// How many lines are retained, and how much of one line.
const MOST: usize = 5_000;
const LONGEST: usize = 16 * 1024;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiLogEntry {
    pub at: SystemTime,
    pub kind: UiLogKind,
    /// The source that the line is about, if any.
    pub source: Option<String>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiLogKind {
    Event,
    Stderr,
    /// A message to a server.
    Sent,
    /// A message from a server.
    Received,
    /// A message from Toolyard itself.
    Own,
}

impl UiLogKind {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Stderr => "stderr",
            Self::Sent => "→ sent",
            Self::Received => "← recv",
            Self::Own => "log",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct UiLog {
    entries: VecDeque<UiLogEntry>,
    /// How many entries were dropped, so that entry numbers stay stable.
    dropped: usize,
}

impl UiLog {
    pub(crate) fn add(&mut self, entries: Vec<UiLogEntry>) {
        for mut entry in entries {
            if entry.text.len() > LONGEST {
                entry.text.truncate(floor_char_boundary(&entry.text, LONGEST));
            }
            self.entries.push_back(entry);
            if self.entries.len() > MOST {
                self.entries.pop_front();
                self.dropped += 1;
            }
        }
    }

    pub(crate) fn entries(&self) -> &VecDeque<UiLogEntry> {
        &self.entries
    }

    /// The number of the oldest retained entry.
    pub(crate) fn first_number(&self) -> usize {
        self.dropped
    }

    pub(crate) fn get(&self, number: usize) -> Option<&UiLogEntry> {
        self.entries.get(number.checked_sub(self.dropped)?)
    }
}

/// Formats the time of day in UTC as hours, minutes and seconds.
pub(crate) fn format_time(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns the lines of `now` that are new since `before`, where each is the end of the same
/// stream.
pub(crate) fn new_lines<'a>(before: &[String], now: &'a [String]) -> &'a [String] {
    let most = before.len().min(now.len());
    let overlap = (0..=most).rev().find(|overlap| before[before.len() - overlap..] == now[..*overlap]);
    &now[overlap.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::{MOST, UiLog, UiLogEntry, UiLogKind, new_lines};

    #[test]
    fn the_log_forgets_the_oldest_and_keeps_its_numbers() {
        let mut log = UiLog::default();
        let entry = |text: String| UiLogEntry {
            at: SystemTime::UNIX_EPOCH,
            kind: UiLogKind::Own,
            source: None,
            text,
        };
        log.add((0..MOST + 10).map(|number| entry(number.to_string())).collect());
        assert_eq!((log.entries().len(), log.first_number()), (MOST, 10));
        assert_eq!(log.get(9), None);
        assert_eq!(log.get(10).unwrap().text, "10");
        log.add(vec![entry("é".repeat(100_000))]);
        assert!(log.entries().back().unwrap().text.len() <= super::LONGEST);
    }

    #[test]
    fn only_new_lines_of_a_stream_are_told() {
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(new_lines(&lines("a b c"), &lines("b c d e")), lines("d e"));
        assert_eq!(new_lines(&lines(""), &lines("a")), lines("a"));
        assert_eq!(new_lines(&lines("a b"), &lines("a b")), lines(""));
        assert_eq!(new_lines(&lines("a b"), &lines("x y")), lines("x y"));
    }
}
