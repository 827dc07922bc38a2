//! Widens the sampling interval, so that sampling stays within its CPU budget, and narrows it for small limits.
//!
//! The policy's interval is the finest, if it names one. The cost of a sample differs a hundredfold between programs: a
//! service is found by its thread alone, a package by a walk over cold frames. The number of samples
//! differs as well. So no fixed interval is both cheap everywhere and as accurate as possible. Estimates
//! stay unbiased through changes, because each sample is weighed with the interval that it was drawn
//! under ([`super::interval`]). A wider interval makes the standard error larger, which is published.
//!
//! # Rules
//! The *finest* interval is the policy's. If the policy names none, it is halved until the smallest limit is
//! [`LIMIT_SAMPLES_WANTED`] intervals, but not below [`FINEST_BYTES`]: a refusal comes at three standard errors
//! beyond the limit, and with 64 KiB those are 8 % of a limit of 96 MiB, with 16 KiB 4 %. It follows a smaller
//! limit at once, and a larger one, or none, after `UNNEEDED`: limits of scopes come and go.
//!
//! The interval in force is the finest, doubled `level` times. `level` is the larger of two:
//!
//! 1. **CPU time of samples.** It is measured over a window as a share of the CPU time of the process.
//!    The process counts with at least `IDLE_SHARE` of a processor, so that samples of an idle
//!    process do not matter. A window ends after `WINDOW` with at least `TIMED_ENOUGH` timed
//!    samples, after `LONG_WINDOW` with at least `TIMED_AT_LEAST` or with none, and after
//!    `LONGEST_WINDOW` in any case. With fewer than `TIMED_AT_LEAST` the cost is taken as zero.
//!    Above the budget the interval is widened at once, by as many doublings as bring the share below
//!    the budget. After `CALM` below a quarter of the budget it is narrowed by one doubling, which
//!    leaves the share below a half.
//!
//!    **Credit.** The budget holds on average, and need not be used up when nobody asks for accuracy: what
//!    samples took less than their budget is saved, up to the budget of `SAVED`, which is also there at the
//!    start. While an account with a limit fills ([`crate::enforce::filling`]), or is refused, samples may take
//!    `BURST` times their budget, but at most `MAX_IN_BURST`, of the CPU time of at least one whole processor, until
//!    the credit is used up, and again when a quarter of it is saved. The interval is narrowed at once then, as far as
//!    that share allows. So a verdict on a bulk load need not wait for the margin of coarse samples, and over
//!    any time samples take at most the budget of that time and of `SAVED`: a burst that takes more is shorter.
//!
//!    **Refusals.** While errors are thrown in an account's threads, the process counts with a whole processor at least,
//!    and the interval is narrowed at once as far as that allows. An error is thrown at a sample alone: in a quiet
//!    process, whose budget is next to nothing, nine of ten requests of a WebFlux application without a door passed.
//! 2. **Tags.** HotSpot visits every tag at each collection: in the pause, where a million tags cost 10 to
//!    20 ms with G1, and after it, to find the dead objects. So the charged bytes, divided by the
//!    interval, must be at most `MAX_TAGS`, a quarter of what the policy lets the agent track, and
//!    as many as collections can visit, at `PER_TAG` each, in as much CPU time as samples may take.
//!    The interval is narrowed again when the finer one would give at most half of that. The rate of
//!    collections is measured over `LONG_WINDOW`. Existing tags stay: the rule bounds the number
//!    that a heap reaches as its objects are replaced.
//!
//! The interval is widened at most [`MAX_INTERVAL_DOUBLINGS`] times from the policy's, to at most
//! [`MAX_INTERVAL_BYTES`]. A limit does not stop it: the budget is the cost, whoever has a limit. An account whose
//! process makes garbage at full speed is then known less closely, its error says so, and it is refused later by
//! three of these errors. In exact mode, and with a policy without a budget, the interval does not change.

use std::time::Duration;

use policy_config::{MAX_INTERVAL_BYTES, MAX_INTERVAL_DOUBLINGS};

