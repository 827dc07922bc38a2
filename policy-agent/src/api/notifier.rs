//! The notifier: the thread that takes readings for programs, and calls listeners when an account comes
//! near its limits.
//!
//! It has a thread of its own so that no other thread of the agent waits for it: a reading scans all
//! records. A call of listeners goes to the Java half of the API, which hands it to the listeners' own
//! threads and returns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use policy_core::Core;
use policy_jvm::Jni;

use crate::ground::Ground;
use crate::options::TestPanic;
use crate::report::State;
use crate::snapshots::reader::Reader;

use super::reading::Reading;
use super::reading_cache::{self, ReadingCache};
use super::traced::Traced;
use crate::pressure::{AccountPressure, Figures, Watch};

/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Time between two calls that let the Java half forget loaders that are gone.
const TIDY: Duration = Duration::from_secs(10);

/// The readings for programs, shared by all threads.
pub(crate) struct Api {
    pub(crate) reading_cache: ReadingCache,
    /// Of which purses stacks are taken for tests.
    pub(crate) traced: Traced,
    has_listeners: AtomicBool,
}

impl Api {
    pub(crate) fn new() -> Api {
        Api {
            reading_cache: ReadingCache::default(),
            traced: Traced::default(),
            has_listeners: AtomicBool::new(false),
        }
    }

    /// Says whether any listener is registered.
    pub(crate) fn listen(&self, any: bool) {
        self.has_listeners.store(any, Ordering::Release);
        self.reading_cache.wakeup.wake();
    }

    /// The enforcer has taken a turn: there may be news for listeners.
    pub(crate) fn enforcer_took_turn(&self) {
        if self.has_listeners.load(Ordering::Acquire) {
            self.reading_cache.wakeup.wake();
        }
    }
}

/// Runs until the agent stops. Whoever calls this closes the cache afterwards.
pub(crate) fn run(ground: &'static Ground, api: &Api, reader: &Reader, jni: &Jni) {
    api.reading_cache.wakeup.listen();
    let mut watch = Watch::default();
    // How long the last reading took, and when it ended.
    let mut last: Option<(Duration, Instant)> = None;
    let mut tidied = Instant::now();
    while !ground.stopping() {
        if api.has_listeners.load(Ordering::Acquire) {
            for (change, pressure) in watch.look(&pressures(&ground.core)) {
                let parent = ground.core.directory().parent_of(&pressure.account);
                if let Some(bridge) = ground.bridge() {
                    bridge.announce(jni, change, &pressure, parent.as_deref());
                }
            }
        }
        if tidied.elapsed() >= TIDY && ground.core.identity.scopes.in_use().0 {
            tidied = Instant::now();
            if let Some(bridge) = ground.bridge() {
                bridge.tidy(jni);
            }
        }
        if api.reading_cache.take_wanted() {
            if let Some((took, ended)) = last {
                std::thread::sleep(reading_cache::pause(took, ended.elapsed()));
            }
            if ground.options().test_panic == Some(TestPanic::Notifier) {
                std::panic::resume_unwind(Box::new("a test asked for it"));
            }
            let begun = Instant::now();
            api.reading_cache
                .latest_or(Duration::ZERO, || read(api, reader));
            last = Some((begun.elapsed(), Instant::now()));
        }
        ground.costs.thread_is("notifier");
        api.reading_cache.wakeup.wait(LONGEST_SLEEP);
    }
}

/// Takes a reading. On a thread of the agent.
pub(crate) fn read(api: &Api, reader: &Reader) -> Reading {
    let taken = Instant::now();
    let sites = api.traced.read(reader.core());
    Reading::new(taken, reader.read()).with_sites(sites)
}

/// The accounts that have limits, with their figures.
fn pressures(core: &Core) -> Vec<AccountPressure> {
    let statuses = core.enforcement.statuses();
    let pressures = statuses.all_statuses().map(|(account, status)| {
        let over = status.state() == State::Over;
        let left = if over {
            status.covered
        } else {
            status.survived
        }
        .left;
        AccountPressure {
            account: account.clone(),
            above_soft: status.above_soft,
            over,
            figures: Figures {
                live_bytes: left.bytes,
                charged_bytes: status.charged.bytes,
                standard_error_bytes: left.standard_error_bytes().ceil() as u64,
                soft_limit_bytes: status.soft_limit_bytes,
                limit_bytes: status.limit_bytes,
            },
        }
    });
    pressures.collect()
}
