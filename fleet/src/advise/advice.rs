//! The advice: the moves, the reasons, and the errors, in the form of the JSON output.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::history::{History, Jvm};
use heapwarden_terminal::clock::{format_duration, format_time};
use heapwarden_terminal::size::shown as bytes;

use super::assessment::{Assessed, Heaps, Service, Settings, assess};
use super::forecast::{Daily, Estimate, Exhaustion, Forecast};
use super::limit_moves::limit_moves;
use super::planner::{self, Budget, Cost, Plan};
use super::report::percent;

/// Rounding of sizes: estimates are less precise, and the planner must not move a service for a byte.
const GRAIN_BYTES: f64 = 1_048_576.0;

/// The result in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// No JVM is pressed.
    NothingToMove,
    /// The moves relieve every pressed JVM.
    Move,
    /// The moves relieve as much as possible; the rest needs more heap or another machine, or more moves
    /// than were asked for.
    MoveSome,
    /// JVMs are pressed, and no move helps.
    NoRelief,
    /// No JVM has enough data.
    Refused,
}

/// The whole answer.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) verdict: Verdict,
    /// The source of the data.
    pub(super) source: String,
    /// The period, RFC 3339.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) step_seconds: u64,
    pub(super) horizon_seconds: u64,
    /// The share of the maximum heap that may be held at the horizon.
    pub(super) target_percent: f64,
    /// The moves, those that free most first.
    pub(super) moves: Vec<Advised>,
    pub(super) plan: Summary,
    /// The JVMs, the fullest at the horizon first.
    pub(super) jvms: Vec<JvmView>,
    /// JVMs that take no part in the plan, and why.
    pub(super) unassessed: Vec<Unassessed>,
    /// Warnings of the source.
    pub(super) notes: Vec<String>,
}

/// The plan as a whole.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Summary {
    /// Excess of the pressed JVMs at the horizon.
    pub(super) excess_bytes: u64,
    /// Excess that is left after the moves.
    pub(super) unrelieved_bytes: u64,
    /// The bytes that the moved services need at their destinations, at the most.
    pub(super) needed_bytes: u64,
    /// Moves of the whole plan that were left out.
    pub(super) moves_omitted: usize,
    /// Whether it is proven that no plan is better.
    pub(super) is_optimal: bool,
    /// No plan leaves less.
    pub(super) bound_unrelieved_bytes: u64,
    /// No plan that leaves as little as the bound has fewer moves.
    pub(super) bound_moves: u64,
}

/// One move.
#[derive(Debug, Serialize)]
pub(super) struct Advised {
    pub(super) service: String,
    pub(super) from: Labels,
    pub(super) to: Labels,
    /// At the horizon, at the source: what it holds half of the time. The plan counts on
    /// `low_bytes`.
    pub(super) frees: Estimate,
    /// At the horizon, at the destination: what it holds 95 % of the time at the most. The plan
    /// reserves `high_bytes`.
    pub(super) needs: Estimate,
    /// The source at the horizon, in percent of its heap, before the plan and after all of it.
    pub(super) from_percent: f64,
    pub(super) from_percent_after: f64,
    /// The destination likewise, at the upper end.
    pub(super) to_percent: f64,
    pub(super) to_percent_after: f64,
    /// The reasons, as sentences without names.
    pub(super) reasons: Vec<String>,
}

/// Which JVM; in JSON its distinguishing labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Labels {
    #[serde(flatten)]
    labels: BTreeMap<String, String>,
    /// Their values, printable.
    #[serde(skip)]
    pub(super) shown: String,
}

impl Labels {
    fn of(jvm: &Jvm) -> Labels {
        Labels {
            labels: jvm.labels.iter().cloned().collect(),
            shown: jvm.name(),
        }
    }
}

/// A JVM.
#[derive(Debug, Serialize)]
pub(super) struct JvmView {
    pub(super) jvm: Labels,
    pub(super) is_pressed: bool,
    pub(super) heap_max_bytes: f64,
    /// The heap after collections.
    pub(super) heap: Forecast,
    /// In percent of the maximum: the high quantile at the end of the period.
    pub(super) pressure_percent: f64,
    /// The same at the horizon.
    pub(super) pressure_then_percent: f64,
    /// When the heap is full; null if growth is not significant.
    pub(super) exhaustion: Option<Exhaustion>,
    /// Beyond 2,000 services, only of pressed JVMs.
    pub(super) services: Vec<ServiceView>,
    pub(super) unassessed: Vec<UnassessedService>,
}

