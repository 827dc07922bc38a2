//! What the log says of limits, bounded whatever the tenants do.
//!
//! # Rules
//! Each account has a line of each kind every [`PAUSE`] at the most, all accounts together
//! [`MOST_PER_MINUTE`]; what was left out is counted in the next line that is written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::report::State;

use super::docket::Case;
use super::refused::Refused;
use super::state::{Estimate, Look};

/// Between two lines of one kind about one account.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines a minute about all accounts.
const MOST_PER_MINUTE: u32 = 60;
/// Accounts whose pauses are remembered.
const MOST_REMEMBERED: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Line {
    Over,
    Readmitted,
    Soft,
    Refusal,
}

/// The log's memory.
#[derive(Debug, Default)]
pub(crate) struct Logbook {
    written: HashMap<(Arc<str>, Line), (Instant, u64)>,
    minute: Option<(Instant, u32)>,
}

impl Logbook {
    /// Whether a line may be written now, and how many were left out before it.
    fn admits(&mut self, account: &Arc<str>, line: Line, now: Instant) -> Option<u64> {
        if self.written.len() > MOST_REMEMBERED {
            self.written.retain(|_, (at, _)| now - *at < PAUSE);
        }
        let minute = match self.minute {
            Some((begun, lines)) if now - begun < Duration::from_secs(60) => (begun, lines),
            _ => (now, 0),
        };
        let place = self.written.get_mut(&(account.clone(), line));
        let rests = place.as_ref().is_some_and(|(at, _)| now - *at < PAUSE);
        if rests || minute.1 >= MOST_PER_MINUTE || self.written.len() > MOST_REMEMBERED {
            if let Some((_, left_out)) = self.written.get_mut(&(account.clone(), line)) {
                *left_out += 1;
            }
            return None;
        }
        self.minute = Some((minute.0, minute.1 + 1));
        let left_out = (self.written).insert((account.clone(), line), (now, 0));
        Some(left_out.map_or(0, |(_, count)| count))
    }

    /// The published state of an account has changed.
    pub(crate) fn changed(
        &mut self,
        account: &Arc<str>,
        case: &Case,
        look: &Look,
        enforced: bool,
        now: Instant,
    ) {
        if case.state() == State::Suspect {
            // A charge contains garbage: no news.
            return;
        }
        let limit = look.limit_bytes.unwrap_or(0);
        let over = case.state() == State::Over;
        if !over && !case.was_over() {
            return;
        }
        let line = if over { Line::Over } else { Line::Readmitted };
        let Some(left_out) = self.admits(account, line, now) else {
            return;
        };
        let left_out = LeftOut(left_out);
        if over {
            let live = look.covered.left;
            let effect = if enforced {
                "its allocations are refused where that is safe"
            } else {
                "observed only, nothing is refused"
            };
            tracing::warn!(
                "account {account} is over its limit: {} bytes (standard error {:.0}) survived a collection of all memory, the limit is {limit}; {effect}{left_out}",
                live.bytes,
                live.standard_error_bytes(),
            );
        } else {
            tracing::info!(
                "account {account} is admitted again: {} bytes survived the latest collection, the limit is {limit}{left_out}",
                look.survived.left.bytes,
            );
        }
    }

    /// An account has gone above its soft limit.
    pub(crate) fn soft(&mut self, account: &Arc<str>, limit: u64, live: Estimate, now: Instant) {
        if let Some(left_out) = self.admits(account, Line::Soft, now) {
            tracing::warn!(
                "account {account} is above its soft limit: {} bytes live, the soft limit is {limit}; nothing is refused for that{}",
                live.bytes,
                LeftOut(left_out)
            );
        }
    }

    /// A refusal was thrown, or would have been.
    pub(crate) fn refused(
        &mut self,
        refused: &Refused,
        thread: Option<&str>,
        frame: Option<&str>,
        history: &str,
        now: Instant,
    ) {
        let terms = &refused.terms;
        let Some(left_out) = self.admits(&terms.account, Line::Refusal, now) else {
            return;
        };
        tracing::warn!(
            "account {}: an allocation of {} bytes {} in {} on thread {}; live {} (standard error {}), limit {}; states: {history}{}",
            terms.account,
            refused.requested_bytes,
            if refused.thrown {
                "was refused"
            } else {
                "would have been refused"
            },
            frame.unwrap_or("a method that is gone"),
            thread.unwrap_or("that is gone"),
            terms.live_bytes,
            terms.standard_error_bytes,
            terms.limit_bytes,
            LeftOut(left_out)
        );
    }
}

/// "(and 12 such lines left out)", or nothing.
struct LeftOut(u64);

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} such lines left out)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_by_account_and_in_all() {
        let mut book = Logbook::default();
        let now = Instant::now();
        let a: Arc<str> = "a".into();
        assert_eq!(book.admits(&a, Line::Over, now), Some(0));
        assert_eq!(book.admits(&a, Line::Over, now), None);
        assert_eq!(book.admits(&a, Line::Soft, now), Some(0));
        assert_eq!(book.admits(&a, Line::Over, now + PAUSE), Some(1));
        let written = (0..500)
            .filter(|n| {
                let name: Arc<str> = format!("t{n}").into();
                book.admits(&name, Line::Over, now + PAUSE).is_some()
            })
            .count();
        assert_eq!(written, (MOST_PER_MINUTE - 3) as usize);
        let later = now + PAUSE + Duration::from_secs(61);
        assert!(book.admits(&"z".into(), Line::Over, later).is_some());
    }
}
