//! The herald: the thread that takes readings for programs, and tells listeners of pressure.
//!
//! It has a thread of its own because it waits for nobody and nobody of the agent waits for it:
//! a reading passes over all records, and an announcement calls the Java half, which hands it to
//! the listeners' own threads and returns.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::jvm::java::Jni;
use crate::ledger::PurseId;
use crate::reading as accounts;
use crate::report::State;

use super::desk::{self, Desk};
use super::peaks::Peaks;
use super::pressure::{Figures, Standing, Watch};
use super::reading::Reading;

/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Between two rounds of the Java half, in which it lets go of loaders that are gone.
const TIDY: Duration = Duration::from_secs(10);

/// What programs are told, shared by all threads.
pub(crate) struct Api {
    pub(crate) desk: Desk,
    pub(crate) peaks: Peaks,
    listened: AtomicBool,
}

impl Api {
    pub(crate) fn new() -> Api {
        Api {
            desk: Desk::default(),
            peaks: Peaks::new(),
            listened: AtomicBool::new(false),
        }
    }

    /// Some listener is registered, or none is any more.
    pub(crate) fn listen(&self, any: bool) {
        self.listened.store(any, Ordering::Release);
        self.desk.bell.wake();
    }

    /// The warden has gone round: there may be something to tell.
    pub(crate) fn went_round(&self) {
        if self.listened.load(Ordering::Acquire) {
            self.desk.bell.wake();
        }
    }
}

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni) {
    let api = &agent.api;
    api.desk.bell.listen();
    let mut watch = Watch::default();
    // How long the last reading took, and when it ended.
    let mut last: Option<(Duration, Instant)> = None;
    let mut tidied = Instant::now();
    while !agent.stopping() {
        if api.listened.load(Ordering::Acquire) {
            for (change, standing) in watch.look(&standings(agent)) {
                let parent = parent(agent, &standing.account);
                if let Some(bridge) = agent.bridge() {
                    bridge.announce(jni, change, &standing, parent.as_deref());
                }
            }
        }
        if tidied.elapsed() >= TIDY && agent.identity.scopes.in_use().0 {
            tidied = Instant::now();
            if let Some(bridge) = agent.bridge() {
                bridge.tidy(jni);
            }
        }
        if api.desk.take_wanted() {
            if let Some((took, ended)) = last {
                std::thread::sleep(desk::pause(took, ended.elapsed()));
            }
            let begun = Instant::now();
            api.desk.publish(read(agent));
            last = Some((begun.elapsed(), Instant::now()));
        }
        agent.costs.thread_is("herald");
        api.desk.bell.wait(LONGEST_SLEEP);
    }
    api.desk.close();
}

fn read(agent: &Agent) -> Reading {
    let taken = Instant::now();
    let snapshot = Arc::new(accounts::read(agent));
    let names: HashMap<PurseId, Arc<str>> = agent.directory().names().collect();
    Reading::new(taken, snapshot, names)
}

/// The accounts that have limits, as the docket has them.
fn standings(agent: &Agent) -> Vec<Standing> {
    let docket = agent.enforcement.docket();
    let standings = docket.cases().map(|(account, case)| {
        let over = case.state() == State::Over;
        let left = if over { case.covered } else { case.survived }.left;
        Standing {
            account: account.clone(),
            above_soft: case.above_soft,
            over,
            figures: Figures {
                live_bytes: left.bytes,
                charged_bytes: case.charged.bytes,
                standard_error_bytes: left.standard_error_bytes().ceil() as u64,
                soft_limit_bytes: case.soft_limit_bytes,
                limit_bytes: case.limit_bytes,
            },
        }
    });
    standings.collect()
}

fn parent(agent: &Agent, account: &str) -> Option<Arc<str>> {
    agent.directory().parent_of(account)
}
