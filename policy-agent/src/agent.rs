//! The agent: owns the subsystems, starts and stops them in order.
//!
//! Start: `Agent_OnLoad` makes the agent from the options and the policy file, asks for capabilities and
//! switches the first events on. `VMInit` (or the attach) looks up the JDK's classes, puts the first
//! policy in force and starts the threads. No failure here reaches the host: the log has one line for
//! each part that does not work, and `heapwarden_capability_enabled` shows it.
//!
//! Stop: at `VMDeath` the last snapshot is written, if the policy wants one, the run file is removed and
//! the threads are woken to end. Nobody waits for them: they are daemons, and the VM may hold them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use policy_config::Limit;
use policy_core::Core;
use policy_core::core::Setup;
use policy_core::snapshot::Process;
use policy_jvm::kinds::Class;
use policy_jvm::{Event, Global, Jni, JvmTi, guard};

use crate::api::notifier::{self, Api};
use crate::capabilities::Capabilities;
use crate::collector::called_collection::{CalledCollection, Serving};
use crate::collector::refund_threads::RefundThreads;
use crate::cost::Costs;
use crate::door::MethodDoors;
use crate::enforcer_thread;
use crate::exact::{self, Counter, ExactAccounts};
use crate::holdings_thread;
use crate::http::{self, retry::Bound};
use crate::inserted::KeptEdits;
use crate::interval_control;
use crate::jvm::bridge::Bridge;
use crate::jvm::collections::Collections;
use crate::jvm::errors::Errors;
use crate::jvm::handles::{ContextLoader, JavaHandles};
use crate::jvm::sample::use_up_blind_buffer;
use crate::jvm::sampler::JvmSampler;
use crate::jvm::scan::enter_builtin_loaders;
use crate::jvm::thread::Vm;
use crate::jvm::tlab_refill;
use crate::naming::{loader_thread, metadata_thread};
use crate::options::Options;
use crate::policy::enact;
use crate::policy::store::PolicyStore;
use crate::policy::watch::{self, Observation};
use crate::ports::Means;
use crate::process;
use crate::published::Published;
use crate::references::References;
use crate::report::EventRecorder;
use crate::rounds::Rounds;
use crate::run_file;
use crate::snapshots::thread::{self as snapshot_thread, SnapshotMaker};
use crate::threads;
use crate::wakeup::Wakeup;
use crate::walks::Walks;

/// The first JDK whose sampler sees allocations in a buffer that was filled before sampling was on.
const FIRST_WITHOUT_BLIND_BUFFER: u32 = 25;

/// The first JDK whose virtual threads are not a preview feature.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

/// How long the start of the program may wait for its limits.
const MAX_WAIT_FOR_LIMITS: Duration = Duration::from_secs(2);

/// One for each process. It is never dropped.
static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent. See the module.
pub(crate) struct Agent {
    pub(crate) jvmti: JvmTi,
    vm: Vm,
    pub(crate) core: Core,
    pub(crate) references: References,
    pub(crate) policy: PolicyStore,
    pub(crate) costs: Costs,
    pub(crate) api: Api,
    pub(crate) snapshots: SnapshotMaker,
    pub(crate) walks: Walks,
    /// The size of the listener's history of the last hour, in bytes.
    pub(crate) remembered_bytes: AtomicU64,
    pub(crate) exact: ExactAccounts,
    /// Edits of classes that outlast any new load of their code.
    pub(crate) kept_edits: KeptEdits,
    /// Doors that the policy has put at methods.
    pub(crate) method_doors: MethodDoors,
    events: Arc<EventRecorder>,
    pub(crate) refund_threads: RefundThreads,
    /// The collection that the enforcer has asked for and does not wait for itself.
    pub(crate) called_collection: CalledCollection,
    pub(crate) loader_thread: Wakeup,
    pub(crate) metadata_thread: Wakeup,
    pub(crate) class_names: Rounds,
    pub(crate) enforcer_turns: Rounds,
    options: Options,
    /// The run file, once it is written.
    run_file: OnceLock<PathBuf>,
    capabilities: Capabilities,
    java: OnceLock<JavaHandles>,
    /// Empty if the errors of a refusal could not be defined: nothing is refused then.
    pub(crate) errors: OnceLock<Errors>,
    /// Empty if the Java API cannot be served.
    bridge: OnceLock<Bridge>,
    stopping: AtomicBool,
    /// The first of the agent's threads that a panic ended.
    failed_thread: OnceLock<&'static str>,
    threads: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
    release: u32,
    started: Instant,
    process: OnceLock<Process>,
    build: Vec<(&'static str, String)>,
}

impl Agent {
    /// The agent, once it is made. Any thread, one load.
    pub(crate) fn get() -> Option<&'static Agent> {
        AGENT.get()
    }

