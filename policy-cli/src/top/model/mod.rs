//! The content of `top` as pure state: polls and keys go in, rows and a screen come out. It knows neither terminal nor
//! clock.

mod jvm;
mod keys;
mod trend;

use std::time::Duration;

use heapwarden_terminal::table::{Column, Row};

pub(crate) use jvm::{Jvm, Poll};
pub(crate) use keys::{Action, Key, Wish};

/// Which list of an opened account the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The classes of the objects that it holds.
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

/// The view that is open.
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
        /// The selected row of that part.
        scroll: usize,
        /// Whether all classes were asked for.
        all_classes: bool,
    },
    /// One class of an account.
    Class {
        /// Of which account.
        of: Identity,
        /// The class's name, as it came.
        class: String,
        /// The row of the account's list from which it was opened.
        from: usize,
        /// Whether all classes were asked for.
        all_classes: bool,
    },
}

/// The state of `top`.
#[derive(Debug)]
pub(crate) struct Model {
    /// The JVMs, in the order in which they were named.
    pub(crate) jvms: Vec<Jvm>,
    /// The column by which rows are sorted.
    pub(crate) sort: Column,
    /// Whether the column's order is reversed.
    pub(crate) is_reversed: bool,
    /// The text that a row must contain to be listed, in upper or lower case; empty for all.
    pub(crate) filter: String,
    /// The view that is open.
    pub(crate) screen: Screen,
    /// Whether the help is shown over it.
    pub(crate) shows_help: bool,
    /// While the display is paused: the latest poll of each JVM since then.
    held: Option<Vec<Option<Poll>>>,
    /// The latest time seen.
    pub(crate) now: Duration,
    /// The row that the user moved to; before that the cursor stays on the first row.
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

    /// The columns to show: without the JVM's name if there is only one JVM.
    pub(crate) fn columns(&self) -> &'static [Column] {
        match self.jvms.len() {
            0 | 1 => &Column::ALL[1..],
            _ => &Column::ALL,
        }
    }

    /// Whether the display is paused; polls go on.
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

    /// Adds a poll; while the display is paused, it is kept for later.
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
        self.keep_selection();
    }

    /// How many rows a list of an account has.
    fn length(&self, of: &Identity, part: Part) -> usize {
        self.row(of).map_or(0, |row| match part {
            Part::Classes => row.account.classes.len(),
            Part::Principals => row.account.principals.len(),
        })
    }

    /// The name of a class of an account by its place in the list.
    fn class_at(&self, of: &Identity, at: usize) -> Option<String> {
        let row = self.row(of)?;
        Some(row.account.classes.get(at)?.class.to_string())
    }

    fn identity_at(&self, at: usize) -> Option<Identity> {
        self.rows().get(at).map(|row| Identity {
            jvm: row.jvm,
            name: row.account.name.to_string(),
        })
    }

    /// Moves the cursor to the row of the selected account, or, if the account is gone, selects the
    /// account that took its place. Keeps the scroll position of an opened account within its rows.
    fn keep_selection(&mut self) {
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
        let length = self.length(of, *part);
        if let Screen::Account { scroll, .. } = &mut self.screen {
            *scroll = (*scroll).min(length.saturating_sub(1));
        }
    }
}

/// Whether the words of a row contain `wanted`, which is in lower case.
fn matches(row: &Row<'_>, wanted: &str) -> bool {
    [
        row.account.name.as_ref(),
        row.account.kind.as_ref(),
        row.account.state.as_str(),
        row.address,
    ]
    .iter()
    .any(|text| text.to_lowercase().contains(wanted))
}

#[cfg(test)]
pub(crate) mod tests;