/// The shortest window, if it has `TIMED_ENOUGH` timed samples.
const WINDOW: Duration = Duration::from_secs(1);
const TIMED_ENOUGH: u64 = 32;
/// A longer window, for few samples.
const LONG_WINDOW: Duration = Duration::from_secs(10);
const TIMED_AT_LEAST: u64 = 8;
/// The longest window: ends even with fewer timed samples.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);
/// The processors that a process counts with, at least.
const IDLE_SHARE: f64 = 0.1;
/// How long the cost must be below `CALM_SHARE` of the budget before the interval is narrowed.
const CALM: Duration = Duration::from_secs(10);
const CALM_SHARE: f64 = 0.25;
/// The credit is at most the budget of so much CPU time for each processor that the process uses.
const SAVED: Duration = Duration::from_secs(60);
/// A burst begins with at least this part of the credit.
const CREDIT_TO_BEGIN: f64 = 0.25;
/// The budget counts so often in a burst.
const BURST: f64 = 16.0;
/// The share of the CPU time that samples may take in a burst, unless the budget itself is more.
const MAX_IN_BURST: f64 = 0.1;
/// The processors that a process counts with in a burst, and while an account is refused, at least.
const IDLE_SHARE_IN_BURST: f64 = 1.0;
/// A window may narrow the interval so many times in a burst: few samples tell little of what many cost.
const MAX_NARROWINGS: u32 = 3;
/// The most tags that a pause should visit: 1 to 2 ms.
const MAX_TAGS: u64 = 100_000;
/// The CPU time of a collection per tag. Measured: with 100,000 to a million of them, G1 and
/// JDK 25, 80 to 95 ns (the benchmarks' curve `live-samples`, less what it shows for a thousand).
const PER_TAG: Duration = Duration::from_nanos(100);
/// Tags may use 1/this of the records that may be tracked.
const TRACKED_PART: u64 = 4;
/// A limit is at least so many intervals where samples of some classes or sizes alone are made fewer.
pub const LIMIT_SAMPLES: u64 = 1024;
/// The smallest limit is so many intervals where the policy leaves it to the agent and the budget allows: an
/// account at its limit is then known to 1.6 %.
pub const LIMIT_SAMPLES_WANTED: u64 = 4_096;
/// The finest interval that the agent chooses for a limit.
pub const FINEST_BYTES: u64 = policy_config::FINEST_DEFAULT_INTERVAL_BYTES;
/// How long a finer interval stays when no limit needs it any more.
const UNNEEDED: Duration = Duration::from_secs(60);

/// The sampling settings of the policy in force.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wanted {
    /// Mean bytes between samples; 0 is exact.
    pub interval_bytes: u64,
    /// The policy names no interval: small limits may narrow it.
    pub may_be_finer: bool,
    /// Share of the process's CPU time (0 to 1) that samples may take; `None` for no bound.
    pub budget: Option<f64>,
    /// The most samples that may be tracked.
    pub most_tracked: u64,
}

/// The measurements since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// The time since the agent was loaded.
    pub since_start: Duration,
    /// CPU time of the process.
    pub process_cpu: Duration,
    /// Estimated CPU time of samples and refunds.
    pub samples_cpu: Duration,
    /// How many samples were timed, from which `samples_cpu` is estimated.
    pub timed: u64,
    /// How many pauses of the collector have ended.
    pub collections: u64,
    /// Bytes charged to all accounts together, now.
    pub charged_bytes: u64,
    /// The smallest limit of any account, if one has a limit.
    pub smallest_limit_bytes: Option<u64>,
    /// The reasons why accounts want finer samples.
    pub wants: Wants,
}

/// Why accounts want finer samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// An account that has a limit, and is not over it, grew lately.
    pub is_any_filling: bool,
    /// Errors are thrown in the threads of an account.
    pub is_any_refused: bool,
}

