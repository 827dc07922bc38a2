//! The agent: owns the subsystems, starts and stops them in order.
//!
//! Start: `Agent_OnLoad` makes the agent from options and policy file and asks for
//! capabilities; `VMInit` (or the attach) reads what it needs of the JVM, puts the first
//! policy in force, switches the events on and starts the threads. Nothing of this can fail
//! in a way that reaches the host: what cannot be had is named in one line and shown in
//! `heapwarden_capability_enabled`.
//!
//! Stop: at `VMDeath` the run file is removed and the threads are told. They are daemons
//! and not waited for: the VM may be holding them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use jvmti_bindings::sys::jvmti;

use crate::api::herald::{self, Api};
use crate::bell::Bell;
use crate::cost::Costs;
use crate::enforce::Enforcement;
use crate::enforce::couriers::Couriers;
use crate::enforce::evidence::EvidenceLog;
use crate::enforce::points::Points;
use crate::enforce::warden;
use crate::http;
use crate::identity::directory::Directory;
use crate::identity::loaders::Verdict;
use crate::identity::{Identity, clerk, resolver};
use crate::jvm::bridge::Bridge;
use crate::jvm::errors::Errors;
use crate::jvm::guard::{self, PANICS};
use crate::jvm::handles::JavaHandles;
use crate::jvm::java::{FieldId, Global, Jni, Local};
use crate::jvm::sample::use_up_blind_buffer;
use crate::jvm::thread::Vm;
use crate::jvm::tools::{Failure, JvmTi};
use crate::ledger::{Capacity, Ledger, Tag};
use crate::options::Options;
use crate::pace::{self, Pace};
use crate::policy::enact;
use crate::policy::store::PolicyStore;
use crate::policy::watch::{self, Observation};
use crate::published::Published;
use crate::sampling::thinning::Thinning;

/// Purses at the most, the reserved one included: what a purse id can tell apart.
const MOST_PURSES: u32 = 1 << 16;
/// The first JDK whose sampler sees into a buffer that was filled before it was on.
const FIRST_WITHOUT_BLIND_BUFFER: u32 = 25;

/// The first JDK with virtual threads that are no preview.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

/// One for the process; made once, never dropped.
static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent. See the module.
pub(crate) struct Agent {
    pub(crate) tools: JvmTi,
    vm: Vm,
    pub(crate) ledger: Ledger,
    pub(crate) identity: Identity,
    directory: Mutex<Directory>,
    pub(crate) policy: PolicyStore,
    pub(crate) costs: Costs,
    pub(crate) pace: Pace,
    pub(crate) thinning: Thinning,
    pub(crate) evidence: EvidenceLog,
    pub(crate) enforcement: Enforcement,
    pub(crate) api: Api,
    pub(crate) couriers: Couriers,
    pub(crate) points: Points,
    pub(crate) warden: Bell,
    pub(crate) resolver: Bell,
    pub(crate) clerk: Bell,
    options: Options,
    held: Held,
    java: OnceLock<JavaHandles>,
    /// Empty where nothing can be refused.
    pub(crate) errors: OnceLock<Errors>,
    /// Empty where programs cannot name scopes.
    bridge: OnceLock<Bridge>,
    heap_used_after_gc_bytes: AtomicU64,
    heap_max_bytes: AtomicU64,
    stopping: AtomicBool,
    /// The first of our threads that a panic ended.
    lost: OnceLock<&'static str>,
    threads: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
    release: u32,
    started: Instant,
    build: Vec<(&'static str, String)>,
}

/// Which capabilities the VM gave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub(crate) sampling: bool,
    pub(crate) refunds: bool,
    pub(crate) collections: bool,
    pub(crate) virtual_threads: bool,
    pub(crate) bytecodes: bool,
}

