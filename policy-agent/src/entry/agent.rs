//! The agent: owns the rooms' states, starts and stops their threads in order. Exact accounts keep theirs in statics,
//! because natives and the hook for class files are given no state.
//!
//! Start: `Agent_OnLoad` makes the ground and the agent from the options and the policy file, asks for capabilities and
//! switches the first events on. `VMInit` (or the attach) looks up the JDK's classes, puts the first
//! policy in force and starts the threads. No failure here reaches the host: the log has one line for
//! each part that does not work, and `heapwarden_capability_enabled` shows it.
//!
//! Stop: at `VMDeath` the last snapshot is written, if the policy wants one, the run file is removed and
//! the threads are woken to end. Nobody waits for them: they are daemons, and the VM may hold them.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use policy_config::{Limit, Policy};
use policy_jvm::kinds::Class;
use policy_jvm::{Event, Global, Jni, Ref, guard};

use crate::allocation::sample::use_up_blind_buffer;
use crate::allocation::scan::enter_builtin_loaders;
use crate::api::notifier::{self, Api};
use crate::door::MethodDoors;
use crate::enforcer;
use crate::enforcer::collector::Collecting;
use crate::enforcer::collector::called_collection::Serving;
use crate::exact;
use crate::ground::Ground;
use crate::holdings_thread;
use crate::http::{self, retry::Bound};
use crate::interval_control;
use crate::jvm::bridge::Bridge;
use crate::jvm::errors::Errors;
use crate::jvm::handles::JavaHandles;
use crate::jvm::tlab_refill;
use crate::naming::enact;
use crate::naming::{loader_thread, metadata_thread};
use crate::policy::watch::{self, Observation};
use crate::run_file;
use crate::snapshots::reader::Reader;
use crate::snapshots::thread::{self as snapshot_thread, SnapshotMaker};
use crate::thread_census::ThreadCensus;
use crate::threads;
use crate::walks::{self, Walks};

use super::loader_followers::LoaderFollowers;
use super::published::Published;

/// The first JDK whose sampler sees allocations in a buffer that was filled before sampling was on.
const FIRST_WITHOUT_BLIND_BUFFER: u32 = 25;

/// How long the start of the program may wait for its limits.
const MAX_WAIT_FOR_LIMITS: Duration = Duration::from_secs(2);

/// One for each process. It is never dropped.
static AGENT: OnceLock<Agent> = OnceLock::new();