/// The CPU time that samples may take, and the credit that they have saved.
#[derive(Debug, Clone, Copy, Default)]
struct Credit {
    /// The CPU time in seconds; `None` before the first window.
    saved: Option<f64>,
    /// The most processors that the process has used in a window, at least one.
    processors: f64,
    /// The processors that it used in the last window, at least [`IDLE_SHARE`].
    in_use: f64,
    /// The credit is being used.
    is_burst: bool,
    /// An account is refused.
    is_refused: bool,
}

impl Credit {
    /// A window has ended: the process used so much CPU time in it, samples so much.
    fn settle(&mut self, budget: f64, elapsed: f64, used: f64, took: f64) {
        self.in_use = used / elapsed;
        self.processors = self.processors.max(self.in_use).max(1.0);
        let most = self.most(budget);
        let saved = self.saved.unwrap_or(most);
        self.saved = Some((saved + budget * used - took).min(most));
    }

    fn most(&self, budget: f64) -> f64 {
        budget * SAVED.as_secs_f64() * self.processors
    }

    /// Begins or ends a burst, at the end of a window.
    fn decide(&mut self, budget: f64, wants: Wants) {
        let needed = match self.is_burst {
            true => 0.0,
            false => CREDIT_TO_BEGIN * self.most(budget),
        };
        let is_wanted = wants.is_any_filling || wants.is_any_refused;
        self.is_burst = is_wanted && self.saved.is_some_and(|saved| saved > needed);
        self.is_refused = wants.is_any_refused;
    }

    /// Within a window: whether finer samples become welcome now. They stay so until it ends.
    fn begins(&mut self, budget: f64, wants: Wants) -> bool {
        let before = (self.is_burst, self.is_refused);
        self.decide(budget, wants);
        self.is_burst |= before.0;
        self.is_refused |= before.1;
        before != (self.is_burst, self.is_refused)
    }

    /// The processors that the process counts with, at least.
    fn least(&self) -> f64 {
        match self.is_refused {
            true => IDLE_SHARE_IN_BURST,
            false => IDLE_SHARE,
        }
    }

    /// The share of the CPU time that samples may take now.
    fn share(&self, budget: f64) -> f64 {
        let share = match self.is_burst {
            true => (BURST * budget).min(MAX_IN_BURST).max(budget),
            false => budget,
        };
        match self.is_burst || self.is_refused {
            true => share * (IDLE_SHARE_IN_BURST / self.in_use).max(1.0),
            false => share,
        }
    }
}

/// Why the interval changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Samples took more than their budget.
    Cost,
    /// There would be more tags than collections should visit.
    Tags,
    /// The reason for widening it is gone, or a limit needs a finer one.
    Calm,
    /// A limit wants a finer one than the policy's.
    Limit,
}

/// A change of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The new interval.
    pub interval_bytes: u64,
    /// The reason.
    pub why: Why,
}

/// The state between two looks. Knows no clock: everything is measured by the caller.
#[derive(Debug, Default)]
pub struct Governor {
    wanted: Wanted,
    /// How often the policy's interval is halved for the smallest limit.
    halvings: u32,
    /// Since when fewer halvings would do.
    unneeded_since: Option<Duration>,
    /// The doublings in force.
    level: u32,
    /// The doublings that rule 1 alone wants.
    by_cost: u32,
    /// The doublings that rule 2 alone wants.
    by_tags: u32,
    window: Measured,
    calm: Duration,
    credit: Credit,
    /// The share of the CPU time that samples took in the last window.
    latest_share: Option<f64>,
    /// The start of the window of rule 2.
    tags_window: Measured,
    /// How many tags collections could visit in all the CPU time of the process; `None` for no bound.
    visitable_tags: Option<f64>,
}

impl Governor {
    /// Takes over what a policy asks for. Returns the interval to put in force: the policy's own, if
    /// anything has changed.
    pub fn adopt(&mut self, wanted: Wanted) -> u64 {
        if wanted != self.wanted {
            *self = Governor {
                wanted,
                window: self.window,
                tags_window: self.tags_window,
                credit: self.credit,
                ..Governor::default()
            };
        }
        self.interval_bytes()
    }