/// A service.
#[derive(Debug, Serialize)]
pub(super) struct ServiceView {
    pub(super) service: String,
    pub(super) kind: &'static str,
    pub(super) live: Forecast,
}

/// A service without enough data.
#[derive(Debug, Serialize)]
pub(super) struct UnassessedService {
    pub(super) service: String,
    pub(super) missing: String,
}

/// A JVM without enough data.
#[derive(Debug, Serialize)]
pub(super) struct Unassessed {
    pub(super) jvm: Labels,
    pub(super) missing: String,
}

/// The advice from a period.
pub(super) fn advise(history: &History, settings: Settings, heaps: &Heaps) -> Advice {
    let (assessed, unassessed) = assess(history, settings, heaps);
    let fleet: Vec<planner::Jvm> = assessed.iter().map(|one| to_plan(one, settings)).collect();
    let plan = planner::plan(&fleet, Budget::default());
    let (plan, moves_omitted) = limit_moves(plan, &fleet, settings.max_moves);
    let excess_bytes = fleet
        .iter()
        .map(|jvm| jvm.held_bytes.saturating_sub(jvm.capacity_bytes))
        .sum();
    let verdict = match (assessed.is_empty(), excess_bytes, plan.cost) {
        (true, ..) => Verdict::Refused,
        (_, 0, _) => Verdict::NothingToMove,
        (.., Cost { moves: 0, .. }) => Verdict::NoRelief,
        (
            ..,
            Cost {
                unrelieved_bytes: 0,
                ..
            },
        ) => Verdict::Move,
        _ => Verdict::MoveSome,
    };
    let mut jvms: Vec<JvmView> = assessed.iter().map(|one| view(one, settings)).collect();
    jvms.sort_by(|a, b| b.pressure_then_percent.total_cmp(&a.pressure_then_percent));
    Advice {
        verdict,
        source: history.source.clone(),
        from: format_time(history.span.start_seconds()),
        to: format_time(history.span.end_seconds()),
        step_seconds: history.span.step_seconds(),
        horizon_seconds: settings.horizon_seconds,
        target_percent: settings.fill * 100.0,
        moves: moves(&assessed, &fleet, &plan, settings),
        plan: Summary {
            excess_bytes,
            unrelieved_bytes: plan.cost.unrelieved_bytes,
            needed_bytes: plan.cost.needed_bytes,
            moves_omitted,
            is_optimal: plan.is_optimal(),
            bound_unrelieved_bytes: plan.bound.unrelieved_bytes,
            bound_moves: plan.bound.moves,
        },
        jvms,
        unassessed: unassessed
            .into_iter()
            .map(|(jvm, missing)| Unassessed {
                jvm: Labels::of(jvm),
                missing: missing.to_string(),
            })
            .collect(),
        notes: history.notes.clone(),
    }
}

/// The input of the planner, rounded to the safe side.
fn to_plan(assessed: &Assessed<'_>, settings: Settings) -> planner::Jvm {
    let down = |bytes: f64| ((bytes / GRAIN_BYTES).floor() * GRAIN_BYTES) as u64;
    let up = |bytes: f64| ((bytes / GRAIN_BYTES).ceil() * GRAIN_BYTES) as u64;
    planner::Jvm {
        capacity_bytes: down(assessed.target_bytes(settings)),
        held_bytes: up(assessed.heap.high_then.bytes),
        held_upper_bytes: up(assessed.heap.high_then.high_bytes),
        accounts: (assessed.jvm.accounts.iter())
            .map(|account| account.name.clone())
            .collect(),
        services: assessed
            .services
            .iter()
            .map(|service| planner::Service {
                name: service.account.name.clone(),
                // When the heap is fullest, the service need not be: count on its median.
                frees_bytes: down(service.live.median_then.low_bytes),
                needs_bytes: up(service.live.high_then.high_bytes),
            })
            .collect(),
    }
}

