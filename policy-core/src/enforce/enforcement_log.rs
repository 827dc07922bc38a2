//! The lines of the log about limits. Tenants cannot flood it.
//!
//! # Rules
//! At most one line of each kind per account every `PAUSE`, and at most `MAX_PER_MINUTE` lines
//! for all accounts. The next line of that kind says how many were left out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::format_rounded_bytes as size;

use crate::snapshot::State;

use super::effect::Ineffective;
use super::limit_status::LimitStatus;
use super::ports::LoggedRefusal;
use super::state::{Estimate, Observation};
use super::throw_points::Reason;

/// The shortest time between two lines of one kind about one account.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines a minute about all accounts.
const MAX_PER_MINUTE: u32 = 60;
/// Lines whose pauses are remembered, one per account and kind.
const MAX_REMEMBERED: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Line {
    Over,
    Readmitted,
    Soft,
    Refusal,
    Reserve,
    Waits,
}

/// Which lines were written when. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct EnforcementLog {
    written: HashMap<(Arc<str>, Line), (Instant, u64)>,
    minute: Option<(Instant, u32)>,
}

impl EnforcementLog {
    /// `Some` if a line may be written now, with how many were left out before it.
    fn admits(&mut self, account: &Arc<str>, line: Line, now: Instant) -> Option<u64> {
        if self.written.len() > MAX_REMEMBERED {
            self.written.retain(|_, (at, _)| now - *at < PAUSE);
        }
        let minute = match self.minute {
            Some((begun, lines)) if now - begun < Duration::from_secs(60) => (begun, lines),
            _ => (now, 0),
        };
        let place = self.written.get_mut(&(account.clone(), line));
        let rests = place.as_ref().is_some_and(|(at, _)| now - *at < PAUSE);
        if rests || minute.1 >= MAX_PER_MINUTE || self.written.len() > MAX_REMEMBERED {
            if let Some((_, left_out)) = self.written.get_mut(&(account.clone(), line)) {
                *left_out += 1;
            }
            return None;
        }
        self.minute = Some((minute.0, minute.1 + 1));
        let left_out = (self.written).insert((account.clone(), line), (now, 0));
        Some(left_out.map_or(0, |(_, count)| count))
    }

    /// Logs a change of an account's published state, with the states that led to it.
    pub fn changed(
        &mut self,
        account: &Arc<str>,
        status: &LimitStatus,
        observation: &Observation,
        enforced: bool,
        now: Instant,
    ) {
        if status.state() == State::Suspect {
            // Not worth a line: the charge contains garbage.
            return;
        }
        let limit = observation.limit_bytes.unwrap_or(0);
        let over = status.state() == State::Over;
        if !over && !status.was_over() {
            return;
        }
        let line = if over { Line::Over } else { Line::Readmitted };
        let Some(left_out) = self.admits(account, line, now) else {
            return;
        };
        let left_out = LeftOut(left_out);
        let (limit, history) = (size(limit), status.history(now));
        if over {
            let live = observation.covered.left;
            let effect = match enforced {
                true if status.reserve.is_some() => {
                    "new work is turned away at its door; what is inside goes on within the reserve"
                }
                true => "its allocations are refused where that is safe",
                false => "observed only, nothing is refused",
            };
            tracing::warn!(
                "account {account} is over its limit of {limit}: {} survived a collection of all memory; {effect}; states: {history}{left_out}",
                measured(live),
            );
        } else {
            // The collection may have begun before it let go.
            let (survived, charged) = (observation.survived.left, observation.charged);
            let (left, how) = match charged.bytes < survived.bytes {
                true => (charged, "is charged to it"),
                false => (survived, "survived the latest collection"),
            };
            tracing::info!(
                "account {account} is admitted again: {} {how}, the limit is {limit}; states: {history}{left_out}",
                measured(left),
            );
        }
    }

    /// Logs that the threads and requests of an account were made to wait, and for what.
    pub fn waits(&mut self, account: &Arc<str>, status: &LimitStatus, now: Instant) {
        let waited_ms = status.counts.waited_ms - status.waits_told_ms;
        let why = match status.state() {
            State::Over => "it is over its limit and goes on allocating",
            _ => "the heap is short, and evidence about it is awaited",
        };
        if let Some(left_out) = self.admits(account, Line::Waits, now) {
            tracing::warn!(
                "account {account}: its threads and requests were made to wait {:.1} s in all since the last such line; {why}{}",
                Duration::from_millis(waited_ms).as_secs_f64(),
                LeftOut(left_out)
            );
        }
    }

