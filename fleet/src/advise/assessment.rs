//! Estimates how full each JVM of a fleet is and will be, and what each of its services holds.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::history::{Account, Column, History, Jvm, Kind};
use crate::prometheus::Span;

use super::forecast::{Forecast, Missing, forecast};

/// With more services, only those of pressed JVMs are assessed: an estimate of growth compares all
/// pairs of readings, which takes some milliseconds for each service.
const MAX_SERVICES: usize = 2_000;

/// A whole day must have been observed, because load varies over a day.
const LEAST_SECONDS: u64 = 86_400;

/// Growth is extrapolated to at most this multiple of the observed time.
const MAX_EXTRAPOLATION: u64 = 7;

/// The settings of an assessment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// How far to look ahead.
    pub(super) horizon_seconds: u64,
    /// The share of the maximum heap that may be held at the horizon, 0 to 1.
    pub(super) fill: f64,
    /// Whether less than a whole day is accepted.
    pub(super) allow_short: bool,
    /// The most moves to advise.
    pub(super) max_moves: usize,
    /// Whether scopes can be moved, too.
    pub(super) scopes: bool,
}

impl Settings {
    /// The shortest sufficient period.
    pub(super) fn needed_seconds(&self) -> u64 {
        let least = if self.allow_short { 0 } else { LEAST_SECONDS };
        (self.horizon_seconds / MAX_EXTRAPOLATION).max(least)
    }
}

/// A JVM that can be assessed.
#[derive(Debug)]
pub(super) struct Assessed<'a> {
    pub(super) jvm: &'a Jvm,
    pub(super) heap_max_bytes: f64,
    /// The heap after collections.
    pub(super) heap: Forecast,
    /// Services that can be moved, the largest first.
    pub(super) services: Vec<Service<'a>>,
    /// Services that cannot be assessed.
    pub(super) unassessed: Vec<(&'a Account, Missing)>,
}

/// A service that can be moved.
#[derive(Debug)]
pub(super) struct Service<'a> {
    pub(super) account: &'a Account,
    pub(super) live: Forecast,
}

impl Assessed<'_> {
    /// Returns the bytes that it may hold at the horizon: the share `fill` of its maximum heap.
    pub(super) fn target_bytes(&self, settings: Settings) -> f64 {
        self.heap_max_bytes * settings.fill
    }

    /// Whether it is expected to hold more than that.
    pub(super) fn is_pressed(&self, settings: Settings) -> bool {
        self.heap.high_then.bytes > self.target_bytes(settings)
    }
}

/// The heaps that were forecast already, by the labels of their JVMs. A large fleet is read in two passes, and each
/// needs all of them.
#[derive(Debug, Default)]
pub(super) struct Heaps(RefCell<HashMap<Labels, HeapForecast>>);

type Labels = Vec<(String, String)>;
/// The maximum of the heap and its forecast.
type HeapForecast = Result<(f64, Forecast), Missing>;

impl Heaps {
    /// By how many bytes a JVM is expected to hold more than it may, if it can be assessed and is.
    pub(super) fn excess_bytes(&self, jvm: &Jvm, span: Span, settings: Settings) -> Option<f64> {
        let forecast = Period { span, settings }.heap(jvm);
        let excess = (forecast.as_ref().ok())
            .map(|(max_bytes, heap)| heap.high_then.bytes - max_bytes * settings.fill);
        self.0.borrow_mut().insert(jvm.labels.clone(), forecast);
        excess.filter(|excess| *excess > 0.0)
    }

    fn take(&self, jvm: &Jvm) -> Option<HeapForecast> {
        self.0.borrow_mut().remove(&jvm.labels)
    }
}

/// The fleet: JVMs that can be assessed, and JVMs that cannot. `heaps`: those of the same history, if any.
pub(super) fn assess<'a>(
    history: &'a History,
    settings: Settings,
    heaps: &Heaps,
) -> (Vec<Assessed<'a>>, Vec<(&'a Jvm, Missing)>) {
    let period = Period {
        span: history.span,
        settings,
    };
    let mut assessed = Vec::new();
    let mut unassessed = Vec::new();
    for jvm in &history.jvms {
        match heaps.take(jvm).unwrap_or_else(|| period.heap(jvm)) {
            Ok((heap_max_bytes, heap)) => assessed.push(Assessed {
                jvm,
                heap_max_bytes,
                heap,
                services: Vec::new(),
                unassessed: Vec::new(),
            }),
            Err(missing) => unassessed.push((jvm, missing)),
        }
    }
    let services: usize = assessed.iter().map(|one| one.jvm.accounts.len()).sum();
    for one in &mut assessed {
        if services <= MAX_SERVICES || one.is_pressed(settings) {
            period.services(one);
        }
    }
    (assessed, unassessed)
}