    /// The interval in force, in bytes.
    pub fn interval_bytes(&self) -> u64 {
        self.finest_bytes() << self.level
    }

    fn finest_bytes(&self) -> u64 {
        self.wanted.interval_bytes >> self.halvings
    }

    fn most_doublings(&self) -> u32 {
        MAX_INTERVAL_DOUBLINGS + self.halvings
    }

    /// Applies the rules to the measurements; returns the change that follows, if any.
    pub fn look(&mut self, measured: &Measured) -> Option<Change> {
        let budget = self.wanted.budget.filter(|share| *share > 0.0)?;
        if self.wanted.interval_bytes == 0 {
            return None;
        }
        let before_bytes = self.interval_bytes();
        self.follow_limits(measured);
        self.apply_cost_rule(budget, measured);
        self.count_collections(measured);
        self.apply_tags_rule(budget, measured.charged_bytes);
        let wanted_level = self.by_cost.max(self.by_tags);
        self.level = wanted_level.min(self.most_level());
        let bytes = self.interval_bytes();
        if bytes == before_bytes {
            return None;
        }
        let why = match bytes > before_bytes {
            false if bytes < self.wanted.interval_bytes => Why::Limit,
            false => Why::Calm,
            true if self.level == 0 => Why::Calm,
            true if self.by_cost >= self.by_tags => Why::Cost,
            true => Why::Tags,
        };
        self.calm = Duration::ZERO;
        Some(Change {
            interval_bytes: self.interval_bytes(),
            why,
        })
    }

    /// Chooses the finest interval for the smallest limit. If samples cost too much already, the interval
    /// in force stays, and is narrowed when it is calm.
    fn follow_limits(&mut self, measured: &Measured) {
        let needed = if self.wanted.may_be_finer {
            halvings(self.wanted.interval_bytes, measured.smallest_limit_bytes)
        } else {
            0
        };
        let now = measured.since_start;
        if needed > self.halvings {
            let more = needed - self.halvings;
            self.halvings = needed;
            self.level += more;
            if self.by_cost > 0 {
                self.by_cost += more;
            }
        } else if needed < self.halvings {
            let since = *self.unneeded_since.get_or_insert(now);
            if now.saturating_sub(since) < UNNEEDED {
                return;
            }
            let less = self.halvings - needed;
            self.halvings = needed;
            self.level = self.level.saturating_sub(less);
            self.by_cost = self.by_cost.saturating_sub(less);
            self.by_tags = self.by_tags.saturating_sub(less);
        }
        self.unneeded_since = None;
    }

    fn apply_cost_rule(&mut self, budget: f64, measured: &Measured) {
        if let Some(elapsed) = self.read_window(budget, measured) {
            let share = self.latest_share.unwrap_or_default();
            self.credit.decide(budget, measured.wants);
            let allowed = self.credit.share(budget);
            if share > allowed {
                // A share above 1 counts as 1.
                let doublings = (share.min(1.0) / allowed).log2().ceil().max(1.0) as u32;
                self.by_cost = (self.level + doublings).min(self.most_doublings());
                self.calm = Duration::ZERO;
            } else if self.credit.is_burst || self.credit.is_refused {
                self.narrow_at_once(share, allowed);
            } else if share < budget * CALM_SHARE {
                self.calm += elapsed;
                if self.calm >= CALM {
                    self.calm = Duration::ZERO;
                    self.by_cost = self.by_cost.min(self.level).saturating_sub(1);
                }
            } else {
                self.calm = Duration::ZERO;
            }
        } else if let Some(share) = self.latest_share
            && self.credit.begins(budget, measured.wants)
        {
            // An account has begun to fill, or to be refused, within a window.
            let allowed = self.credit.share(budget);
            if share <= allowed {
                self.narrow_at_once(share, allowed);
            }
        }
    }

