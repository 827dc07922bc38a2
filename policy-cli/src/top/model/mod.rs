//! What `top` shows, as pure state: polls and keys in, rows and a mode out. Knows no terminal and
//! no clock.

mod history;
mod jvm;

use std::time::Duration;

use crate::printable;
use crate::table::{Column, Row};

pub(crate) use jvm::{Jvm, Poll};

/// Longest filter, in characters.
const MAX_FILTER_CHARS: usize = 60;

/// A key, as far as `top` knows any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// Takes back a character of the filter.
    Backspace,
    /// Accepts the filter, or opens an account.
    Enter,
    /// Goes back.
    Escape,
    /// From classes to principals and back.
    Tab,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// Sorts by the column to the left.
    Left,
    /// Sorts by the column to the right.
    Right,
}

/// What the terminal is to do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Draw again.
    Draw,
    /// End.
    Quit,
    /// Ask a JVM for all classes, or again for the largest only.
    Classes {
        /// Which JVM.
        jvm: usize,
        /// Whether all.
        all: bool,
    },
}

/// Which list of an opened account the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// What it holds.
    Classes,
    /// On whose behalf.
    Principals,
}

/// An account of a JVM, whatever row it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Which JVM.
    pub(crate) jvm: usize,
    /// The account's name, as it came.
    pub(crate) name: String,
}

/// What stands on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Screen {
    /// All accounts.
    List,
    /// All accounts, the filter being typed.
    Filter,
    /// One account.
    Account {
        /// Which.
        of: Identity,
        /// Where the keys move.
        part: Part,
        /// First row shown of that part.
        scroll: usize,
        /// Whether all classes were asked for.
        all_classes: bool,
    },
}

/// The state of `top`.
#[derive(Debug)]
pub(crate) struct Model {
    /// The JVMs, in the order in which they were named.
    pub(crate) jvms: Vec<Jvm>,
    /// What rows are sorted by.
    pub(crate) sort: Column,
    /// Whether against the column's own order.
    pub(crate) is_reversed: bool,
    /// What rows must contain; empty for all.
    pub(crate) filter: String,
    /// What stands on the screen.
    pub(crate) screen: Screen,
    /// Whether the keys are explained over it.
    pub(crate) shows_help: bool,
    /// The latest poll of each JVM since the display was held, if it is.
    held: Option<Vec<Option<Poll>>>,
    /// The latest time seen.
    pub(crate) now: Duration,
    /// What the user moved to; before that the cursor is on the first row, whichever it is.
    selected: Option<Identity>,
    cursor: usize,
    page: usize,
}

impl Model {
    /// Nothing read yet.
    pub(crate) fn new(addresses: impl IntoIterator<Item = String>) -> Self {
        Model {
            jvms: addresses.into_iter().map(Jvm::new).collect(),
            sort: Column::Live,
            is_reversed: false,
            filter: String::new(),
            screen: Screen::List,
            shows_help: false,
            held: None,
            now: Duration::ZERO,
            selected: None,
            cursor: 0,
            page: 10,
        }
    }