    /// Logs that refusals do not stop an account. Not among the lines that may be left out: it comes once for
    /// each time that an account is over its limit.
    pub fn ineffective(&mut self, account: &Arc<str>, ineffective: &Ineffective) {
        let at =
            (ineffective.frame.as_ref()).map_or_else(String::new, |frame| format!(" (in {frame})"));
        let (why, remedy) = match ineffective.reason {
            Reason::NoUnit => (
                "its threads have no unit of work that an error could end",
                "name one by work = [\"…\"] in its section of the policy, or give its memory a bound of its own",
            ),
            Reason::NoDoor => (
                "that work has not come through one of its doors, and goes on while the heap has room",
                "if the account goes on growing, add the method with which it begins to door = [\"…\"]",
            ),
            Reason::Policy => (
                "never-interrupt forbids it",
                "narrow never-interrupt in its section of the policy",
            ),
            _ => (
                "an error would do harm there",
                "see docs/enforcement.md, or give its memory a bound of its own",
            ),
        };
        tracing::warn!(
            "account {account} stays over its limit and refusals do not stop it: they are put off, mostly for the reason {}{at}: {why}; {remedy}",
            ineffective.reason.name(),
        );
    }

    /// Logs that an account has used up its reserve, of `reserve_bytes`.
    pub fn reserve_used_up(
        &mut self,
        account: &Arc<str>,
        reserve_bytes: u64,
        observation: &Observation,
        now: Instant,
    ) {
        if let Some(left_out) = self.admits(account, Line::Reserve, now) {
            tracing::warn!(
                "account {account} has used up its reserve of {}: {} survived a collection of all memory; its allocations are refused where that is safe{}",
                size(reserve_bytes),
                measured(observation.covered.left),
                LeftOut(left_out)
            );
        }
    }

    /// Logs that an account has gone above its soft limit.
    pub fn soft(&mut self, account: &Arc<str>, limit: u64, live: Estimate, now: Instant) {
        if let Some(left_out) = self.admits(account, Line::Soft, now) {
            tracing::warn!(
                "account {account} is above its soft limit of {}: {} live; nothing is refused for that{}",
                size(limit),
                measured(live),
                LeftOut(left_out)
            );
        }
    }

    /// Logs a refusal that was thrown, or would have been, in one short line.
    pub fn refused(&mut self, refused: &LoggedRefusal, now: Instant) {
        let details = &refused.details;
        let Some(left_out) = self.admits(&details.account, Line::Refusal, now) else {
            return;
        };
        tracing::warn!(
            "account {}: {} {} in {} on thread {}; live {} of {}{}",
            details.account,
            size(refused.requested_bytes),
            if refused.thrown {
                "was refused"
            } else {
                "would have been refused"
            },
            refused.frame.as_deref().unwrap_or("a method that is gone"),
            refused.thread.as_deref().unwrap_or("that is gone"),
            size(details.live_bytes),
            size(details.limit_bytes),
            LeftOut(left_out)
        );
    }
}

/// An estimate with its standard error: `86.2MiB ± 1.8MiB`.
fn measured(estimate: Estimate) -> String {
    let error_bytes = estimate.standard_error_bytes() as u64;
    format!("{} ± {}", size(estimate.bytes), size(error_bytes))
}

/// "(12 such lines left out)", or nothing.
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
        let mut log = EnforcementLog::default();
        let now = Instant::now();
        let a: Arc<str> = "a".into();
        assert_eq!(log.admits(&a, Line::Over, now), Some(0));
        assert_eq!(log.admits(&a, Line::Over, now), None);
        assert_eq!(log.admits(&a, Line::Soft, now), Some(0));
        assert_eq!(log.admits(&a, Line::Over, now + PAUSE), Some(1));
        let written = (0..500)
            .filter(|n| {
                let name: Arc<str> = format!("t{n}").into();
                log.admits(&name, Line::Over, now + PAUSE).is_some()
            })
            .count();
        assert_eq!(written, (MAX_PER_MINUTE - 3) as usize);
        let later = now + PAUSE + Duration::from_secs(61);
        assert!(log.admits(&"z".into(), Line::Over, later).is_some());
    }
}
