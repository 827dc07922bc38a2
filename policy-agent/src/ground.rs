//! The ground that all rooms stand on: the JVM's tools, the core, the policy in force, references, costs, and the
//! signals between threads. It names no room that stands on it; a room's own state is the room's, and
//! [`crate::entry`] brings them together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use policy_core::Core;
use policy_core::core::Setup;
use policy_core::snapshot::Process;
use policy_jvm::kinds::Class;
use policy_jvm::{Global, JvmTi, guard};

use crate::capabilities::Capabilities;
use crate::cost::Costs;
use crate::identity::names::Serving;
use crate::inserted::KeptEdits;
use crate::jvm::bridge::Bridge;
use crate::jvm::errors::Errors;
use crate::jvm::handles::{ContextLoader, JavaHandles};
use crate::jvm::sampler::JvmSampler;
use crate::jvm::thread::Vm;
use crate::options::Options;
use crate::policy::store::PolicyStore;
use crate::process;
use crate::references::References;
use crate::report::EventRecorder;
use crate::rounds::Rounds;
use crate::run_file;
use crate::wakeup::Wakeup;

/// The first JDK whose virtual threads are not a preview feature.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

/// One for each process. It is never dropped.
static GROUND: OnceLock<Ground> = OnceLock::new();

/// The JVM as it was found, before there is an agent.
pub(crate) struct Found {
    pub(crate) vm: Vm,
    pub(crate) jvmti: JvmTi,
    pub(crate) capabilities: Capabilities,
    /// The JDK's feature release.
    pub(crate) release: u32,
    /// The labels of `heapwarden_build_info`.
    pub(crate) build: Vec<(&'static str, String)>,
}

/// See the module.
pub(crate) struct Ground {
    pub(crate) jvmti: JvmTi,
    vm: Vm,
    pub(crate) core: Core,
    pub(crate) references: References,
    pub(crate) policy: PolicyStore,
    pub(crate) costs: Costs,
    /// The size of the listener's history of the last hour, in bytes.
    pub(crate) remembered_bytes: AtomicU64,
    /// Edits of classes that outlast any new load of their code.
    pub(crate) kept_edits: KeptEdits,
    /// Records what happens on the agent's own threads.
    pub(crate) events: Arc<EventRecorder>,
    pub(crate) loader_thread: Wakeup,
    /// Where requests have come at the doors of libraries.
    pub(crate) serving: Serving,
    pub(crate) metadata_thread: Wakeup,
    pub(crate) class_names: Rounds,
    pub(crate) enforcer_turns: Rounds,
    options: Options,
    /// The run file, once it is written.
    run_file: OnceLock<PathBuf>,
    pub(crate) capabilities: Capabilities,
    java: OnceLock<JavaHandles>,
    /// Empty if the errors of a refusal could not be defined: nothing is refused then.
    errors: OnceLock<Errors>,
    /// Empty if the Java API cannot be served.
    bridge: OnceLock<Bridge>,
    stopping: AtomicBool,
    /// The first of the agent's threads that a panic ended.
    failed_thread: OnceLock<&'static str>,
    release: u32,
    started: Instant,
    process: OnceLock<Process>,
    build: Vec<(&'static str, String)>,
}

impl Ground {
    /// The ground, once it is made. Any thread, one load.
    pub(crate) fn get() -> Option<&'static Ground> {
        GROUND.get()
    }