fn view(assessed: &Assessed<'_>, settings: Settings) -> JvmView {
    JvmView {
        jvm: Labels::of(assessed.jvm),
        is_pressed: assessed.is_pressed(settings),
        heap_max_bytes: assessed.heap_max_bytes,
        heap: assessed.heap,
        pressure_percent: 100.0 * assessed.heap.high_bytes / assessed.heap_max_bytes,
        pressure_then_percent: 100.0 * assessed.heap.high_then.bytes / assessed.heap_max_bytes,
        exhaustion: assessed.heap.seconds_to(assessed.heap_max_bytes),
        services: assessed
            .services
            .iter()
            .map(|service| ServiceView {
                service: service.account.name.clone(),
                kind: service.account.kind.as_str(),
                live: service.live,
            })
            .collect(),
        unassessed: assessed
            .unassessed
            .iter()
            .map(|(account, missing)| UnassessedService {
                service: account.name.clone(),
                missing: missing.to_string(),
            })
            .collect(),
    }
}

fn moves(
    assessed: &[Assessed<'_>],
    fleet: &[planner::Jvm],
    plan: &Plan,
    settings: Settings,
) -> Vec<Advised> {
    let mut freed = vec![0_u64; fleet.len()];
    let mut loaded = vec![0_u64; fleet.len()];
    for one in &plan.moves {
        let service = &fleet[one.source].services[one.service];
        freed[one.source] += service.frees_bytes;
        loaded[one.destination] += service.needs_bytes;
    }
    let mut order = plan.moves.clone();
    order.sort_by_key(|one| {
        let frees = fleet[one.source].services[one.service].frees_bytes;
        (Reverse(frees), *one)
    });
    order
        .into_iter()
        .map(|one| {
            let (from, to) = (&assessed[one.source], &assessed[one.destination]);
            let service = &from.services[one.service];
            let share = |jvm: &Assessed<'_>, held: f64| 100.0 * held / jvm.heap_max_bytes;
            let from_held = from.heap.high_then.bytes;
            let to_held = to.heap.high_then.high_bytes;
            let to_percent_after = share(to, to_held + loaded[one.destination] as f64);
            Advised {
                service: service.account.name.clone(),
                from: Labels::of(from.jvm),
                to: Labels::of(to.jvm),
                frees: service.live.median_then,
                needs: service.live.high_then,
                from_percent: share(from, from_held),
                from_percent_after: share(from, (from_held - freed[one.source] as f64).max(0.0)),
                to_percent: share(to, to_held),
                to_percent_after,
                reasons: reasons(from, service, to_percent_after, settings),
            }
        })
        .collect()
}

/// Why the service leaves its JVM, and how full the destination becomes.
fn reasons(
    from: &Assessed<'_>,
    service: &Service<'_>,
    to_percent_after: f64,
    settings: Settings,
) -> Vec<String> {
    let excess = from.heap.high_then.bytes - from.target_bytes(settings);
    let mut reasons = vec![format!(
        "Its JVM holds {} of its heap after collections 95 % of the time at the most, and {} in {}: {} above the target.",
        percent(100.0 * from.heap.high_bytes / from.heap_max_bytes),
        percent(100.0 * from.heap.high_then.bytes / from.heap_max_bytes),
        format_duration(settings.horizon_seconds),
        bytes(excess),
    )];
    let frees = service.live.median_then.low_bytes;
    reasons.push(if frees >= excess {
        format!("It alone frees enough: {} at least.", bytes(frees))
    } else {
        format!(
            "It frees {} at least, {} of what is above.",
            bytes(frees),
            percent(100.0 * frees / excess)
        )
    });
    let growth = service.live.growth_per_day;
    if growth.is_sure {
        let fastest = from.services.iter().all(|other| {
            let other = other.live.growth_per_day;
            !other.is_sure || other.bytes <= growth.bytes
        });
        reasons.push(format!(
            "It grows by {}{}.",
            daily(growth),
            if fastest {
                ", more than any other service there"
            } else {
                ""
            },
        ));
    }
    reasons.push(format!(
        "Where it goes the heap is then at {} at the most; {} are allowed.",
        percent(to_percent_after),
        percent(100.0 * settings.fill),
    ));
    reasons
}

/// `12 MiB a day (10 MiB to 14 MiB)`.
fn daily(growth: Daily) -> String {
    format!(
        "{} a day ({} to {})",
        bytes(growth.bytes),
        bytes(growth.low_bytes),
        bytes(growth.high_bytes)
    )
}