    /// Makes the agent. `None` when there is one already.
    pub(crate) fn make(
        vm: Vm,
        jvmti: JvmTi,
        options: Options,
        policy: PolicyStore,
        capabilities: Capabilities,
        release: u32,
        build: Vec<(&'static str, String)>,
    ) -> Option<&'static Agent> {
        let in_force = policy.in_force();
        let core = Core::new(Setup {
            max_tracked: in_force.sampling.max_tracked,
            samples_are_taken: capabilities.sampling && capabilities.refunds,
            test_refuse: options.test_refuse,
        });
        if options.test_without_holdings {
            core.holdings.turn_off();
            core.leaks
                .are_undecided("nobody watches for leaks in this run");
        }
        let agent = Agent {
            jvmti,
            vm,
            core,
            references: References::new(),
            policy,
            costs: Costs::default(),
            api: Api::new(),
            snapshots: SnapshotMaker::new(),
            walks: Walks::default(),
            remembered_bytes: AtomicU64::default(),
            exact: ExactAccounts::new(),
            kept_edits: KeptEdits::default(),
            method_doors: MethodDoors::new(),
            events: Arc::default(),
            refund_threads: RefundThreads::default(),
            called_collection: CalledCollection::default(),
            started: Instant::now(),
            loader_thread: Wakeup::default(),
            metadata_thread: Wakeup::default(),
            class_names: Rounds::default(),
            enforcer_turns: Rounds::default(),
            options,
            run_file: OnceLock::new(),
            capabilities,
            java: OnceLock::new(),
            errors: OnceLock::new(),
            bridge: OnceLock::new(),
            stopping: AtomicBool::new(false),
            failed_thread: OnceLock::new(),
            threads: Mutex::new(Vec::new()),
            release,
            process: OnceLock::new(),
            build,
        };
        AGENT.set(agent).ok()?;
        AGENT.get()
    }

    // ---- start and stop ------------------------------------------------------------

    /// Continues the load: at once in a running VM, at its `VMInit` otherwise.
    pub(crate) fn begin(&'static self, live: bool) {
        let _ = self.process.set(process::describe(&self.jvmti, !live));
        // A thread draws its first countdown when it is made, and the sampler does not see what is
        // allocated in a thread-local buffer that was filled before the event was on (JDK-8264411).
        // So both come before the VM makes its first Java thread.
        interval_control::adopt(
            &self.core,
            &self.sampler(),
            &self.policy.in_force().sampling,
        );
        let mut events = Vec::new();
        if self.capabilities.collections {
            events.push(Event::GarbageCollectionFinish);
        }
        if self.capabilities.refunds {
            events.push(Event::ObjectFree);
        }
        if self.core.samples_are_taken() {
            events.push(Event::SampledObjectAlloc);
            events.push(Event::ThreadStart);
        }
        self.switch_events(&events);
        if live {
            self.vm.here(|jni| self.start(jni));
        } else {
            self.switch_events(&[Event::VmInit]);
        }
        self.switch_events(&[Event::VmDeath]);
    }

