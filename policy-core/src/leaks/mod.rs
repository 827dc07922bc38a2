//! Leaks: which classes of which accounts leak, by the statistic of aged growth.
//!
//! * [`statistic`]: what one window of time shows of one row. Pure.
//! * [`history`]: what earlier looks saw, bounded.
//! * [`detector`]: several windows, two looks; a suspicion begins, stays and is withdrawn. Pure but for its
//!   states.
//! * [`asking`]: when a candidate asks for a collection of old memory.
//! * [`grouping`], [`forecast`]: parts of a class of the program; when a limit is used up. Pure.
//! * [`watch`]: puts them together on the holdings thread, after each pass.
//!
//! # Invariants
//! 1. The holdings thread alone judges. Readers take the latest [`Report`]; the enforcer reads one flag.
//! 2. Nothing here refuses anybody: a suspicion is a report.
//! 3. All tables are bounded: rows and looks ([`history`]), suspects and growing rows of a report.

pub mod asking;
pub mod detector;
pub mod forecast;
pub mod grouping;
pub mod history;
pub mod statistic;
pub mod watch;

#[cfg(all(test, not(loom)))]
mod simulation;
#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::ledger::PurseId;
use crate::ports::CollectorKind;
use crate::sites::survivors::Site;

/// The most suspects in a report.
pub const MAX_SUSPECTS: usize = 200;
/// The most rows in a report that grow and are no suspects.
pub const MAX_GROWING: usize = 200;

/// The state of the leak detection, for all threads.
#[derive(Debug)]
pub struct Leaks {
    report: ArcSwap<Report>,
    wants_cover: AtomicBool,
    /// A collection of old memory is one of the whole heap.
    is_cover_dear: AtomicBool,
    memory_bytes: AtomicU64,
    kept_by: ArcSwap<KeptBy>,
}

/// The chains that keep a suspect alive, in words, by account and class.
type KeptBy = HashMap<(Arc<str>, Arc<str>), Vec<String>>;

impl Default for Leaks {
    /// Before the first look.
    fn default() -> Leaks {
        let leaks = Leaks {
            report: ArcSwap::default(),
            wants_cover: AtomicBool::new(false),
            is_cover_dear: AtomicBool::new(false),
            memory_bytes: AtomicU64::new(0),
            kept_by: ArcSwap::default(),
        };
        leaks.are_undecided("no collection of old memory has been seen yet");
        leaks
    }
}

impl Leaks {
    /// Publishes a report without suspects, because nothing can be said. Agent threads.
    pub fn are_undecided(&self, why: &'static str) {
        self.wants_cover.store(false, Ordering::Relaxed);
        self.report.store(Arc::new(Report {
            undecided: Some(why),
            ..Report::default()
        }));
    }

    /// The latest report. Any agent thread.
    #[must_use]
    pub fn report(&self) -> Arc<Report> {
        self.report.load_full()
    }

    /// Whether a candidate is short of proofs: a concurrent cycle would help. One load; the enforcer.
    #[must_use]
    pub fn wants_cover(&self) -> bool {
        self.wants_cover.load(Ordering::Relaxed)
    }

    /// There was a collection of old memory: a request is answered. The enforcer.
    pub fn has_cover(&self) {
        self.wants_cover.store(false, Ordering::Relaxed);
    }

    /// Tells which collector this is. The enforcer.
    pub fn note_collector(&self, kind: CollectorKind) {
        let is_dear = matches!(
            kind,
            CollectorKind::Whole
                | CollectorKind::GenerationalZgc
                | CollectorKind::GenerationalShenandoah
        );
        self.is_cover_dear.store(is_dear, Ordering::Relaxed);
    }

    /// Records what keeps the objects of a suspect alive: chains in words, which join the next report. The thread
    /// that has found out.
    pub fn set_kept_by(&self, account: Arc<str>, class: Arc<str>, chains: Vec<String>) {
        let mut kept_by = KeptBy::clone(&self.kept_by.load());
        // Of suspects that are none any more.
        let report = self.report();
        kept_by.retain(|(account, class), _| report.has_suspect(account, class));
        kept_by.insert((account, class), chains);
        self.kept_by.store(Arc::new(kept_by));
    }

    fn kept_by(&self, account: &Arc<str>, class: &Arc<str>) -> Vec<String> {
        let kept_by = self.kept_by.load();
        let found = kept_by.get(&(account.clone(), class.clone()));
        found.cloned().unwrap_or_default()
    }

    /// Native bytes held, about.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }
}

/// The result of the latest look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// When it was judged, in milliseconds since the agent was made; 0: never.
    pub at_ms: u64,
    /// The longest window that could be judged, in seconds.
    pub horizon_seconds: u64,
    /// Why there is no verdict yet; `None` if there is one.
    pub undecided: Option<&'static str>,
    /// The suspects, fastest growth first.
    pub suspects: Vec<Suspect>,
    /// Classes that grow and are not called leaks, fastest growth first.
    pub growing: Vec<Growing>,
    /// Suspects that the policy acknowledges.
    pub acknowledged: Vec<Growing>,
    /// Rows left out of this report.
    pub omitted: u64,
}

impl Report {
    fn has_suspect(&self, account: &str, class: &str) -> bool {
        let mut suspects = self.suspects.iter();
        suspects.any(|one| *one.account == *account && *one.class == *class)
    }
}

/// A suspect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suspect {
    /// The account.
    pub account: Arc<str>,
    /// The class.
    pub class: Arc<str>,
    /// Purses and class numbers that are summed up in it.
    pub rows: Vec<(PurseId, u32)>,
    /// Live bytes.
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    pub live_standard_error_bytes: f64,
    /// Bytes that stay, per second.
    pub growth_bytes_per_second: f64,
    /// Standard error of the growth.
    pub growth_standard_error: f64,
    /// Since when, in milliseconds since the agent was made.
    pub since_ms: u64,
    /// The window that shows it, in seconds.
    pub window_seconds: u64,
    /// Estimated live objects.
    pub objects: u64,
    /// Generations with live instances.
    pub generations: u64,
    /// The class at each of the looks that are kept, oldest first.
    pub course: Vec<Moment>,
    /// Its parts.
    pub with: Vec<String>,
    /// Where the survivors were allocated.
    pub sites: Vec<Site>,
    /// The chains that keep its objects alive, shortest first; empty until somebody has found out.
    pub kept_by: Vec<String>,
    /// When its account or the heap is full.
    pub exhausts: Option<Exhausts>,
}

/// The live bytes and generations of a class at one look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// When, in milliseconds since the agent was made.
    pub at_ms: u64,
    /// Live bytes.
    pub live_bytes: u64,
    /// Generations with live instances.
    pub generations: u64,
}

/// When something is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exhausts {
    /// `limit` or `heap`.
    pub what: &'static str,
    /// Not before, in seconds after the report.
    pub earliest_seconds: f64,
    /// Not after; `None`: it may never be.
    pub latest_seconds: Option<f64>,
}

/// A row that grows and is not called a leak.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Growing {
    /// The account.
    pub account: Arc<str>,
    /// The class.
    pub class: Arc<str>,
    /// Why not.
    pub why: &'static str,
    /// Live bytes.
    pub live_bytes: u64,
    /// Bytes that stay, per second.
    pub growth_bytes_per_second: f64,
}
