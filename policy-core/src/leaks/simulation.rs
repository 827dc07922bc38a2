//! For tests: services with known lifetimes of their objects, sampled on a simulated clock and judged by the
//! product's own history and detector.

use std::sync::Arc;

use crate::holdings::EpochTimes;
use crate::ledger::Epoch;

use super::detector::{Detector, Judged};
use super::history::{Births, History, Look, RowName, RowSeen};

/// Mean bytes between samples.
pub(crate) const INTERVAL_BYTES: f64 = 65_536.0;

/// Draws that are the same for the same seed.
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + self.0.f64() * (to - from)
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.0.f64()).ln()
    }
}

/// One sampled object: seconds of its birth and death.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampled {
    pub(crate) born: f64,
    pub(crate) died: f64,
}

pub(crate) const FOREVER: f64 = f64::INFINITY;

/// Births by chance at `rate(t)` bytes a second, at most `highest`, with a lifetime each.
pub(crate) fn service(
    dice: &mut Dice,
    seconds: f64,
    highest: f64,
    rate: impl Fn(f64) -> f64,
    mut lifetime: impl FnMut(&mut Dice, f64) -> f64,
) -> Vec<Sampled> {
    let mut objects = Vec::new();
    let mut now = 0.0;
    loop {
        now += dice.exponential(INTERVAL_BYTES / highest);
        if now >= seconds {
            return objects;
        }
        if dice.uniform(0.0, highest) < rate(now) {
            let lives = lifetime(dice, now);
            objects.push(Sampled {
                born: now,
                died: now + lives,
            });
        }
    }
}

/// One row under looks at given times.
pub(crate) struct Watched {
    history: History,
    detector: Detector,
    times: EpochTimes,
    epoch: u32,
    name: RowName,
    noted: f64,
    gc_seconds: f64,
}

impl Watched {
    /// A JVM that collects young memory every so often.
    pub(crate) fn new(gc_seconds: f64) -> Watched {
        Watched {
            history: History::default(),
            detector: Detector::default(),
            times: EpochTimes::default(),
            epoch: 0,
            name: RowName {
                account: "shop".into(),
                class: "com.acme.Session".into(),
            },
            noted: 0.0,
            gc_seconds,
        }
    }

    /// A collection of old memory at `now`, and a look just after it. It is known to have decided on what was
    /// born more than `lag` seconds before: the canary that told of it was planted then.
    pub(crate) fn look(&mut self, objects: &[Sampled], now: f64, lag: f64) -> Option<Judged> {
        while self.noted + self.gc_seconds <= now {
            self.noted += self.gc_seconds;
            self.epoch += 1;
            let now_ms = (self.noted * 1e3) as u64;
            self.times.note(Epoch::new(self.epoch), None, now_ms);
        }
        let covered = Epoch::new(self.epoch.saturating_sub(1));
        self.times
            .note(Epoch::new(self.epoch), Some(covered), (now * 1e3) as u64);
        self.history
            .push(look(&self.times, &self.name, objects, now, lag));
        self.detector.judge(&self.history).into_iter().next()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.history.memory_bytes() + self.detector.memory_bytes()
    }
}

/// Returns the look at the objects that a collection at `now` leaves.
fn look(times: &EpochTimes, name: &RowName, objects: &[Sampled], now: f64, lag: f64) -> Look {
    let decided_ms = ((now - lag) * 1e3) as u64;
    let decided = times.marks().iter().filter(|mark| mark.at_ms <= decided_ms);
    let marks: Vec<_> = decided.copied().collect();
    let mut births: Vec<Births> = Vec::new();
    let mut row = RowSeen::default();
    for object in objects.iter().filter(|o| o.born <= now && o.died > now) {
        let born_ms = (object.born * 1e3) as u64;
        let cohort = marks.partition_point(|mark| mark.at_ms < born_ms);
        row.live_bytes += INTERVAL_BYTES as u64;
        row.variance += (INTERVAL_BYTES * INTERVAL_BYTES / 256.0) as u64;
        let Some(mark) = marks.get(cohort) else {
            continue;
        };
        if births
            .last()
            .is_none_or(|last| last.upto_epoch != mark.epoch.get())
        {
            births.push(Births {
                upto_epoch: mark.epoch.get(),
                records: 0,
                bytes: 0.0,
                squares: 0.0,
            });
        }
        let last = births.last_mut().expect("one was pushed");
        last.records += 1;
        last.bytes += INTERVAL_BYTES as f32;
        last.squares += (INTERVAL_BYTES * INTERVAL_BYTES) as f32;
    }
    row.births = births;
    let account: Arc<str> = name.account.clone();
    Look {
        at_ms: (now * 1e3) as u64,
        marks,
        accounts: [(account, (row.live_bytes, row.variance))].into(),
        all_accounts: (row.live_bytes, row.variance),
        rows: [(name.clone(), row)].into(),
        omitted: 0,
    }
}

/// The times of looks that a candidate asks for, up to `seconds`.
pub(crate) fn schedule(seconds: f64) -> Vec<f64> {
    let mut times = vec![40.0];
    while let Some(&last) = times.last() {
        let next = last + (last * 0.3f64).min(150.0);
        if next > seconds {
            break;
        }
        times.push(next);
    }
    times
}
