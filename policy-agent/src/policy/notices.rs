//! Log lines about the policy file: every change and every error, within a limit, however often the file
//! is written.
//!
//! Errors, changes and warnings have a [`Quota`] each, so that none of them hides another. Lines beyond
//! the quota are counted. When there is room again, the log gets the difference from the policy that it
//! described last, and the latest error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::Policy;

/// Lines of one kind at once.
const BURST: u32 = 20;
/// One more line of a kind for every such span of time.
const REFILL: Duration = Duration::from_secs(3);

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    Error(String),
    Warning(String),
    Info(String),
}

impl Notice {
    /// Writes it to the log.
    pub(super) fn write(&self) {
        match self {
            Notice::Error(line) => tracing::error!("{line}"),
            Notice::Warning(line) => tracing::warn!("{line}"),
            Notice::Info(line) => tracing::info!("{line}"),
        }
    }
}

/// The lines of one kind that may be logged: [`BURST`], and one more each [`REFILL`].
#[derive(Debug)]
struct Quota {
    left: u32,
    /// The time up to which [`Quota::left`] counts.
    counted_to: Instant,
}

impl Quota {
    fn full(now: Instant) -> Quota {
        Quota {
            left: BURST,
            counted_to: now,
        }
    }

    /// Whether there is room for a line, which it then takes.
    fn takes(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.counted_to);
        let new = u32::try_from(since.as_nanos() / REFILL.as_nanos()).unwrap_or(u32::MAX);
        if new >= BURST - self.left {
            *self = Quota::full(now);
        } else {
            self.left += new;
            self.counted_to += REFILL * new;
        }
        let room = self.left > 0;
        self.left -= u32::from(room);
        room
    }
}

/// The messages that have been logged, and those that wait.
#[derive(Debug)]
pub(super) struct Notices {
    changes: Quota,
    errors: Quota,
    warnings: Quota,
    /// The policy that the log described last, and its generation.
    described: (Arc<Policy>, u64),
    waiting_errors: u64,
    waiting_warnings: u64,
}

impl Notices {
    /// Nothing is logged yet; `first` needs no description.
    pub(super) fn new(first: Arc<Policy>, generation: u64, now: Instant) -> Notices {
        Notices {
            changes: Quota::full(now),
            errors: Quota::full(now),
            warnings: Quota::full(now),
            described: (first, generation),
            waiting_errors: 0,
            waiting_warnings: 0,
        }
    }

    /// The file has a new error.
    pub(super) fn error(&mut self) {
        self.waiting_errors += 1;
    }

    /// The warnings of one reading of the file, within the quota.
    pub(super) fn warnings(
        &mut self,
        lines: impl Iterator<Item = String>,
        now: Instant,
    ) -> Vec<Notice> {
        let mut told = Vec::new();
        for line in lines {
            if self.waiting_warnings == 0 && self.warnings.takes(now) {
                told.push(Notice::Warning(line));
            } else {
                self.waiting_warnings += 1;
            }
        }
        told
    }

    /// The lines that may be logged now. `policy` is in force, `error` is what is wrong with the file.
    pub(super) fn take_lines(
        &mut self,
        policy: &Arc<Policy>,
        generation: u64,
        error: Option<&str>,
        now: Instant,
    ) -> Vec<Notice> {
        let error = self.take_error(error, now);
        let change = self.take_change(policy, generation, now);
        let warnings = self.take_warnings(now);
        [error, change, warnings].into_iter().flatten().collect()
    }

    fn take_error(&mut self, error: Option<&str>, now: Instant) -> Option<Notice> {
        if self.waiting_errors == 0 || !self.errors.takes(now) {
            return None;
        }
        let errors = std::mem::take(&mut self.waiting_errors);
        Some(match (error, errors - 1) {
            (Some(error), 0) => Notice::Error(error.to_owned()),
            (Some(error), before) => {
                Notice::Error(format!("{error} (errors before it, not shown: {before})"))
            }
            (None, _) => Notice::Warning(format!(
                "the policy file is right again (errors before that, not shown: {errors})"
            )),
        })
    }

    fn take_change(
        &mut self,
        policy: &Arc<Policy>,
        generation: u64,
        now: Instant,
    ) -> Option<Notice> {
        let (described, old) = &self.described;
        if generation == *old || !self.changes.takes(now) {
            return None;
        }
        let changes = Policy::diff(described, policy);
        let what = if changes.is_empty() {
            format!("as policy {old} was")
        } else {
            changes.join("; ")
        };
        let between = match generation - old - 1 {
            0 => String::new(),
            between => format!(" (since policy {old}; policies between, not shown: {between})"),
        };
        self.described = (policy.clone(), generation);
        Some(Notice::Info(format!(
            "policy {generation} is in force: {what}{between}"
        )))
    }

