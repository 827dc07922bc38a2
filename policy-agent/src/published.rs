//! The readings of the accounts that the listener publishes; it shares them with the Java API.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use policy_core::cohorts::{Cohorts, Mark};

use crate::agent::Agent;
use crate::api::notifier;
use crate::exact;
use crate::reading::{self, Taken};
use crate::report::{Requested, SitesReading, Snapshot, Source, Wanted};
use crate::sites;

/// The listener takes a new reading when the last is older than this. Scrapes within this time share one
/// reading, so that many scrapes cost no more than a few.
const SNAPSHOT_AGE: Duration = Duration::from_millis(200);

/// The same for sites, which change slowly.
const SITES_AGE: Duration = Duration::from_secs(1);

/// The longest pause between two collections that have not used up the evidence budget, in milliseconds.
const PAUSE_MS: u64 = 1_000;

/// The source of the listener's answers.
pub(crate) struct Published {
    agent: &'static Agent,
    /// The last reading of sites, and when it ended.
    sites: Mutex<Option<(Instant, Arc<SitesReading>)>>,
}

impl Published {
    pub(crate) fn new(agent: &'static Agent) -> Published {
        Published {
            agent,
            sites: Mutex::default(),
        }
    }
}

impl Source for Published {
    fn snapshot(&self) -> Arc<Snapshot> {
        let reading = self.agent.api.reading_cache.latest_or(SNAPSHOT_AGE, || {
            self.agent.costs.thread_is("http");
            notifier::read(self.agent)
        });
        reading.snapshot().clone()
    }

    fn requested(&self, wanted: &Wanted, asked: Instant) -> Requested {
        self.agent.snapshots.desk.requested(wanted, asked)
    }

    fn sites(&self) -> Arc<SitesReading> {
        let mut last = self.sites.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((ended, reading)) = &*last
            && ended.elapsed() < SITES_AGE
        {
            return reading.clone();
        }
        let reading = Arc::new(sites::reading::read(&self.agent.core));
        self.agent.costs.thread_is("http");
        *last = Some((Instant::now(), reading.clone()));
        reading
    }

    fn remembers(&self, bytes: u64) {
        self.agent.remembered_bytes.store(bytes, Ordering::Relaxed);
    }

    fn walks(&self) -> Vec<u8> {
        self.agent.walks.document()
    }

    fn contexts(&self) -> Vec<u8> {
        exact::contexts_document(self.agent)
    }

    fn instances(&self) -> Vec<u8> {
        let values_allowed = self.agent.policy.in_force().privacy.values;
        self.agent.walks.instances.document(values_allowed)
    }

    fn ready(&self) -> Result<(), String> {
        if let Some(thread) = self.agent.failed_thread() {
            Err(format!(
                "the agent's thread {thread} has failed: nothing is refused and accounts may be wrong until the JVM is started again"
            ))
        } else if self.agent.core.samples_are_taken() {
            Ok(())
        } else {
            Err("no accounts are kept: the JVM gave another agent the sampling capability, or refused it".to_owned())
        }
    }
}

/// Takes a reading of all that is published. On a thread of the agent.
pub(crate) fn read(agent: &Agent) -> Taken {
    completed(
        agent,
        reading::read(&agent.core, || {
            (agent.policy.unchanging(), agent.policy.published())
        }),
    )
}

/// As [`read`], with what classes hold by cohort.
pub(crate) fn read_with_cohorts(agent: &Agent, cuts: Vec<Mark>) -> (Taken, Cohorts) {
    let (taken, cohorts) = reading::read_with_cohorts(&agent.core, cuts, || {
        (agent.policy.unchanging(), agent.policy.published())
    });
    (completed(agent, taken), cohorts)
}

/// Adds what the core does not know.
fn completed(agent: &Agent, mut taken: Taken) -> Taken {
    let snapshot = &mut taken.snapshot;
    let panics = agent.panics();
    snapshot.sampling.samples = snapshot.sampling.samples.saturating_sub(panics);
    snapshot.sampling.dropped.push(("panic", panics));
    snapshot.sampling.callback_p50_ns = agent.costs.sample_ns(0.5);
    snapshot.sampling.callback_p99_ns = agent.costs.sample_ns(0.99);
    snapshot.heap.live_age_seconds = (agent.core.ledger.epochs().confirmed_ms())
        .map(|then| agent.uptime_ms().saturating_sub(then) as f64 / 1e3);
    let until_allowed_ms =
        (agent.core.enforcement.evidence_allowed_ms()).saturating_sub(agent.uptime_ms());
    snapshot.duress = agent.core.enforcement.duress();
    snapshot.evidence_budget_used_up_seconds =
        (until_allowed_ms > PAUSE_MS).then_some(until_allowed_ms as f64 / 1e3);
    let judged_ms = snapshot.leaks.at_ms;
    snapshot.leaks_judged_at = (judged_ms > 0)
        .then(|| Duration::from_millis(agent.uptime_ms().saturating_sub(judged_ms)))
        .and_then(|ago| SystemTime::now().checked_sub(ago));
    snapshot.process = agent.process().clone();
    snapshot.capabilities = agent.capabilities();
    snapshot.cpu_seconds = agent.costs.seconds();
    snapshot.build = agent.build();
    let mut memory = snapshot.memory_bytes.iter_mut();
    if let Some((_, bytes)) = memory.find(|(part, _)| *part == "identity") {
        *bytes += agent.references.committed_bytes();
    }
    (snapshot.memory_bytes).push(("snapshots", agent.snapshots.desk.committed_bytes()));
    (snapshot.memory_bytes).push(("history", agent.remembered_bytes.load(Ordering::Relaxed)));
    if let Some(contexts) = snapshot.exact.as_ref().and_then(|exact| exact.contexts) {
        (snapshot.memory_bytes).push(("contexts", contexts.memory_bytes));
    }
    taken
}