    /// Makes the ground. `None` when there is one already.
    pub(crate) fn make(
        found: Found,
        options: Options,
        policy: PolicyStore,
    ) -> Option<&'static Ground> {
        let in_force = policy.in_force();
        let core = Core::new(Setup {
            max_tracked: in_force.sampling.max_tracked,
            samples_are_taken: found.capabilities.sampling && found.capabilities.refunds,
            test_refuse: options.test_refuse,
        });
        if options.test_without_holdings {
            core.holdings.turn_off();
            core.leaks
                .are_undecided("nobody watches for leaks in this run");
        }
        let ground = Ground {
            jvmti: found.jvmti,
            vm: found.vm,
            core,
            references: References::new(),
            policy,
            costs: Costs::default(),
            remembered_bytes: AtomicU64::default(),
            kept_edits: KeptEdits::default(),
            events: Arc::default(),
            loader_thread: Wakeup::default(),
            serving: Serving::default(),
            metadata_thread: Wakeup::default(),
            class_names: Rounds::default(),
            enforcer_turns: Rounds::default(),
            options,
            run_file: OnceLock::new(),
            capabilities: found.capabilities,
            java: OnceLock::new(),
            errors: OnceLock::new(),
            bridge: OnceLock::new(),
            stopping: AtomicBool::new(false),
            failed_thread: OnceLock::new(),
            release: found.release,
            started: Instant::now(),
            process: OnceLock::new(),
            build: found.build,
        };
        GROUND.set(ground).ok()?;
        GROUND.get()
    }

    // ---- the start and the end, for the owner ------------------------------------------

    /// Looks at the process, once. `live`: the JVM was running already.
    pub(crate) fn describe_process(&self, live: bool) {
        let _ = self.process.set(process::describe(&self.jvmti, !live));
    }

    /// The JDK's own classes were looked up.
    pub(crate) fn found_java(&self, java: JavaHandles) {
        let _ = self.java.set(java);
    }

    /// The errors of a refusal are defined.
    pub(crate) fn defined_errors(&self, errors: Errors) {
        let _ = self.errors.set(errors);
    }

    /// The Java half of the API is defined.
    pub(crate) fn defined_bridge(&self, bridge: Bridge) {
        let _ = self.bridge.set(bridge);
    }

    /// The run file is written; removed at once if the JVM ends meanwhile.
    pub(crate) fn wrote_run_file(&self, file: PathBuf) {
        let file = self.run_file.get_or_init(|| file);
        if self.stopping() {
            run_file::remove(file);
        }
    }

    /// Has all threads end: they look at this between two steps.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(file) = self.run_file.get() {
            run_file::remove(file);
        }
        self.core.enforcer.wake();
        self.loader_thread.wake();
        self.metadata_thread.wake();
        self.core.holdings.wakeup.wake();
    }

    /// Whether the VM is going down.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Runs a thread's work. If it ends in a panic, which is a bug, nothing is refused from then on:
    /// without the enforcer a verdict would never end, and without the metadata thread an edit of
    /// the policy would do nothing.
    pub(crate) fn run_or_fail_open(&self, thread: &'static str, work: impl FnOnce()) {
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

    // ---- what the rooms ask ------------------------------------------------------------

    /// Waits until the classes of all samples up to now have their names, at most so long, and not if a thread of
    /// the agent has failed: then nobody may name them. Any thread but the metadata thread and those that allocate.
    pub(crate) fn wait_for_class_names(&self, longest: Duration, is_cancelled: &dyn Fn() -> bool) {
        let wake = || self.metadata_thread.wake();
        let is_in_vain = || self.failed_thread().is_some() || is_cancelled();
        self.class_names.wait_for_all(longest, wake, &is_in_vain);
    }

    /// The VM's allocation sampler.
    pub(crate) fn sampler(&self) -> JvmSampler<'_> {
        JvmSampler {
            jvmti: &self.jvmti,
            costs: &self.costs,
        }
    }

    /// The errors of a refusal; `None` if they could not be defined: nothing is refused then.
    pub(crate) fn errors(&self) -> Option<&Errors> {
        self.errors.get()
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
    pub(crate) fn published_capabilities(&self) -> Vec<(&'static str, bool)> {
        let mut capabilities = self.capabilities.published();
        let sees_scopes = self.bridge().is_some_and(Bridge::sees_scopes);
        capabilities.push(("scopes", sees_scopes));
        capabilities.push(("native_memory", self.core.native_memory.is_seen()));
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