/// Binds the native methods of the Java half to its class.
pub(super) type Natives = fn(&Jni, &Ref<'_, Class>) -> Result<(), String>;

/// A thread that was started, kept as long as the agent.
type Kept = Box<dyn Any + Send>;

/// The agent. See the module.
pub(super) struct Agent {
    pub(super) ground: &'static Ground,
    natives: Natives,
    pub(super) api: Api,
    snapshots: SnapshotMaker,
    pub(super) walks: Walks,
    /// Doors that the policy has put at methods.
    pub(super) method_doors: MethodDoors,
    pub(super) collecting: Collecting,
    pub(super) census: ThreadCensus,
    threads: Mutex<Vec<Kept>>,
}

impl Agent {
    /// The agent, once it is made. Any thread, one load.
    pub(super) fn get() -> Option<&'static Agent> {
        AGENT.get()
    }

    /// Makes the agent, whose Java half calls `natives`. `None` when there is one already.
    pub(super) fn make(
        ground: &'static Ground,
        natives: Natives,
        census: ThreadCensus,
    ) -> Option<&'static Agent> {
        let agent = Agent {
            ground,
            natives,
            api: Api::new(),
            snapshots: SnapshotMaker::new(),
            walks: Walks::default(),
            method_doors: MethodDoors::new(),
            collecting: Collecting::default(),
            census,
            threads: Mutex::new(Vec::new()),
        };
        AGENT.set(agent).ok()?;
        AGENT.get()
    }

    // ---- start -------------------------------------------------------------------------

    /// Continues the load: at once in a running VM, at its `VMInit` otherwise.
    pub(super) fn begin(&'static self, live: bool) {
        let ground = self.ground;
        ground.describe_process(live);
        // A thread draws its first countdown when it is made, and the sampler does not see what is
        // allocated in a thread-local buffer that was filled before the event was on (JDK-8264411).
        // So both come before the VM makes its first Java thread.
        interval_control::adopt(
            &ground.core,
            &ground.sampler(),
            &ground.policy.in_force().sampling,
        );
        let mut events = Vec::new();
        if ground.capabilities.collections {
            events.push(Event::GarbageCollectionFinish);
        }
        if ground.capabilities.refunds {
            events.push(Event::ObjectFree);
        }
        if ground.core.samples_are_taken() {
            events.push(Event::SampledObjectAlloc);
        }
        events.push(Event::ThreadStart);
        self.switch_events(&events);
        if live {
            ground.vm().here(|jni| self.start(jni));
        } else {
            self.switch_events(&[Event::VmInit]);
        }
        self.switch_events(&[Event::VmDeath]);
    }

    /// Starts keeping accounts. On a Java thread, in the live phase.
    pub(super) fn start(&'static self, jni: &Jni) {
        let ground = self.ground;
        let java = JavaHandles::find(jni);
        if let Some(runtime) = &java.runtime {
            let max = runtime
                .local(jni)
                .and_then(|r| jni.call_long(&r, "maxMemory"));
            ground
                .core
                .heap
                .set_max_bytes(max.unwrap_or(0).max(0) as u64);
            self.define_errors(jni, runtime);
        }
        self.define_bridge(jni);
        ground.found_java(java);
        enter_builtin_loaders(ground, jni);
        self.switch_events(&[Event::ClassPrepare]);
        enact::apply(ground, jni, ground.policy.in_force());
        self.snapshots.desk.look();
        tlab_refill::locate(&ground.jvmti, jni);
        if ground.core.samples_are_taken() && ground.release() < FIRST_WITHOUT_BLIND_BUFFER {
            use_up_blind_buffer(jni);
        }
        if let Some(bridge) = ground.bridge() {
            bridge.watch_native_memory(jni);
        }
        // Bindings from now on are no business of the agent's. An error says that the event was never on.
        let _ = ground.jvmti.disable(Event::NativeMethodBind);
        // For loaders that were there before the first event, as after an attach.
        ground.metadata_thread.rescan();
        // Before our threads start: counters go in with nothing of ours beside them.
        self.count_exactly(jni);
        self.start_threads();
        self.wait_for_limits();
        let version = env!("CARGO_PKG_VERSION");
        let policy = ground.policy.described();
        if ground.core.samples_are_taken() {
            let interval = ground.policy.in_force().sampling.interval;
            tracing::info!(
                "heapwarden {version} keeps accounts: {policy}, sampling interval {interval}"
            );
        } else {
            tracing::info!("heapwarden {version} runs without accounts: {policy}");
        }
    }

    /// Waits until the limits of the first policy are in force, so that they hold for the first allocation of the
    /// program. That takes the enforcer a few milliseconds, and longer on a machine without a free processor:
    /// there a leak reached three times its limit before it had one.
    fn wait_for_limits(&self) {
        let ground = self.ground;
        let accounts = &ground.policy.in_force().accounts;
        if ground.core.samples_are_taken() && accounts.iter().any(|one| one.limit != Limit::None) {
            let is_in_vain = || ground.failed_thread().is_some();
            (ground.enforcer_turns).wait_for_first(MAX_WAIT_FOR_LIMITS, &is_in_vain);
        }
    }

    /// Defines what refusals throw. This comes before the first application class is loaded, so that
    /// no application loader has a class of the same name yet.
    fn define_errors(&self, jni: &Jni, runtime: &Global) {
        let ground = self.ground;
        match Errors::define(jni, &ground.jvmti, runtime, ground.core.heap.max_bytes()) {
            Ok(errors) => ground.defined_errors(errors),
            Err(why) => tracing::error!(
                "the errors of a refusal cannot be defined ({why}); nothing will be refused"
            ),
        }
    }

    /// Defines what the Java API calls. As early as the errors, for the same reason.
    fn define_bridge(&self, jni: &Jni) {
        match Bridge::define(jni, &self.ground.jvmti, self.natives) {
            Ok(bridge) => self.ground.defined_bridge(bridge),
            Err(why) => tracing::error!(
                "the Java API cannot be served ({why}); scopes have no effect, and their allocations are charged to their services"
            ),
        }
    }

    fn switch_events(&self, events: &[Event]) {
        for &event in events {
            if let Err(failure) = self.ground.jvmti.enable(event) {
                tracing::error!(
                    "JVM TI event {event:?} cannot be enabled ({failure}); accounts will be incomplete"
                );
            }
        }
    }

    // ---- the policy --------------------------------------------------------------------

    /// Puts a policy in force, for all rooms in turn. On the metadata thread.
    fn adopt(&'static self, jni: &Jni, policy: Arc<Policy>) {
        enact::apply(self.ground, jni, policy);
        self.snapshots.desk.look();
        self.count_exactly(jni);
    }

    /// Follows the policy's exact accounts, and starts their thread with the first. The metadata thread, or at the start.
    fn count_exactly(&'static self, jni: &Jni) {
        let ground = self.ground;
        let Some(counter) = exact::adopt(ground, jni) else {
            return;
        };
        let started = ground.vm().spawn("heapwarden-exact", move |jni| {
            let run = || {
                ground
                    .events
                    .run(|| exact::thread::run(ground, jni, &counter));
            };
            // Nothing depends on exact accounts.
            if guard::contain(run).is_none() {
                tracing::error!(
                    "the agent's thread exact has failed, which is a bug in Heapwarden; exact accounts stay as they are until the JVM is started again"
                );
            }
        });
        match started {
            Ok(thread) => self.threads().push(Box::new(thread)),
            Err(error) => tracing::error!(
                "the exact thread cannot be started ({error}); exact accounts are not kept"
            ),
        }
    }

    /// The policy file has changed. On the thread that watches it.
    fn policy_file_is(&self, observation: Observation) {
        let ground = self.ground;
        if ground.policy.file_is(observation) {
            ground.metadata_thread.wake();
        }
        ground.costs.thread_is("policy");
    }

    // ---- threads -----------------------------------------------------------------------

    fn start_threads(&'static self) {
        let ground = self.ground;
        let reader = Reader::new(ground, &self.snapshots.desk);
        self.keep(
            "loaders",
            ground.vm().spawn("heapwarden-loaders", move |jni| {
                let mut followers = LoaderFollowers::new(ground, &self.method_doors, &self.census);
                ground.run_or_fail_open("loaders", || {
                    loader_thread::run(ground, jni, &mut followers);
                });
            }),
        );
        self.keep(
            "metadata",
            ground.vm().spawn("heapwarden-metadata", move |jni| {
                ground.run_or_fail_open("metadata", || {
                    metadata_thread::run(ground, jni, &|policy| self.adopt(jni, policy));
                });
            }),
        );
        // Dropped with the closure, also if the thread cannot be started or attached.
        let serving = Serving(&self.collecting.called);
        self.keep(
            "collections",
            ground.vm().spawn("heapwarden-collect", move |jni| {
                let _serving = serving;
                ground.run_or_fail_open("collections", || self.collecting.serve(ground, jni));
            }),
        );
        self.keep(
            "enforcer",
            ground.vm().spawn("heapwarden-enforcer", move |jni| {
                ground.run_or_fail_open("enforcer", || {
                    enforcer::thread::run(ground, &self.collecting, jni, &|| {
                        self.api.enforcer_took_turn();
                    });
                });
                // No other thread writes the gates, and no verdict comes any more.
                ground.core.enforcement.gates.open_all();
                ground.core.native_memory.gates.open_all();
            }),
        );
        if ground.bridge().is_some() {
            let notifier = ground.vm().spawn("heapwarden-notifier", move |jni| {
                ground.run_or_fail_open("notifier", || {
                    notifier::run(ground, &self.api, &reader, jni);
                });
                // Programs that wait for a reading give up at once.
                self.api.reading_cache.close();
            });
            if notifier.is_err() {
                self.api.reading_cache.close();
            }
            self.keep("notifier", notifier);
        } else {
            self.api.reading_cache.close();
        }
        if !ground.core.holdings.is_off() {
            let consider = || walks::consider(ground, &self.walks);
            let watch = move || {
                ground
                    .events
                    .run(|| holdings_thread::run(ground, &consider))
            };
            let holdings = threads::spawn("heapwarden-holdings", move || {
                // Limits are enforced without it.
                if guard::contain(watch).is_none() {
                    tracing::error!(
                        "the agent's thread holdings has failed, which is a bug in Heapwarden; leaks are reported no more until the JVM is started again"
                    );
                    ground.core.leaks.are_undecided(
                        "the agent's thread holdings has failed, which is a bug in Heapwarden",
                    );
                }
            });
            self.keep("holdings", holdings);
        }
        if let Some(file) = ground.policy.file() {
            let watching = watch::watch(file, ground.policy.first(), move |observation| {
                ground.events.run(|| self.policy_file_is(observation));
            });
            self.keep("policy", watching.map_err(io::Error::other));
        }
        self.keep(
            "snapshots",
            threads::spawn("heapwarden-snap", move || {
                let counted = || exact::stacks_of_contexts(ground);
                (ground.events).run(|| {
                    snapshot_thread::run(ground, &self.snapshots, &reader, &counted);
                });
            }),
        );
        let of_policy = &ground.policy.in_force().agent;
        if let Some(address) = ground.options().listen_address(&of_policy.listen) {
            let serving = http::retry::spawn(
                address,
                ground.options().port_taken(of_policy.listen_strict),
                http::Config {
                    events: ground.events.clone(),
                    ..http::Config::default()
                },
                Arc::new(Published::new(
                    ground,
                    reader,
                    &self.api,
                    &self.snapshots.desk,
                    &self.walks,
                )),
                move |bound| self.listens(bound),
            );
            self.keep("http", serving);
        }
    }

    /// Keeps a thread, or tells that it could not be started.
    fn keep<T: Any + Send>(&self, name: &str, thread: io::Result<T>) {
        match thread {
            Ok(thread) => self.threads().push(Box::new(thread)),
            Err(error) => tracing::error!(
                "the {name} thread cannot be started ({error}); the agent goes on without it"
            ),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.threads.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The listener is bound. On its thread.
    fn listens(&self, bound: Bound) {
        let address = bound.address;
        tracing::info!("metrics are served on http://{address}/metrics");
        let Some(given) = &self.ground.options().run_file else {
            return;
        };
        // The JVM that has the port has the run file as well, if both were started with the same options.
        let other = (bound.is_substitute)
            .then(|| run_file::running_owner(given))
            .flatten();
        let file = match other {
            None => given.clone(),
            Some(other) => {
                let own = run_file::beside(given);
                tracing::warn!(
                    "the run file {} is that of process {other}, which runs; this JVM's is {}",
                    given.display(),
                    own.display()
                );
                own
            }
        };
        if let Err(error) = run_file::write(&file, address) {
            tracing::error!(
                "the run file {} cannot be written ({error})",
                file.display()
            );
        }
        self.ground.wrote_run_file(file);
    }

    // ---- stop --------------------------------------------------------------------------

    /// Stops: wakes the agent's threads, which then end and call into the VM no more.
    pub(super) fn stop(&self) {
        if let Some(longest) = snapshot_thread::longest_exit(self.ground) {
            self.snapshots.desk.exit(longest);
        }
        self.ground.stop();
        self.collecting.called.stop();
        exact::Setting::get().wakeup.wake();
        self.api.reading_cache.close();
    }
}
