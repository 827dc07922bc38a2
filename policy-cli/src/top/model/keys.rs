//! The effect of each key on the model.

use super::{Model, Part, Screen};
use heapwarden_terminal::printable;

/// Longest filter, in characters.
const MAX_FILTER_CHARS: usize = 60;

/// A key that `top` understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// Deletes a character of the filter.
    Backspace,
    /// Accepts the filter, or opens an account or a class.
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

/// The task of the terminal after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Draw again.
    Draw,
    /// End.
    Quit,
    /// Ask a JVM for more from now on, or for less.
    Ask {
        /// Which JVM.
        jvm: usize,
        /// For what.
        wish: Wish,
    },
}

/// The questions to a JVM beside that for its accounts with their largest classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// All classes of each account.
    pub(crate) all_classes: bool,
    /// The suspects, and the classes that grow.
    pub(crate) leaks: bool,
}

impl Model {
    /// Handles a key.
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
            Screen::Class { .. } => self.key_of_class(key),
        };
        self.keep_selection();
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
                    let jvm = of.jvm;
                    self.selected = Some(of.clone());
                    self.screen = Screen::Account {
                        of,
                        part: Part::Classes,
                        scroll: 0,
                        all_classes: false,
                    };
                    let wish = Wish {
                        all_classes: false,
                        leaks: true,
                    };
                    return Action::Ask { jvm, wish };
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
                let jvm = of.jvm;
                self.screen = Screen::List;
                let wish = Wish::default();
                return Action::Ask { jvm, wish };
            }
            Key::Char('a') => {
                *all_classes = !*all_classes;
                let wish = Wish {
                    all_classes: *all_classes,
                    leaks: true,
                };
                return Action::Ask { jvm: of.jvm, wish };
            }
            Key::Enter if *part == Part::Classes => {
                let (of, from, all_classes) = (of.clone(), *scroll, *all_classes);
                if let Some(class) = self.class_at(&of, from) {
                    self.screen = Screen::Class {
                        of,
                        class,
                        from,
                        all_classes,
                    };
                }
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

    /// Up and down go to the neighbours of the class in the account's list.
    fn key_of_class(&mut self, key: Key) -> Action {
        let Screen::Class {
            of,
            from,
            all_classes,
            ..
        } = &self.screen
        else {
            return Action::Draw;
        };
        let (of, from, all_classes) = (of.clone(), *from, *all_classes);
        let to = match key {
            Key::Escape | Key::Backspace => {
                self.screen = Screen::Account {
                    of,
                    part: Part::Classes,
                    scroll: from,
                    all_classes,
                };
                return Action::Draw;
            }
            Key::Up | Key::Char('k') => from.saturating_sub(1),
            Key::Down | Key::Char('j') => from.saturating_add(1),
            Key::Char(_) => return self.key_of_all(key),
            _ => return Action::Draw,
        };
        if let Some(class) = self.class_at(&of, to) {
            self.screen = Screen::Class {
                of,
                class,
                from: to,
                all_classes,
            };
        }
        Action::Draw
    }

    /// Handles the keys that mean the same on every screen except the filter's.
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
        // Wraps around at both ends.
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
}