    fn take_warnings(&mut self, now: Instant) -> Option<Notice> {
        if self.waiting_warnings == 0 || !self.warnings.takes(now) {
            return None;
        }
        let warnings = std::mem::take(&mut self.waiting_warnings);
        Some(Notice::Warning(format!(
            "warnings of the policy file, not shown: {warnings}; `heapwarden check` shows them"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(limit: u64) -> Arc<Policy> {
        let text = format!("[[account]]\nname = 'a'\nservice = '/a'\nlimit = '{limit}MiB'");
        Arc::new(policy_config::parse(&text).policy.expect("it is right"))
    }

    #[test]
    fn a_quota_is_a_burst_and_then_a_trickle() {
        let start = Instant::now();
        let mut quota = Quota::full(start);
        let mut lines = 0;
        for millisecond in 0..60_000 {
            lines += u32::from(quota.takes(start + Duration::from_millis(millisecond)));
        }
        assert_eq!(lines, BURST + 19);
        assert!(!quota.takes(start + Duration::from_millis(59_999)));
        let later = start + Duration::from_secs(3600);
        assert_eq!(
            (0..100).filter(|_| quota.takes(later)).count(),
            BURST as usize
        );
    }

    #[test]
    fn the_first_of_each_kind_are_logged_at_once() {
        let now = Instant::now();
        let mut notices = Notices::new(policy(1), 1, now);
        assert_eq!(notices.take_lines(&policy(1), 1, None, now), []);
        notices.error();
        assert_eq!(
            notices.take_lines(&policy(1), 1, Some("bad"), now),
            [Notice::Error("bad".into())]
        );
        assert_eq!(
            notices.take_lines(&policy(2), 2, Some("bad"), now),
            [Notice::Info(
                "policy 2 is in force: account a: limit 1MiB -> 2MiB (raised)".into()
            )]
        );
        assert_eq!(notices.take_lines(&policy(2), 2, Some("bad"), now), []);
    }

    #[test]
    fn a_flood_is_counted_and_logged_at_its_end() {
        let now = Instant::now();
        let mut notices = Notices::new(policy(1), 1, now);
        let mut lines = Vec::new();
        for turn in 0..1000 {
            notices.error();
            let error = format!("bad {turn}");
            lines.extend(notices.take_lines(&policy(turn + 2), turn + 2, Some(&error), now));
            let warned = ["one".to_owned(), "two".to_owned()];
            lines.extend(notices.warnings(warned.into_iter(), now));
        }
        assert_eq!(lines.len(), 3 * BURST as usize);
        assert_eq!(
            notices.take_lines(&policy(1001), 1001, Some("bad 999"), now + REFILL),
            [
                Notice::Error("bad 999 (errors before it, not shown: 979)".into()),
                Notice::Info(
                    "policy 1001 is in force: account a: limit 21MiB -> 1001MiB (raised) (since policy 21; policies between, not shown: 979)"
                        .into()
                ),
                Notice::Warning(
                    "warnings of the policy file, not shown: 1980; `heapwarden check` shows them"
                        .into()
                ),
            ]
        );
        assert_eq!(
            notices.take_lines(&policy(1001), 1001, Some("bad 999"), now + 9 * REFILL),
            []
        );
    }

    #[test]
    fn an_error_that_is_over_is_not_logged_as_if_it_lasted() {
        let now = Instant::now();
        let mut notices = Notices::new(policy(1), 1, now);
        for turn in 0..u64::from(BURST) {
            notices.error();
            notices.take_lines(&policy(turn % 2 + 1), turn + 2, Some("bad"), now);
        }
        notices.error();
        let last = u64::from(BURST) + 1;
        assert_eq!(
            notices.take_lines(&policy(9), last + 1, Some("bad"), now),
            []
        );
        assert_eq!(
            notices.take_lines(&policy(2), last + 2, None, now + REFILL),
            [
                Notice::Warning(
                    "the policy file is right again (errors before that, not shown: 1)".into()
                ),
                Notice::Info(
                    "policy 23 is in force: as policy 21 was (since policy 21; policies between, not shown: 1)"
                        .into()
                )
            ]
        );
    }
}
