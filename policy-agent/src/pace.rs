//! The sampling interval of the running agent: the policy's, or a wider one where samples cost
//! more than their budget, and one for large arrays. What decides is [`crate::sampling::governor`]
//! and [`crate::sampling::thinning`]; here they are told what happens in the process, and the VM is
//! told what they decide.
//!
//! The clerk puts policies in force and the warden looks; one lock keeps them apart, and no
//! allocating thread takes it.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use policy_config::{Sampling, format_bytes};

use crate::agent::Agent;
use crate::cost::process_cpu_time;
use crate::identity::classes::{ClassId, Kind};
use crate::ledger::{Epoch, LiveRecord, PurseId};
use crate::sampling::governor::{Governor, Measured, Wanted, Why};
use crate::sampling::thinning::{Living, Settler};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Between two lines in the log about changes; those between them are counted.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// What it knows between two looks.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    governor: Governor,
    /// `max-tracked` of the first policy: it is in force until the end.
    most_tracked: Option<u64>,
    looked: Option<Instant>,
    said: Option<Instant>,
    unsaid: u32,
    settler: Settler,
    /// Up to where large arrays are settled.
    decided: Option<Epoch>,
    thinning_said: bool,
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Puts what a policy says of sampling in force. Agent threads, and the loading thread.
pub(crate) fn adopt(agent: &Agent, sampling: &Sampling) {
    let mut state = agent.pace.state();
    let most_tracked = *(state.most_tracked).get_or_insert(u64::from(sampling.max_tracked));
    let bytes = state.governor.adopt(Wanted {
        interval_bytes: sampling.interval.bytes(),
        budget: sampling.cpu_budget_percent.map(|percent| percent / 100.0),
        most_tracked,
    });
    set_interval(agent, bytes);
}

/// Looks once a second whether the interval should be another. `smallest_limit_bytes` is that of
/// the account with the smallest limit. The warden's thread.
pub(crate) fn look(agent: &Agent, smallest_limit_bytes: Option<u64>, now: Instant) {
    let mut state = agent.pace.state();
    let is_due = (state.looked).is_none_or(|looked| now.duration_since(looked) >= LOOK);
    if !is_due || !agent.samples_are_taken() {
        return;
    }
    state.looked = Some(now);
    settle_large_arrays(agent, &mut state);
    let (samples_cpu, timed) = agent.costs.samples();
    let measured = Measured {
        since_start: Duration::from_millis(agent.uptime_ms()),
        process_cpu: process_cpu_time(),
        samples_cpu,
        timed,
        collections: u64::from(agent.ledger.epochs().current().get()),
        charged_bytes: charged_bytes(agent).saturating_sub(agent.thinning.beyond_bytes()),
        smallest_limit_bytes,
    };
    let Some(change) = state.governor.look(&measured) else {
        return;
    };
    set_interval(agent, change.interval_bytes);
    if (state.said).is_some_and(|said| now.duration_since(said) < SAID_AGAIN) {
        state.unsaid += 1;
        return;
    }
    let interval = format_bytes(change.interval_bytes);
    let because = match change.why {
        Why::Cost => "samples took more than cpu-budget allows",
        Why::Tags => {
            "the heap holds so much that collections would take too long over finer samples"
        }
        Why::Calm => "it need not be wider",
    };
    let more = match state.unsaid {
        0 => String::new(),
        changes => format!("; {changes} more changes before"),
    };
    tracing::info!("the sampling interval is {interval} now: {because}{more}");
    state.said = Some(now);
    state.unsaid = 0;
}

/// The collector is known: `region_bytes` is the size of G1's regions. The warden's thread.
pub(crate) fn know_regions(agent: &Agent, region_bytes: Option<u64>) {
    let table = agent.ledger.intervals();
    let adopted = agent
        .thinning
        .adopt(region_bytes, agent.heap_max_bytes(), table);
    if let Err(error) = adopted {
        tracing::warn!("samples may keep large arrays from being given back early: {error}");
    }
}

/// Whether a collection of old memory that comes anyway should be known for one. Any thread.
pub(crate) fn has_undecided(agent: &Agent) -> bool {
    agent.thinning.has_undecided()
}

/// Whether a collection should decide on large arrays, because none has for long or they take much of
/// the heap. The warden's thread.
pub(crate) fn wants_decision(agent: &Agent) -> bool {
    let since_start = Duration::from_millis(agent.uptime_ms());
    agent.pace.state().settler.wants_decision(since_start)
}

/// Takes note of collections that have decided on large arrays.
fn settle_large_arrays(agent: &Agent, state: &mut State) {
    let (thinning, epochs) = (&agent.thinning, agent.ledger.epochs());
    let since_start = Duration::from_millis(agent.uptime_ms());
    let covered = epochs.covered();
    // What is covered is decided on from the moment that it is confirmed, but not settled.
    let decided = state.decided;
    if let Some(upto) = (state.settler).look(thinning, since_start, covered, decided) {
        state.decided = Some(upto);
        epochs.decide_large(upto);
        let is_large = |record: &LiveRecord| {
            thinning.may_be_large(record.size_bytes)
                && agent.identity.classes.kind(ClassId(record.class)) == Kind::Primitives
        };
        thinning.settle(|each| {
            agent.ledger.scan(|record| {
                if Some(record.birth) > decided && is_large(record) {
                    each(&Living {
                        account: agent.identity.representative(record.payer),
                        size_bytes: record.size_bytes,
                        charged_bytes: record.charge.bytes,
                        is_decided: record.birth <= upto,
                    });
                }
            });
        });
    }
    if state.thinning_said || thinning.passed_over() == 0 {
        return;
    }
    state.thinning_said = true;
    tracing::info!(
        "arrays of primitives larger than half of a G1 region come and go: fewer of them are sampled, \
         because a sample keeps them until a concurrent cycle; a larger -XX:G1HeapRegionSize lets all be sampled"
    );
}

fn charged_bytes(agent: &Agent) -> u64 {
    (0..agent.ledger.purse_high_water())
        .map(|number| {
            agent
                .ledger
                .totals(PurseId::new(number as u16))
                .charged
                .bytes
        })
        .fold(0, u64::saturating_add)
}

fn set_interval(agent: &Agent, bytes: u64) {
    let intervals = agent.ledger.intervals();
    if intervals.bytes(intervals.current()) == bytes || !agent.samples_are_taken() {
        return;
    }
    if let Err(failure) = agent.tools.set_sampling_interval(bytes) {
        tracing::error!("the JVM refuses a sampling interval of {bytes} bytes ({failure})");
    } else if let Err(error) = intervals.set(bytes) {
        let _ = agent
            .tools
            .set_sampling_interval(intervals.bytes(intervals.current()));
        tracing::error!("the sampling interval stays as it is: {error}");
    }
}
