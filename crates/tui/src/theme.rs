//! The colors and their meanings. Without color, only font weight distinguishes elements.

use ratatui::style::{Color, Modifier, Style};

use crate::message::ColorMode;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Theme {
    pub(crate) color: ColorMode,
}

impl Theme {
    fn foreground(self, color: Color) -> Style {
        match self.color {
            ColorMode::On => Style::new().fg(color),
            ColorMode::Off => Style::new(),
        }
    }

    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Secondary text.
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The current position.
    pub(crate) fn accent(self) -> Style {
        self.foreground(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn selected(self) -> Style {
        match self.color {
            ColorMode::On => Style::new().bg(Color::Indexed(237)).add_modifier(Modifier::BOLD),
            ColorMode::Off => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    pub(crate) fn good(self) -> Style {
        self.foreground(Color::Green)
    }

    pub(crate) fn warn(self) -> Style {
        self.foreground(Color::Yellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.foreground(Color::Red)
    }

    /// Names of JSON members.
    pub(crate) fn name(self) -> Style {
        self.foreground(Color::Cyan)
    }

    pub(crate) fn text(self) -> Style {
        self.foreground(Color::Green)
    }

    pub(crate) fn number(self) -> Style {
        self.foreground(Color::Yellow)
    }

    /// A search match.
    pub(crate) fn hit(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
