//! Taking turns: who works when, whatever it is that works.

use anyhow::{Error, Result};

/// One that works in turns.
pub(crate) trait Player {
    /// The label under which a failure of it is reported.
    type Name;

    /// Returns that label.
    fn name(&self) -> Self::Name;

    /// Whether it has turns left.
    fn goes_on(&self) -> bool;

    /// Works for one turn.
    ///
    /// # Errors
    /// Where it cannot go on.
    fn turn(&mut self) -> Result<()>;
}

/// Lets all work in turns until none goes on, a turn each, one at a time. The order turns round each
/// time, so that none always follows the same other. One that fails is out at once (it might go on to
/// disturb), and the others go on.
///
/// Gives back those that came to their end, and whom what kept from it.
pub(crate) fn take<P: Player>(mut players: Vec<P>) -> (Vec<P>, Vec<(P::Name, Error)>) {
    let mut failed = Vec::new();
    while players.iter().any(Player::goes_on) {
        let mut still = Vec::new();
        for mut player in players {
            if !player.goes_on() {
                still.push(player);
                continue;
            }
            match player.turn() {
                Ok(()) => still.push(player),
                Err(error) => failed.push((player.name(), error)),
            }
        }
        still.reverse();
        players = still;
    }
    (players, failed)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;

    use super::*;

    /// Writes its name at each turn; fails at the turn that is given.
    struct Writer<'a> {
        name: char,
        left: u32,
        fails_at: Option<u32>,
        paper: &'a RefCell<String>,
    }

    impl Writer<'_> {
        fn new(name: char, paper: &RefCell<String>) -> Writer<'_> {
            Writer {
                name,
                left: 3,
                fails_at: None,
                paper,
            }
        }
    }

    impl Player for Writer<'_> {
        type Name = char;

        fn name(&self) -> char {
            self.name
        }

        fn goes_on(&self) -> bool {
            self.left > 0
        }

        fn turn(&mut self) -> Result<()> {
            assert!(self.left > 0, "{} had its last turn", self.name);
            if self.fails_at == Some(self.left) {
                bail!("{} fails", self.name);
            }
            self.left -= 1;
            self.paper.borrow_mut().push(self.name);
            Ok(())
        }
    }

    fn names(players: &[Writer<'_>]) -> String {
        let mut names: Vec<char> = players.iter().map(|player| player.name).collect();
        names.sort_unstable();
        names.into_iter().collect()
    }

    #[test]
    fn the_order_turns_round_each_time() {
        let paper = RefCell::default();
        let writers = "abc".chars().map(|name| Writer::new(name, &paper));
        let (ended, failed) = take(writers.collect());
        assert_eq!(*paper.borrow(), "abccbaabc");
        assert_eq!(names(&ended), "abc");
        assert!(failed.is_empty());
    }

    #[test]
    fn one_that_fails_in_the_midst_is_out_and_the_others_go_on() {
        let paper = RefCell::default();
        let writers = "abc".chars().map(|name| Writer {
            fails_at: (name == 'b').then_some(2),
            ..Writer::new(name, &paper)
        });
        let (ended, failed) = take(writers.collect());
        assert_eq!(*paper.borrow(), "abccaac");
        assert_eq!(names(&ended), "ac");
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].0, 'b');
        assert_eq!(failed[0].1.to_string(), "b fails");
    }

    #[test]
    fn one_that_ends_before_the_others_waits_for_them() {
        let paper = RefCell::default();
        let writers = "ab".chars().map(|name| Writer {
            left: if name == 'a' { 1 } else { 3 },
            ..Writer::new(name, &paper)
        });
        let (ended, _) = take(writers.collect());
        assert_eq!(*paper.borrow(), "abbb");
        assert_eq!(names(&ended), "ab");
    }
}