    /// As fine as this share allows, if a sample costs what it cost in the last window.
    fn narrow_at_once(&mut self, share: f64, allowed: f64) {
        let narrowings = (allowed / share).log2().floor();
        // Nothing was measured if that is not finite.
        let narrowings = narrowings.clamp(0.0, f64::from(MAX_NARROWINGS)) as u32;
        let before = self.by_cost.min(self.level);
        self.by_cost = before.saturating_sub(narrowings);
        self.calm = Duration::ZERO;
        // As it will be: another reason within this window does not narrow for the same room again.
        self.latest_share = Some(share * f64::from(1 << (before - self.by_cost)));
    }

    /// Ends a window of rule 1, if it is long enough: returns how long it was.
    fn read_window(&mut self, budget: f64, measured: &Measured) -> Option<Duration> {
        let elapsed = measured.since_start.saturating_sub(self.window.since_start);
        let timed = measured.timed.saturating_sub(self.window.timed);
        let enough = match elapsed {
            _ if elapsed < WINDOW => return None,
            _ if elapsed < LONG_WINDOW => TIMED_ENOUGH,
            _ if elapsed < LONGEST_WINDOW => TIMED_AT_LEAST,
            _ => 0,
        };
        if timed < enough && (timed > 0 || elapsed < LONG_WINDOW) {
            return None;
        }
        let used = measured.process_cpu.saturating_sub(self.window.process_cpu);
        let took = measured.samples_cpu.saturating_sub(self.window.samples_cpu);
        self.window = *measured;
        let seconds = elapsed.as_secs_f64();
        let used = used.as_secs_f64().max(self.credit.least() * seconds);
        (self.credit).settle(budget, seconds, used, took.as_secs_f64());
        self.latest_share = Some(if timed < TIMED_AT_LEAST {
            0.0
        } else {
            took.as_secs_f64() / used
        });
        Some(elapsed)
    }

    /// Measures how many tags collections can visit at their present rate.
    fn count_collections(&mut self, measured: &Measured) {
        let before = self.tags_window;
        let elapsed = measured.since_start.saturating_sub(before.since_start);
        if elapsed < LONG_WINDOW {
            return;
        }
        self.tags_window = *measured;
        let used = measured.process_cpu.saturating_sub(before.process_cpu);
        let used = used.as_secs_f64().max(IDLE_SHARE * elapsed.as_secs_f64());
        let collections = measured.collections.saturating_sub(before.collections) as f64;
        let per_visit = PER_TAG.as_secs_f64();
        self.visitable_tags = (collections > 0.0).then(|| used / per_visit / collections);
    }

    fn apply_tags_rule(&mut self, budget: f64, charged_bytes: u64) {
        let affordable = self.visitable_tags.map(|tags| (budget * tags) as u64);
        let most = MAX_TAGS
            .min(self.wanted.most_tracked / TRACKED_PART)
            .min(affordable.unwrap_or(u64::MAX))
            .max(1);
        let finest_bytes = self.finest_bytes();
        let samples = |level: u32| charged_bytes / (finest_bytes << level).max(1);
        while self.by_tags < self.most_doublings() && samples(self.by_tags) > most {
            self.by_tags += 1;
        }
        while self.by_tags > 0 && samples(self.by_tags - 1) <= most / 2 {
            self.by_tags -= 1;
        }
    }

    /// The highest level: as wide as the JVM may be told.
    fn most_level(&self) -> u32 {
        let intervals = MAX_INTERVAL_BYTES / self.finest_bytes().max(1);
        (intervals.checked_ilog2().unwrap_or(0)).min(self.most_doublings())
    }
}

/// How often an interval is to be halved until a limit is [`LIMIT_SAMPLES_WANTED`] of it.
fn halvings(interval_bytes: u64, limit_bytes: Option<u64>) -> u32 {
    let Some(limit_bytes) = limit_bytes else {
        return 0;
    };
    let wanted_bytes = (limit_bytes / LIMIT_SAMPLES_WANTED).max(FINEST_BYTES);
    let mut halvings = 0;
    while interval_bytes >> halvings > wanted_bytes
        && interval_bytes >> (halvings + 1) >= FINEST_BYTES
    {
        halvings += 1;
    }
    halvings
}

#[cfg(test)]
mod tests;