    /// Starts keeping accounts. On a Java thread, in the live phase.
    pub(crate) fn start(&'static self, jni: &Jni) {
        let java = JavaHandles::find(jni);
        if let Some(runtime) = &java.runtime {
            let max = runtime
                .local(jni)
                .and_then(|r| jni.call_long(&r, "maxMemory"));
            self.core.heap.set_max_bytes(max.unwrap_or(0).max(0) as u64);
            self.define_errors(jni, runtime);
        }
        self.define_bridge(jni);
        let _ = self.java.set(java);
        enter_builtin_loaders(self, jni);
        self.switch_events(&[Event::ClassPrepare]);
        enact::apply(self, jni, self.policy.in_force());
        tlab_refill::locate(&self.jvmti, jni);
        if self.core.samples_are_taken() && self.release < FIRST_WITHOUT_BLIND_BUFFER {
            use_up_blind_buffer(jni);
        }
        // For loaders that were there before the first event, as after an attach.
        self.metadata_thread.rescan();
        // Before our threads start: counters go in with nothing of ours beside them.
        ExactAccounts::adopt(self, jni);
        self.start_threads();
        self.wait_for_limits();
        let version = env!("CARGO_PKG_VERSION");
        let policy = self.policy.described();
        if self.core.samples_are_taken() {
            let interval = self.policy.in_force().sampling.interval;
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
        let accounts = &self.policy.in_force().accounts;
        if self.core.samples_are_taken() && accounts.iter().any(|one| one.limit != Limit::None) {
            let is_in_vain = || self.failed_thread().is_some();
            (self.enforcer_turns).wait_for_first(MAX_WAIT_FOR_LIMITS, &is_in_vain);
        }
    }

    /// Defines what refusals throw. This comes before the first application class is loaded, so that
    /// no application loader has a class of the same name yet.
    fn define_errors(&self, jni: &Jni, runtime: &Global) {
        match Errors::define(jni, &self.jvmti, runtime, self.core.heap.max_bytes()) {
            Ok(errors) => drop(self.errors.set(errors)),
            Err(why) => tracing::error!(
                "the errors of a refusal cannot be defined ({why}); nothing will be refused"
            ),
        }
    }

    /// Defines what the Java API calls. As early as the errors, for the same reason.
    fn define_bridge(&self, jni: &Jni) {
        match Bridge::define(jni, &self.jvmti) {
            Ok(bridge) => drop(self.bridge.set(bridge)),
            Err(why) => tracing::error!(
                "the Java API cannot be served ({why}); scopes have no effect, and their allocations are charged to their services"
            ),
        }
    }

    fn switch_events(&self, events: &[Event]) {
        for &event in events {
            if let Err(failure) = self.jvmti.enable(event) {
                tracing::error!(
                    "JVM TI event {event:?} cannot be enabled ({failure}); accounts will be incomplete"
                );
            }
        }
    }

    fn start_threads(&'static self) {
        let mut started: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
        let mut keep =
            |name: &str, thread: std::io::Result<Box<dyn std::any::Any + Send>>| match thread {
                Ok(thread) => started.push(thread),
                Err(error) => tracing::error!(
                    "the {name} thread cannot be started ({error}); the agent goes on without it"
                ),
            };
        keep(
            "loaders",
            self.vm
                .spawn("heapwarden-loaders", move |jni| {
                    self.run_or_fail_open("loaders", || loader_thread::run(self, jni));
                })
                .map(|t| Box::new(t) as _),
        );
        keep(
            "metadata",
            self.vm
                .spawn("heapwarden-metadata", move |jni| {
                    self.run_or_fail_open("metadata", || metadata_thread::run(self, jni));
                })
                .map(|t| Box::new(t) as _),
        );
        // Dropped with the closure, also if the thread cannot be started or attached.
        let serving = Serving(&self.called_collection);
        let collecting = self.vm.spawn("heapwarden-collect", move |jni| {
            let _serving = serving;
            self.run_or_fail_open("collections", || self.serve_collections(jni));
        });
        keep("collections", collecting.map(|t| Box::new(t) as _));
        keep(
            "enforcer",
            self.vm
                .spawn("heapwarden-enforcer", move |jni| {
                    self.run_or_fail_open("enforcer", || enforcer_thread::run(self, jni));
                    // No other thread writes the gates, and no verdict comes any more.
                    self.core.enforcement.gates.open_all();
                })
                .map(|t| Box::new(t) as _),
        );
        if self.bridge.get().is_some() {
            let notifier = self.vm.spawn("heapwarden-notifier", move |jni| {
                self.run_or_fail_open("notifier", || self.events.run(|| notifier::run(self, jni)));
                // Programs that wait for a reading give up at once.
                self.api.reading_cache.close();
            });
            if notifier.is_err() {
                self.api.reading_cache.close();
            }
            keep("notifier", notifier.map(|t| Box::new(t) as _));
        } else {
            self.api.reading_cache.close();
        }
        if !self.core.holdings.is_off() {
            let watch = move || self.events.run(|| holdings_thread::run(self));
            let holdings = threads::spawn("heapwarden-holdings", move || {
                // Limits are enforced without it.
                if guard::contain(watch).is_none() {
                    tracing::error!(
                        "the agent's thread holdings has failed, which is a bug in Heapwarden; leaks are reported no more until the JVM is started again"
                    );
                    self.core.leaks.are_undecided(
                        "the agent's thread holdings has failed, which is a bug in Heapwarden",
                    );
                }
            });
            keep("holdings", holdings.map(|t| Box::new(t) as _));
        }
        if let Some(file) = self.policy.file() {
            let watching = watch::watch(file, self.policy.first(), move |observation| {
                self.events.run(|| self.policy_file_is(observation));
            });
            keep(
                "policy",
                watching
                    .map(|t| Box::new(t) as _)
                    .map_err(std::io::Error::other),
            );
        }
        keep(
            "snapshots",
            threads::spawn("heapwarden-snap", move || {
                self.events.run(|| snapshot_thread::run(self));
            })
            .map(|t| Box::new(t) as _),
        );
        let of_policy = &self.policy.in_force().agent;
        if let Some(address) = self.options.listen_address(&of_policy.listen) {
            let serving = http::retry::spawn(
                address,
                self.options.port_taken(of_policy.listen_strict),
                http::Config {
                    events: self.events.clone(),
                    ..http::Config::default()
                },
                Arc::new(Published::new(self)),
                move |bound| self.listens(bound),
            );
            keep("http", serving.map(|t| Box::new(t) as _));
        }
        self.threads().extend(started);
    }

    /// Asks for a collection and waits for its end. False if the VM refuses. On an attached thread of the agent's own.
    pub(crate) fn collect(&self, means: Means, jni: &Jni) -> bool {
        let runtime = self.java().and_then(|java| java.runtime.as_ref());
        runtime.is_some_and(|runtime| Collections::collect(means, jni, &self.jvmti, runtime))
    }

    /// Waits for collections that the enforcer asks for. On an attached thread of the agent's own.
    fn serve_collections(&self, jni: &Jni) {
        self.called_collection.serve(
            || self.stopping(),
            |means| self.collect(means, jni),
            || {
                self.core.enforcer.wake();
                self.costs.thread_is("collections");
            },
        );
    }

    /// Starts the thread of exact accounts. Once.
    pub(crate) fn start_exact(&'static self, counter: Counter) {
        let started = self.vm.spawn("heapwarden-exact", move |jni| {
            let run = || self.events.run(|| exact::thread::run(self, jni, &counter));
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

    /// Runs a thread's work. If it ends in a panic, which is a bug, nothing is refused from then on:
    /// without the enforcer a verdict would never end, and without the metadata thread an edit of
    /// the policy would do nothing.
    fn run_or_fail_open(&self, thread: &'static str, work: impl FnOnce()) {
        if guard::contain(|| self.events.run(work)).is_some() {
            return;
        }
        if self.failed_thread.set(thread).is_ok() {
            tracing::error!(
                "the agent's thread {thread} has failed, which is a bug in Heapwarden; nothing is refused any more and accounts may be wrong until the JVM is started again"
            );
        }
        self.core.fail_open();
    }

    /// The first of the agent's threads that has failed. One load; any thread.
    pub(crate) fn failed_thread(&self) -> Option<&'static str> {
        self.failed_thread.get().copied()
    }

    /// Waits until the classes of all samples up to now have their names, at most so long, and not if a thread of
    /// the agent has failed: then nobody may name them. Any thread but the metadata thread and those that allocate.
    pub(crate) fn wait_for_class_names(&self, longest: Duration, is_cancelled: &dyn Fn() -> bool) {
        let wake = || self.metadata_thread.wake();
        let is_in_vain = || self.failed_thread().is_some() || is_cancelled();
        self.class_names.wait_for_all(longest, wake, &is_in_vain);
    }

    /// Stops: wakes the agent's threads, which then end and call into the VM no more.
    pub(crate) fn stop(&self) {
        if let Some(longest) = snapshot_thread::longest_exit(self) {
            self.snapshots.desk.exit(longest);
        }
        self.stopping.store(true, Ordering::Release);
        if let Some(file) = self.run_file.get() {
            run_file::remove(file);
        }
        self.core.enforcer.wake();
        self.called_collection.stop();
        self.loader_thread.wake();
        self.metadata_thread.wake();
        self.exact.wakeup.wake();
        self.core.holdings.wakeup.wake();
        self.api.reading_cache.close();
    }

    /// Whether the VM is going down.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The listener is bound. On its thread.
    fn listens(&self, bound: Bound) {
        let address = bound.address;
        tracing::info!("metrics are served on http://{address}/metrics");
        let Some(given) = &self.options.run_file else {
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
        let file = self.run_file.get_or_init(|| file);
        if self.stopping() {
            run_file::remove(file);
        }
    }

    /// The policy file has changed. On the thread that watches it.
    fn policy_file_is(&self, observation: Observation) {
        if self.policy.file_is(observation) {
            self.metadata_thread.wake();
        }
        self.costs.thread_is("policy");
    }

    // ---- what the rooms ask ----------------------------------------------------------

    /// The VM's allocation sampler.
    pub(crate) fn sampler(&self) -> JvmSampler<'_> {
        JvmSampler {
            jvmti: &self.jvmti,
            costs: &self.costs,
        }
    }

    /// The Java half of the API; `None` if it cannot be served.
    pub(crate) fn bridge(&self) -> Option<&Bridge> {
        self.bridge.get()
    }

    /// References into the JDK's own classes; `None` before the start.
    pub(crate) fn java(&self) -> Option<&JavaHandles> {
        self.java.get()
    }

    /// The field of `java.lang.Thread` that holds the context class loader.
    pub(crate) fn context_loader_field(&self) -> Option<ContextLoader> {
        self.java.get()?.context_loader
    }

    /// `java.lang.Object`.
    pub(crate) fn object_class(&self) -> Option<&Global<Class>> {
        self.java.get()?.object_class.as_ref()
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Box<dyn std::any::Any + Send>>> {
        self.threads.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The VM, for threads to attach to.
    pub(crate) fn vm(&self) -> Vm {
        self.vm
    }

    /// The agent's options.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The JDK's feature release.
    pub(crate) fn release(&self) -> u32 {
        self.release
    }

    /// Whether the VM may name the carrier thread when a virtual thread runs on it.
    pub(crate) fn shows_carriers(&self) -> bool {
        self.release >= FIRST_WITH_VIRTUAL_THREADS && !self.capabilities.virtual_threads
    }

    /// Milliseconds since the agent was made. Any thread.
    pub(crate) fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Panics in callbacks, each of which cost one sample.
    pub(crate) fn panics(&self) -> u64 {
        guard::panics()
    }

    /// As `heapwarden_capability_enabled` shows them.
    pub(crate) fn capabilities(&self) -> Vec<(&'static str, bool)> {
        let mut capabilities = self.capabilities.published();
        let sees_scopes = self.bridge().is_some_and(Bridge::sees_scopes);
        capabilities.push(("scopes", sees_scopes));
        capabilities
    }

    /// The process that the agent is in.
    pub(crate) fn process(&self) -> &Process {
        self.process.get_or_init(Process::default)
    }

    /// The labels of `heapwarden_build_info`.
    pub(crate) fn build(&self) -> Vec<(&'static str, String)> {
        self.build.clone()
    }
}