impl Agent {
    /// The agent, once it is made. Any thread, one load.
    pub(crate) fn get() -> Option<&'static Agent> {
        AGENT.get()
    }

    /// Makes the agent. `None` when there is one already.
    pub(crate) fn make(
        vm: Vm,
        tools: JvmTi,
        options: Options,
        policy: PolicyStore,
        held: Held,
        release: u32,
        build: Vec<(&'static str, String)>,
    ) -> Option<&'static Agent> {
        let in_force = policy.in_force();
        let ledger = Ledger::new(Capacity {
            records: in_force.sampling.max_tracked,
            purses: MOST_PURSES,
        });
        let agent = Agent {
            tools,
            vm,
            ledger,
            identity: Identity::new(),
            directory: Mutex::new(Directory::new(Arc::default())),
            policy,
            costs: Costs::default(),
            pace: Pace::default(),
            thinning: Thinning::default(),
            evidence: EvidenceLog::default(),
            enforcement: Enforcement::new(),
            api: Api::new(),
            couriers: Couriers::default(),
            points: Points::new(),
            started: Instant::now(),
            warden: Bell::default(),
            resolver: Bell::default(),
            clerk: Bell::default(),
            options,
            held,
            java: OnceLock::new(),
            errors: OnceLock::new(),
            bridge: OnceLock::new(),
            heap_used_after_gc_bytes: AtomicU64::new(0),
            heap_max_bytes: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            lost: OnceLock::new(),
            threads: Mutex::new(Vec::new()),
            release,
            build,
        };
        AGENT.set(agent).ok()?;
        AGENT.get()
    }

    // ---- start and stop ------------------------------------------------------------

    /// Continues the load: at once in a running VM, at its `VMInit` otherwise.
    pub(crate) fn begin(&'static self, live: bool) {
        // A thread draws its first countdown when it is made, and a thread-local buffer
        // filled before the event is on hides what is allocated in it (JDK-8264411): so
        // both come before the VM makes its first Java thread.
        pace::adopt(self, &self.policy.in_force().sampling);
        let mut events = Vec::new();
        if self.held.collections {
            events.push(jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
        }
        if self.held.refunds {
            events.push(jvmti::JVMTI_EVENT_OBJECT_FREE);
        }
        if self.samples_are_taken() {
            events.push(jvmti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        }
        self.switch_events(&events);
        if live {
            if let Some(jni) = self.vm.current() {
                self.start(&jni);
            }
        } else {
            self.switch_events(&[jvmti::JVMTI_EVENT_VM_INIT]);
        }
        self.switch_events(&[jvmti::JVMTI_EVENT_VM_DEATH]);
    }

    /// Starts keeping accounts. On a Java thread, in the live phase.
    pub(crate) fn start(&'static self, jni: &Jni) {
        let java = JavaHandles::find(jni);
        if let Some(runtime) = &java.runtime {
            let max = runtime
                .local(jni)
                .and_then(|r| jni.call_long(&r, "maxMemory"));
            self.heap_max_bytes
                .store(max.unwrap_or(0).max(0) as u64, Ordering::Relaxed);
            self.define_errors(jni, runtime);
        }
        self.define_bridge(jni);
        let _ = self.java.set(java);
        self.know_builtin_loaders(jni);
        self.switch_events(&[jvmti::JVMTI_EVENT_CLASS_PREPARE]);
        enact::apply(self, jni, self.policy.in_force());
        if self.samples_are_taken() && self.release < FIRST_WITHOUT_BLIND_BUFFER {
            use_up_blind_buffer(jni);
        }
        // Loaders that were there before the first event, as after a dynamic attach.
        self.clerk.rescan();
        self.start_threads();
        let version = env!("CARGO_PKG_VERSION");
        let policy = self.policy.described();
        if self.samples_are_taken() {
            let interval = self.policy.in_force().sampling.interval;
            tracing::info!(
                "heapwarden {version} keeps accounts: {policy}, sampling interval {interval}"
            );
        } else {
            tracing::info!("heapwarden {version} runs without accounts: {policy}");
        }
    }

    /// What refusals throw. Before the first application class is loaded, so that none of its
    /// loaders can have a class of the same name.
    fn define_errors(&self, jni: &Jni, runtime: &Global) {
        match Errors::define(jni, &self.tools, runtime, self.heap_max_bytes()) {
            Ok(errors) => drop(self.errors.set(errors)),
            Err(why) => tracing::error!(
                "the errors of a refusal cannot be defined ({why}); nothing will be refused"
            ),
        }
    }

    /// What the Java API calls. As early as the errors, for the same reason.
    fn define_bridge(&self, jni: &Jni) {
        match Bridge::define(jni, &self.tools) {
            Ok(bridge) => drop(self.bridge.set(bridge)),
            Err(why) => tracing::error!(
                "the Java API cannot be served ({why}); scopes have no effect, and what they would be charged is their services'"
            ),
        }
    }

    fn switch_events(&self, events: &[jvmti::jvmtiEvent]) {
        for &event in events {
            if let Err(failure) = self.tools.event(event, true) {
                tracing::error!(
                    "JVM TI event {event} cannot be enabled ({failure}); accounts will be incomplete"
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
            "resolver",
            self.vm
                .spawn("heapwarden-resolver", move |jni| {
                    self.or_lose("resolver", || resolver::run(self, jni));
                })
                .map(|t| Box::new(t) as _),
        );
        keep(
            "clerk",
            self.vm
                .spawn("heapwarden-clerk", move |jni| {
                    self.or_lose("clerk", || clerk::run(self, jni));
                })
                .map(|t| Box::new(t) as _),
        );
        keep(
            "warden",
            self.vm
                .spawn("heapwarden-warden", move |jni| {
                    self.or_lose("warden", || warden::run(self, jni));
                    // Nobody else speaks through the gates, and nobody judges any more.
                    self.enforcement.gates.open_all();
                })
                .map(|t| Box::new(t) as _),
        );
        if self.bridge.get().is_some() {
            keep(
                "herald",
                self.vm
                    .spawn("heapwarden-herald", move |jni| herald::run(self, jni))
                    .map(|t| Box::new(t) as _),
            );
        }
        if let Some(file) = self.policy.file() {
            let watching = watch::watch(file, self.policy.first(), move |observation| {
                self.policy_file_is(observation);
            });
            keep(
                "policy",
                watching
                    .map(|t| Box::new(t) as _)
                    .map_err(std::io::Error::other),
            );
        }
        if let Some(address) = self.listen_address() {
            let serving = http::retry::spawn(
                address,
                http::Config::default(),
                Arc::new(Published::new(self)),
                move |bound| self.write_run_file(bound),
            );
            keep("http", serving.map(|t| Box::new(t) as _));
        }
        self.threads().extend(started);
    }

    /// Runs a thread's work. Where a panic ends it, which is a bug, nobody is refused from then on:
    /// a verdict would stand for ever without the warden, and an edit of the policy would do nothing
    /// without the clerk.
    fn or_lose(&self, thread: &'static str, work: impl FnOnce()) {
        if guard::contain(work).is_some() {
            return;
        }
        if self.lost.set(thread).is_ok() {
            tracing::error!(
                "the agent's thread {thread} has failed, which is a bug in Heapwarden; nothing is refused any more and accounts may be wrong until the JVM is started again"
            );
        }
        self.warden.wake();
    }

    /// The first of our threads that has failed. One load; any thread.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        self.lost.get().copied()
    }

    fn listen_address(&self) -> Option<String> {
        let policy = self.policy.in_force();
        let wanted = match self.options.listen.as_deref() {
            Some("off") => return None,
            Some(text) => match text.parse() {
                Ok(listen) => listen,
                Err(error) => {
                    tracing::error!(
                        "listen={text} is no address ({error}); using {}",
                        policy.agent.listen
                    );
                    policy.agent.listen.clone()
                }
            },
            None => policy.agent.listen.clone(),
        };
        match wanted {
            policy_config::Listen::Off => None,
            address => Some(address.to_string()),
        }
    }

    /// Stops: from here on no thread of ours calls into the VM by its own will.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.remove_run_file();
        self.warden.wake();
        self.resolver.wake();
        self.clerk.wake();
        self.api.desk.close();
    }

    /// Whether the VM is going down.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn write_run_file(&self, bound: std::net::SocketAddr) {
        tracing::info!("metrics are served on http://{bound}/metrics");
        let Some(file) = &self.options.run_file else {
            return;
        };
        let text = serde_json::json!({ "pid": std::process::id(), "listen": bound.to_string() });
        // Renamed into place, so that a reader never sees half of it.
        let mut temporary = file.clone().into_os_string();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let written = std::fs::write(&temporary, format!("{text}\n"))
            .and_then(|()| std::fs::rename(&temporary, file));
        if let Err(error) = written {
            tracing::error!(
                "the run file {} cannot be written ({error})",
                file.display()
            );
        }
        if self.stopping() {
            self.remove_run_file();
        }
    }

    /// Removes the run file if it is this process's: another JVM with the same options (a tool that is
    /// started beside the server, the server's successor) leaves it alone.
    fn remove_run_file(&self) {
        let Some(file) = &self.options.run_file else {
            return;
        };
        let is_ours = std::fs::read(file).is_ok_and(|text| {
            serde_json::from_slice::<serde_json::Value>(&text)
                .is_ok_and(|run| run["pid"] == std::process::id())
        });
        if is_ours {
            let _ = std::fs::remove_file(file);
        }
    }

    // ---- policy --------------------------------------------------------------------

    /// On the watcher's thread.
    fn policy_file_is(&self, observation: Observation) {
        match observation {
            Observation::Content(text) => {
                if self.policy.offer(&text) {
                    self.clerk.wake();
                }
            }
            Observation::Missing => self.policy.reject(
                "the policy file is gone; the last good policy stays in force until it is back"
                    .to_owned(),
            ),
            Observation::Unreadable(why) => self.policy.reject(format!(
                "the policy file cannot be read ({why}); the last good policy stays in force"
            )),
        }
        self.costs.thread_is("policy");
    }

    // ---- events --------------------------------------------------------------------

    /// An object of ours was freed. Atomics only.
    pub(crate) fn freed(&self, tag: i64) {
        match Tag::decode(tag) {
            Some(Tag::Object(record)) => {
                if let Some(freed) = self.ledger.refund_told(record) {
                    self.thinning.died(freed.size_bytes, freed.birth);
                }
            }
            Some(Tag::Class(handle)) => {
                if let Some(displaced) = self.identity.classes.died(handle) {
                    self.freed(displaced);
                }
            }
            Some(Tag::Loader(handle)) => {
                if let Some(displaced) = self.identity.loaders.died(handle) {
                    self.freed(displaced);
                }
            }
            Some(Tag::Scope(handle)) => {
                if let Some(displaced) = self.identity.scopes.died(handle) {
                    self.freed(displaced);
                }
            }
            Some(Tag::Canary(epoch)) => {
                self.ledger.epochs().died(epoch);
                self.warden.wake();
            }
            Some(Tag::OldCanary(epoch)) => {
                self.ledger.epochs().old_died(epoch);
                self.warden.wake();
            }
            None => {}
        }
    }

    // ---- what the JVM knows --------------------------------------------------------

    /// The loaders that are nobody's from the start.
    fn know_builtin_loaders(&self, jni: &Jni) {
        let Some(class) = jni.boot_class("java/lang/ClassLoader") else {
            return;
        };
        for getter in ["getSystemClassLoader", "getPlatformClassLoader"] {
            let loader = jni.static_object(&class, getter, "()Ljava/lang/ClassLoader;");
            if let Some(loader) = loader {
                self.know_as_nobodys(&loader);
            }
        }
    }

    fn know_as_nobodys(&self, loader: &Local<'_>) {
        let tag = self.tools.tag(loader).unwrap_or(0);
        if let Some(id) = self.identity.loaders.open(Verdict::Nobody, tag)
            && let Some(tag) = self.identity.loaders.tag(id)
        {
            let _ = self.tools.set_tag(loader, tag);
        }
    }

    /// Reads how much of the heap is used, just after a pause. Returns what is free of the
    /// maximum. On an attached agent thread.
    pub(crate) fn read_heap(&self, jni: &Jni) -> u64 {
        let Some(used) = self.used_heap(jni) else {
            return 0;
        };
        self.heap_used_after_gc_bytes.store(used, Ordering::Relaxed);
        self.heap_max_bytes().saturating_sub(used)
    }

    /// Reads it again when a collection is known to be complete: a concurrent one frees
    /// after its last pause, and the smaller reading is then the truer.
    pub(crate) fn read_heap_again(&self, jni: &Jni) {
        if let Some(used) = self.used_heap(jni) {
            self.heap_used_after_gc_bytes
                .fetch_min(used, Ordering::Relaxed);
        }
    }

    /// What is used of the heap now, garbage included. On an attached agent thread.
    pub(crate) fn used_heap(&self, jni: &Jni) -> Option<u64> {
        let runtime = self.java()?.runtime.as_ref()?.local(jni)?;
        let total = jni.call_long(&runtime, "totalMemory")?;
        let free = jni.call_long(&runtime, "freeMemory")?;
        Some(total.saturating_sub(free).max(0) as u64)
    }

    /// The JNI environment of the calling thread, if it is attached.
    pub(crate) fn jni_here(&self) -> Option<Jni> {
        self.vm.current()
    }

    /// What the Java API calls; `None` where it cannot be served.
    pub(crate) fn bridge(&self) -> Option<&Bridge> {
        self.bridge.get()
    }

    /// What was found of the JDK's own classes; `None` before the start.
    pub(crate) fn java(&self) -> Option<&JavaHandles> {
        self.java.get()
    }

    /// The field of `java.lang.Thread` that holds the context class loader.
    pub(crate) fn context_loader_field(&self) -> Option<FieldId> {
        self.java.get()?.context_loader
    }

    /// `java.lang.Object`.
    pub(crate) fn object_class(&self) -> Option<&Global> {
        self.java.get()?.object_class.as_ref()
    }

    // ---- readings ------------------------------------------------------------------

    /// The names. Never taken on an allocating thread.
    pub(crate) fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Box<dyn std::any::Any + Send>>> {
        self.threads.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What the agent was told at the start.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The JDK's feature release.
    pub(crate) fn release(&self) -> u32 {
        self.release
    }

    /// Whether the VM may show the carrier where a virtual thread runs.
    pub(crate) fn shows_carriers(&self) -> bool {
        self.release >= FIRST_WITH_VIRTUAL_THREADS && !self.held.virtual_threads
    }

    /// Milliseconds since the agent was made. Any thread.
    pub(crate) fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether allocations are sampled at all.
    pub(crate) fn samples_are_taken(&self) -> bool {
        self.held.sampling && self.held.refunds
    }

    pub(crate) fn heap_used_after_gc_bytes(&self) -> u64 {
        self.heap_used_after_gc_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn heap_max_bytes(&self) -> u64 {
        self.heap_max_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn panics(&self) -> u64 {
        PANICS.load(Ordering::Relaxed)
    }

    pub(crate) fn capabilities(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("sampled_object_alloc", self.held.sampling),
            ("object_free", self.held.refunds),
            ("garbage_collection", self.held.collections),
            ("virtual_threads", self.held.virtual_threads),
            ("bytecodes", self.held.bytecodes),
            ("scopes", self.bridge().is_some_and(Bridge::sees_scopes)),
        ]
    }

    pub(crate) fn memory_bytes(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ledger", self.ledger.committed_bytes()),
            ("identity", self.identity.committed_bytes()),
            ("names", self.directory().estimated_bytes()),
            (
                "enforcement",
                self.enforcement.committed_bytes() + self.points.methods.committed_bytes(),
            ),
        ]
    }

    pub(crate) fn build(&self) -> Vec<(&'static str, String)> {
        self.build.clone()
    }
}

/// Asks the VM for the capabilities, one group after the other so that what can be had is
/// had, and says what cannot.
pub(crate) fn acquire(tools: &JvmTi, live: bool) -> Held {
    let mut held = Held {
        refunds: tools
            .acquire(|c| {
                c.set_can_tag_objects(true);
                c.set_can_generate_object_free_events(true);
            })
            .is_ok(),
        collections: tools
            .acquire(|c| c.set_can_generate_garbage_collection_events(true))
            .is_ok(),
        bytecodes: tools.acquire(|c| c.set_can_get_bytecodes(true)).is_ok(),
        ..Held::default()
    };
    match tools.acquire(|c| c.set_can_generate_sampled_object_alloc_events(true)) {
        Ok(()) => held.sampling = true,
        Err(Failure::NOT_AVAILABLE) => tracing::error!(
            "another agent holds the JVM's allocation sampling (a profiler in allocation mode?); no accounts are kept until the JVM is started without it"
        ),
        Err(failure) => {
            tracing::error!("the JVM refuses allocation sampling ({failure}); no accounts are kept")
        }
    }
    if !held.refunds {
        tracing::error!("the JVM refuses object tags or their release; no accounts are kept");
    }
    if !held.collections {
        tracing::error!("the JVM does not report collections; live bytes stay zero");
    }
    // For the log alone.
    let _ = tools.acquire(|c| c.set_can_get_line_numbers(true));
    if !held.bytecodes {
        tracing::error!(
            "the JVM does not show bytecode; no place is known to be safe, and nothing is refused"
        );
    }
    // Only to be had at start-up, and only where there are virtual threads; their samples
    // come without it as well.
    if !live {
        held.virtual_threads = tools
            .acquire(|c| c.set_can_support_virtual_threads(true))
            .is_ok();
    }
    held
}
