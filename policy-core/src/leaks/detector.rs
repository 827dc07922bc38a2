//! The detector: suspects a row after two looks, keeps the suspicion while it holds, withdraws it.
//!
//! # Windows
//! 10 minutes, 40 minutes, 3 hours and 12 hours, each ending at the newest look. The first that is longer
//! than the history so far is as long as the history: so a fresh JVM is judged after a minute, with a
//! window that short. Longer windows find slower leaks and forgive longer lifetimes; shorter ones find
//! leaks that begin late.
//!
//! # Rules
//! 1. A row is *suspect* if one window calls it a leak at two looks, the later one at least `CONFIRM` of
//!    the window after the first.
//! 2. It is not, and a suspicion is withdrawn, if a longer window saw old instances die: the class has
//!    lifetimes that the shorter window is too short for.
//! 3. A suspicion is also withdrawn when no window shows the growth any more, by weaker bounds, so that it
//!    does not flicker. A look at which no window can be judged changes nothing.
//! 4. States of rows are kept for as long as the row is in the newest look.

use std::collections::HashMap;

use super::history::{History, Look, RowName, RowSeen};
use super::statistic::{Finding, Verdict};

/// The lengths of the windows in seconds.
pub const WINDOWS_SECONDS: [u64; 4] = [600, 2_400, 10_800, 43_200];
/// How much of the window must pass between the first look that calls it a leak and the one that confirms it.
const CONFIRM: f64 = 0.25;
/// A longer window with so many old samples outweighs a shorter one.
const MANY_OLD: u64 = 20;

/// The state of one row.
#[derive(Debug, Clone, Default)]
struct State {
    /// By window: when it was first called a leak and how long the window was, in milliseconds.
    first: [Option<(u64, u64)>; WINDOWS_SECONDS.len()],
    /// Since when it is a suspect, in milliseconds since the agent was made.
    suspect_since_ms: Option<u64>,
}

/// The answer about one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Account and class.
    pub name: RowName,
    /// `Leak`: it is suspect. Otherwise why it is not.
    pub verdict: Verdict,
    /// Whether a window calls it a leak that no second look has confirmed.
    pub is_unconfirmed: bool,
    /// Since when it is a suspect, in milliseconds since the agent was made; 0 if it is none.
    pub since_ms: u64,
    /// The window that says so, in seconds.
    pub window_seconds: u64,
    /// Growth of aged bytes a second, and its standard error.
    pub growth: f64,
    /// See `growth`.
    pub error: f64,
    /// How many windows could be judged.
    pub windows: usize,
}

/// States of the rows. On the holdings thread.
#[derive(Debug, Default)]
pub struct Detector {
    states: HashMap<RowName, State>,
}

impl Detector {
    /// Judges every row of the newest look. Pure but for the states.
    pub fn judge(&mut self, history: &History) -> Vec<Judged> {
        let Some(newest) = history.newest() else {
            return Vec::new();
        };
        let windows = windows_ms(newest.decided_ms());
        let bounds: Vec<_> = (windows.iter())
            .map(|&(index, window_ms)| (index, window_ms, history.bounds(newest, window_ms)))
            .collect();
        self.states.retain(|name, _| newest.rows.contains_key(name));
        let mut judged = Vec::new();
        for (name, row) in &newest.rows {
            let mut found: Vec<(usize, u64, Finding, bool)> = Vec::new();
            for (index, window_ms, bounds) in &bounds {
                if let Some(bounds) = bounds {
                    let view = bounds.view(newest, name, row);
                    let has_many = view.old_then.records >= MANY_OLD;
                    found.push((*index, *window_ms, view.judge(), has_many));
                }
            }
            let state = self.states.entry(name.clone()).or_default();
            judged.push(state.judge(name, newest.decided_ms(), &found));
        }
        judged
    }

    /// Native bytes held, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.states.capacity() * size_of::<(RowName, State)>()) as u64
    }
}

/// The windows that a history of that length has, with their lengths; the shortest first.
pub(super) fn windows_ms(history_ms: u64) -> Vec<(usize, u64)> {
    let mut windows = Vec::new();
    for (index, seconds) in WINDOWS_SECONDS.iter().enumerate() {
        windows.push((index, (seconds * 1_000).min(history_ms)));
        if seconds * 1_000 >= history_ms {
            break;
        }
    }
    windows
}

/// Returns the findings that the windows of a row would have for a look that is not in the history.
pub(super) fn findings(
    history: &History,
    look: &Look,
    name: &RowName,
    row: &RowSeen,
) -> Vec<Finding> {
    (windows_ms(look.decided_ms()).iter())
        .filter_map(|&(_, window_ms)| history.bounds(look, window_ms))
        .map(|bounds| bounds.view(look, name, row).judge())
        .collect()
}

impl State {
    fn judge(
        &mut self,
        name: &RowName,
        now_ms: u64,
        found: &[(usize, u64, Finding, bool)],
    ) -> Judged {
        let mut judged = Judged {
            name: name.clone(),
            verdict: Verdict::Undecided,
            is_unconfirmed: false,
            since_ms: 0,
            window_seconds: 0,
            growth: 0.0,
            error: 0.0,
            windows: found.len(),
        };
        let mut confirmed = None;
        let mut still = None;
        let mut is_outweighed = false;
        // The longest first: it outweighs the shorter ones.
        for &(index, window_ms, finding, has_many) in found.iter().rev() {
            let is_leak = finding.verdict == Verdict::Leak && !is_outweighed;
            if is_leak {
                let (first_ms, first_window_ms) =
                    *self.first[index].get_or_insert((now_ms, window_ms));
                if (now_ms - first_ms) as f64 >= CONFIRM * first_window_ms as f64 {
                    confirmed = confirmed.or(Some((window_ms, finding)));
                } else {
                    judged.is_unconfirmed = true;
                }
            } else if !finding.still_leaks || is_outweighed {
                self.first[index] = None;
            }
            if finding.still_leaks && !is_outweighed {
                still = still.or(Some((window_ms, finding)));
            }
            is_outweighed |= finding.old_dies && has_many;
        }
        let is_refuted = !found.is_empty() && still.is_none();
        if confirmed.is_some() {
            self.suspect_since_ms.get_or_insert(now_ms);
        } else if is_refuted {
            self.suspect_since_ms = None;
        }
        if let Some(since_ms) = self.suspect_since_ms {
            judged.verdict = Verdict::Leak;
            judged.since_ms = since_ms;
            if let Some((window_ms, finding)) = confirmed.or(still) {
                judged.window_seconds = window_ms / 1_000;
                (judged.growth, judged.error) = (finding.growth, finding.error);
            }
            return judged;
        }
        // The longest window that says something; a leak that is not confirmed is not decided.
        let says = |verdict: Verdict| verdict != Verdict::Steady;
        let longest = found
            .iter()
            .rev()
            .find(|(_, _, finding, _)| says(finding.verdict));
        judged.verdict = match longest {
            _ if judged.is_unconfirmed => Verdict::Undecided,
            None if found.is_empty() => Verdict::Undecided,
            None => Verdict::Steady,
            // Outweighed by a longer window.
            Some((_, _, finding, _)) if finding.verdict == Verdict::Leak => Verdict::Turnover,
            Some((_, _, finding, _)) => finding.verdict,
        };
        if let Some((_, window_ms, finding, _)) = longest.or(found.last()) {
            judged.window_seconds = window_ms / 1_000;
            (judged.growth, judged.error) = (finding.growth, finding.error);
        }
        judged
    }
}
