//! Measures the process, and passes decisions to the VM.

use std::time::{Duration, Instant};

use policy_config::{Sampling, format_bytes};

use super::State;
use crate::core::Core;
use crate::identity::classes::{ClassId, Kind};
use crate::ledger::{LiveRecord, PurseId};
use crate::ports::{Clock, Sampler};
use crate::sampling::governor::{Measured, Wanted, Wants, Why};
use crate::sampling::new_threads;
use crate::sampling::thinning::Living;

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two log lines about changes. Changes in between are counted.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Puts the sampling settings of a policy in force. The metadata thread, and the thread that loads the
/// agent.
pub fn adopt(core: &Core, sampler: &(impl Sampler + ?Sized), sampling: &Sampling) {
    let mut state = core.interval_control.state();
    let max_tracked = *(state.max_tracked).get_or_insert(u64::from(sampling.max_tracked));
    state.budget = sampling.cpu_budget_percent.map(|percent| percent / 100.0);
    let bytes = state.governor.adopt(Wanted {
        interval_bytes: sampling.interval.bytes(),
        may_be_finer: sampling.interval_is_default,
        budget: sampling.cpu_budget_percent.map(|percent| percent / 100.0),
        most_tracked: max_tracked,
    });
    let shares = sampling.thin.iter().map(|rule| rule.keep_percent / 100.0);
    state.shares = shares.collect();
    set_interval(core, sampler, bytes, state.halvings);
    thin_classes(core, &state);
}

/// Checks once a second whether the interval should change. `smallest_limit_bytes` is the smallest
/// limit of any account, `wants` what accounts with limits want of it. The enforcer's thread.
pub fn look(
    core: &Core,
    jvm: &(impl Clock + Sampler + ?Sized),
    smallest_limit_bytes: Option<u64>,
    wants: Wants,
    now: Instant,
) {
    let mut state = core.interval_control.state();
    let is_due =
        (state.last_look).is_none_or(|last_look| now.duration_since(last_look) >= LOOK_EVERY);
    if !is_due || !core.samples_are_taken() {
        return;
    }
    state.last_look = Some(now);
    let since_start = Duration::from_millis(jvm.uptime_ms());
    settle_large_arrays(core, since_start, &mut state);
    let (samples_cpu, timed) = jvm.samples_cpu();
    let measured = Measured {
        since_start,
        process_cpu: jvm.process_cpu(),
        samples_cpu: samples_cpu + state.new_threads.unkept_cpu(),
        timed,
        collections: u64::from(core.ledger.epochs().current().get()),
        charged_bytes: charged_bytes(core).saturating_sub(core.thinning.beyond_bytes()),
        smallest_limit_bytes,
        wants,
    };
    let change = state.governor.look(&measured);
    let interval_bytes = state.governor.interval_bytes();
    let measured = new_threads::Measured {
        since_start,
        process_cpu: measured.process_cpu,
        samples: core.ledger.samples_total(),
        budget: state.budget,
        interval_bytes,
        is_heap_short: core.enforcement.duress().is_on,
    };
    state.halvings = core.new_threads.look(&mut state.new_threads, &measured);
    set_interval(core, jvm, interval_bytes, state.halvings);
    let Some(change) = change else { return };
    thin_classes(core, &state);
    if (state.last_logged).is_some_and(|last_logged| now.duration_since(last_logged) < LOG_EVERY) {
        state.unlogged += 1;
        return;
    }
    let interval = format_bytes(change.interval_bytes);
    let because = match change.why {
        Why::Cost => "samples took more than cpu-budget allows",
        Why::Tags => {
            "the heap holds so much that collections would take too long over finer samples"
        }
        Why::Calm => "it need not be wider",
        Why::Limit => "an account that has a limit is to be known closely",
    };
    let more = match state.unlogged {
        0 => String::new(),
        changes => format!("; {changes} more changes before"),
    };
    tracing::info!("the sampling interval is {interval} now: {because}{more}");
    state.last_logged = Some(now);
    state.unlogged = 0;
}