struct Period {
    span: Span,
    settings: Settings,
}

impl Period {
    fn heap(&self, jvm: &Jvm) -> HeapForecast {
        let last = self.span.points().saturating_sub(1);
        let max = jvm.heap_max_bytes.in_force(last).unwrap_or(0.0);
        let used = &jvm.heap_used_after_gc_bytes;
        if max <= 0.0 || used.count() == 0 {
            return Err(Missing::NoHeap);
        }
        let readings = self.readings(jvm, used)?;
        Ok((
            max,
            forecast(&readings, self.settings.horizon_seconds, 0.0)?,
        ))
    }

    fn services(&self, assessed: &mut Assessed<'_>) {
        let jvm = assessed.jvm;
        let interval = jvm.sampling_interval_bytes.last().unwrap_or(0.0);
        for account in jvm.accounts.iter().filter(|one| self.is_movable(one)) {
            match self.service(jvm, account, interval) {
                Ok(live) => assessed.services.push(Service { account, live }),
                // It is not in this JVM any more.
                Err(Missing::Gone { .. }) => {}
                Err(missing) => assessed.unassessed.push((account, missing)),
            }
        }
        let held = |service: &Service<'_>| service.live.high_bytes;
        (assessed.services).sort_by(|a, b| held(b).total_cmp(&held(a)));
    }

    /// Libraries and packages are code of services and cannot be moved alone; reserved accounts cannot
    /// be deployed.
    fn is_movable(&self, account: &Account) -> bool {
        let is_reserved = matches!(account.name.as_str(), "_unaccounted" | "_other");
        match account.kind {
            Kind::Service => !is_reserved,
            Kind::Scope => self.settings.scopes && !is_reserved,
            Kind::Package | Kind::Library | Kind::Reserved => false,
        }
    }

    fn service(&self, jvm: &Jvm, account: &Account, interval: f64) -> Result<Forecast, Missing> {
        let alone;
        let live_bytes = if self.settings.scopes && account.kind == Kind::Service {
            alone = without_scopes(jvm, account, self.span.points());
            &alone
        } else {
            &account.live_bytes
        };
        let readings = self.readings(jvm, live_bytes)?;
        let errors: Vec<f64> = account
            .standard_error_bytes
            .readings()
            .map(|(_, error)| error)
            .collect();
        let error = crate::history::statistics::quantile(&errors, 0.5).map_or(0.0, |it| it.value);
        let live = forecast(&readings, self.settings.horizon_seconds, error)?;
        live.check_error(interval)?;
        Ok(live)
    }

    /// The readings since the JVM's latest restart, with their times, if they are sufficient.
    fn readings(&self, jvm: &Jvm, column: &Column) -> Result<Vec<(f64, f64)>, Missing> {
        let span = self.span;
        let needed_seconds = self.settings.needed_seconds();
        let begin = jvm.restarts.last().copied();
        let steps: Vec<(usize, f64)> = column
            .readings()
            .filter(|(step, _)| begin.is_none_or(|begin| *step >= begin))
            .collect();
        let (first, last) = match (steps.first(), steps.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => (0, 0),
        };
        let step_seconds = span.step_seconds();
        let silent = span.points().saturating_sub(1).saturating_sub(last);
        if steps.is_empty() || silent > (span.points() / 50).max(3) {
            return Err(Missing::Gone {
                seconds: silent as u64 * step_seconds,
            });
        }
        let length = last - first + 1;
        let seen_seconds = length as u64 * step_seconds;
        if seen_seconds < needed_seconds {
            return Err(match begin {
                Some(begin) if first <= begin + 1 => Missing::Restarted {
                    seen_seconds,
                    needed_seconds,
                },
                _ => Missing::Short {
                    seen_seconds,
                    needed_seconds,
                },
            });
        }
        if steps.len() * 2 < length {
            return Err(Missing::Gaps {
                percent: (steps.len() * 100 / length) as u64,
            });
        }
        Ok(steps
            .into_iter()
            .map(|(step, value)| (span.time(step as u64) as f64, value))
            .collect())
    }
}

/// Returns the live bytes of a service without those of the scopes inside it, which are moved on their own, so that
/// nothing is moved twice. (Readings are the highest of each step, which need not coincide, so the difference may be
/// too small.)
fn without_scopes(jvm: &Jvm, service: &Account, steps: usize) -> Column {
    let mut alone = Column::default();
    for (step, bytes) in service.live_bytes.readings() {
        let beneath: f64 = (jvm.accounts.iter())
            .filter(|one| one.kind == Kind::Scope && one.parent == service.name)
            .filter_map(|scope| scope.live_bytes.get(step))
            .sum();
        alone.put(steps, step, (bytes - beneath).max(0.0));
    }
    alone
}