    /// The columns that tell something: with one JVM, not its name.
    pub(crate) fn columns(&self) -> &'static [Column] {
        match self.jvms.len() {
            0 | 1 => &Column::ALL[1..],
            _ => &Column::ALL,
        }
    }

    /// Whether the display is held while polls go on.
    pub(crate) fn is_paused(&self) -> bool {
        self.held.is_some()
    }

    /// Which of [`Model::rows`] is selected.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Says how many rows a page has.
    pub(crate) fn set_page(&mut self, rows: usize) {
        self.page = rows.max(1);
    }

    /// The rows to show, filtered and sorted.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        let wanted = self.filter.to_lowercase();
        let mut rows: Vec<Row<'_>> = self
            .jvms
            .iter()
            .enumerate()
            .flat_map(|(number, jvm)| jvm.rows(number))
            .filter(|row| wanted.is_empty() || matches(row, &wanted))
            .collect();
        rows.sort_by(|a, b| self.sort.compare(a, b, self.is_reversed));
        rows
    }

    /// The row of an account, if it is still there.
    pub(crate) fn row(&self, of: &Identity) -> Option<Row<'_>> {
        let mut rows = self.jvms.get(of.jvm)?.rows(of.jvm);
        rows.find(|row| row.account.name == of.name)
    }

    /// Takes in a poll; while the display is held, it waits.
    pub(crate) fn poll(&mut self, poll: Poll) {
        if poll.jvm >= self.jvms.len() {
            return;
        }
        if let Some(held) = &mut self.held {
            let jvm = poll.jvm;
            held[jvm] = Some(poll);
            return;
        }
        self.now = self.now.max(poll.at);
        self.jvms[poll.jvm].take(poll.at, poll.outcome);
        self.settle();
    }

    /// Takes in a key.
    pub(crate) fn key(&mut self, key: Key) -> Action {
        if self.shows_help {
            self.shows_help = false;
            return match key {
                Key::Char('q') => Action::Quit,
                _ => Action::Draw,
            };
        }
        let action = match self.screen {
            Screen::Filter => {
                self.key_of_filter(key);
                Action::Draw
            }
            Screen::List => self.key_of_list(key),
            Screen::Account { .. } => self.key_of_account(key),
        };
        self.settle();
        action
    }

    fn key_of_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.screen = Screen::List,
            Key::Escape => {
                self.filter.clear();
                self.screen = Screen::List;
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(typed)
                if !printable::is_hidden(typed)
                    && self.filter.chars().count() < MAX_FILTER_CHARS =>
            {
                self.filter.push(typed);
            }
            Key::Up | Key::Down => self.step(key),
            _ => {}
        }
    }

    fn key_of_list(&mut self, key: Key) -> Action {
        match key {
            Key::Char('/') => self.screen = Screen::Filter,
            Key::Escape => self.filter.clear(),
            Key::Left | Key::Char('<') => self.sort_by_neighbour(-1),
            Key::Right | Key::Char('>' | 's') => self.sort_by_neighbour(1),
            Key::Char('r') => self.is_reversed = !self.is_reversed,
            Key::Enter => {
                if let Some(of) = self.identity_at(self.cursor) {
                    self.selected = Some(of.clone());
                    self.screen = Screen::Account {
                        of,
                        part: Part::Classes,
                        scroll: 0,
                        all_classes: false,
                    };
                }
            }
            _ => return self.key_of_all(key),
        }
        Action::Draw
    }

    fn key_of_account(&mut self, key: Key) -> Action {
        let page = self.page;
        let Screen::Account {
            of,
            part,
            scroll,
            all_classes,
        } = &mut self.screen
        else {
            return Action::Draw;
        };
        match key {
            Key::Escape | Key::Backspace => {
                let (jvm, all) = (of.jvm, *all_classes);
                self.screen = Screen::List;
                return if all {
                    Action::Classes { jvm, all: false }
                } else {
                    Action::Draw
                };
            }
            Key::Char('a') => {
                *all_classes = !*all_classes;
                return Action::Classes {
                    jvm: of.jvm,
                    all: *all_classes,
                };
            }
            Key::Tab => {
                *part = match part {
                    Part::Classes => Part::Principals,
                    Part::Principals => Part::Classes,
                };
                *scroll = 0;
            }
            Key::Up | Key::Char('k') => *scroll = scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => *scroll += 1,
            Key::PageUp => *scroll = scroll.saturating_sub(page),
            Key::PageDown => *scroll += page,
            Key::Home | Key::Char('g') => *scroll = 0,
            Key::End | Key::Char('G') => *scroll = usize::MAX,
            _ => return self.key_of_all(key),
        }
        Action::Draw
    }

    /// Keys that mean the same on every screen but the filter's.
    fn key_of_all(&mut self, key: Key) -> Action {
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('?' | 'h') => self.shows_help = true,
            Key::Char('p' | ' ') => self.pause_or_go_on(),
            _ => self.step(key),
        }
        Action::Draw
    }

    fn pause_or_go_on(&mut self) {
        match self.held.take() {
            None => self.held = Some(vec![None; self.jvms.len()]),
            Some(held) => held.into_iter().flatten().for_each(|poll| self.poll(poll)),
        }
    }

    fn sort_by_neighbour(&mut self, step: isize) {
        let columns = self.columns();
        let at = columns.iter().position(|&column| column == self.sort);
        let next = at.unwrap_or(0).wrapping_add_signed(step).min(columns.len());
        // From before the first to the last, and the other way round.
        self.sort = match (columns.get(next), step < 0) {
            (Some(&column), _) => column,
            (None, true) => columns[columns.len() - 1],
            (None, false) => columns[0],
        };
        self.is_reversed = false;
    }

    fn step(&mut self, key: Key) {
        let last = self.rows().len().saturating_sub(1);
        let cursor = match key {
            Key::Up | Key::Char('k') => self.cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => self.cursor + 1,
            Key::PageUp => self.cursor.saturating_sub(self.page),
            Key::PageDown => self.cursor + self.page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return,
        };
        self.cursor = cursor.min(last);
        self.selected = self.identity_at(self.cursor);
    }

    fn identity_at(&self, at: usize) -> Option<Identity> {
        self.rows().get(at).map(|row| Identity {
            jvm: row.jvm,
            name: row.account.name.clone(),
        })
    }

    /// Brings the cursor to where the selected account is now, or, where it is gone, selects what
    /// took its place; and the scroll of an opened account into its rows.
    fn settle(&mut self) {
        let rows = self.rows();
        let found = self.selected.as_ref().and_then(|of| {
            rows.iter()
                .position(|row| row.jvm == of.jvm && row.account.name == of.name)
        });
        let last = rows.len().saturating_sub(1);
        drop(rows);
        match found {
            Some(at) => self.cursor = at,
            None => {
                self.cursor = self.cursor.min(last);
                if self.selected.is_some() {
                    self.selected = self.identity_at(self.cursor);
                }
            }
        }
        let Screen::Account { of, part, .. } = &self.screen else {
            return;
        };
        let length = self.row(of).map_or(0, |row| match part {
            Part::Classes => row.account.classes.len(),
            Part::Principals => row.account.principals.len(),
        });
        if let Screen::Account { scroll, .. } = &mut self.screen {
            *scroll = (*scroll).min(length.saturating_sub(1));
        }
    }
}

/// Whether what a row shows in words contains `wanted`, which is in small letters.
fn matches(row: &Row<'_>, wanted: &str) -> bool {
    [
        row.account.name.as_str(),
        row.account.kind.as_str(),
        row.account.state.as_str(),
        row.address,
    ]
    .iter()
    .any(|text| text.to_lowercase().contains(wanted))
}

#[cfg(test)]
pub(crate) mod tests;