/// Tells the thinning of large arrays the size of G1's regions, once the collector is known; `None` for
/// other collectors. The enforcer's thread.
pub fn know_regions(core: &Core, region_bytes: Option<u64>) {
    let table = core.ledger.intervals();
    let adopted = core
        .thinning
        .adopt(region_bytes, core.heap.max_bytes(), table);
    if let Err(error) = adopted {
        tracing::warn!("samples may keep large arrays from being given back early: {error}");
    }
}

/// Whether the agent should ask for a collection that decides on large arrays: none has for long, or
/// the undecided ones take much of the heap. The enforcer's thread.
pub fn wants_decision(core: &Core, clock: &(impl Clock + ?Sized)) -> bool {
    let since_start = Duration::from_millis(clock.uptime_ms());
    core.interval_control
        .state()
        .settler
        .wants_decision(since_start)
}

/// Settles large arrays after collections that have decided on them.
fn settle_large_arrays(core: &Core, since_start: Duration, state: &mut State) {
    let (thinning, epochs) = (&core.thinning, core.ledger.epochs());
    let covered = epochs.covered();
    // Covered arrays are decided on as soon as the collection is confirmed; they are settled here.
    let decided = state.decided;
    if let Some(upto) = (state.settler).look(thinning, since_start, covered, decided) {
        state.decided = Some(upto);
        core.ledger.settle_thinned();
        epochs.decide_large(upto);
        let is_large = |record: &LiveRecord| {
            thinning.may_be_large(record.size_bytes)
                && core.identity.classes.kind(ClassId(record.class)) == Kind::Primitives
        };
        thinning.settle(|each| {
            core.ledger.scan(|record| {
                if Some(record.birth) > decided && is_large(record) {
                    each(&Living {
                        account: core.identity.representative(record.payer),
                        size_bytes: record.size_bytes,
                        charged_bytes: record.charge.bytes,
                        is_decided: record.birth <= upto,
                    });
                }
            });
        });
    }
    if state.thinning_logged || thinning.passed_over() == 0 {
        return;
    }
    state.thinning_logged = true;
    tracing::info!(
        "arrays of primitives larger than half of a G1 region come and go: fewer of them are sampled, \
         because a sample keeps them until a concurrent cycle; a larger -XX:G1HeapRegionSize lets all be sampled"
    );
}

/// Puts the rules for classes in force, for the interval that is.
fn thin_classes(core: &Core, state: &State) {
    let table = core.ledger.intervals();
    let interval_bytes = table.bytes(table.current());
    (core.class_thinning).adopt(&state.shares, interval_bytes, table);
}

fn charged_bytes(core: &Core) -> u64 {
    (0..core.ledger.purse_high_water())
        .map(|number| {
            core.ledger
                .totals(PurseId::new(number as u16))
                .charged
                .bytes
        })
        .fold(0, u64::saturating_add)
}

/// Puts an interval in force, for which threads draw under one that is halved so often.
fn set_interval(core: &Core, sampler: &(impl Sampler + ?Sized), bytes: u64, halvings: u32) {
    let intervals = core.ledger.intervals();
    let drawn_bytes = bytes >> halvings;
    let is_in_force = intervals.bytes(intervals.current()) == bytes
        && intervals.bytes(intervals.drawing()) == drawn_bytes;
    if is_in_force || !core.samples_are_taken() {
        return;
    }
    if let Err(failure) = sampler.set_interval(drawn_bytes) {
        tracing::error!("the JVM refuses a sampling interval of {drawn_bytes} bytes ({failure})");
    } else if let Err(error) = intervals.set_drawn(bytes, drawn_bytes) {
        let _ = sampler.set_interval(intervals.bytes(intervals.drawing()));
        tracing::error!("the sampling interval stays as it is: {error}");
    }
}
