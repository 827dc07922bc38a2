//! Colours and styles. A word or a mark always says the same as a colour.

use ratatui::style::{Color, Modifier, Style};

use heapwarden_client::live::State;

/// With colours or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Palette {
    is_coloured: bool,
}

impl Palette {
    /// Colours, or none.
    pub(crate) fn new(is_coloured: bool) -> Self {
        Palette { is_coloured }
    }

    fn colour(self, colour: Color) -> Style {
        if self.is_coloured {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn head(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn footer(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn trouble(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// Of a row, by its account's state.
    pub(super) fn row(self, state: State, is_stale: bool) -> Style {
        match state {
            _ if is_stale => Style::new().add_modifier(Modifier::DIM),
            State::Over => self.trouble(),
            State::Suspect => self.warning(),
            State::Open | State::Unknown => Style::new(),
        }
    }
}
