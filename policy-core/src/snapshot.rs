//! The published data: one consistent reading of the accounts.
//!
//! The agent builds a snapshot on one of its own threads, never on an allocating one. The renderers and
//! the HTTP listener read snapshots and nothing else of the accounts, so they cannot disturb the
//! allocating threads.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::cohorts::Sum;
use crate::enforce::duress::Figures;
use crate::exact::ExactStatus;
use crate::holdings::histogram::Shape;
use crate::leaks::Report;
use crate::ledger::{Epoch, Exact};
use crate::live_by_ratio::LiveByRatio;
use crate::sites::listing::SitesReading;
use crate::sum_against_heap::Reading;
use crate::usage::{LeftThread, Usage};

/// The reserved account of all charges that belong to no other account.
pub const UNACCOUNTED: &str = "_unaccounted";
/// The reserved name for the sum of everything beyond a cardinality cap.
pub const OTHER: &str = "_other";

/// One reading of everything that Heapwarden publishes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The process that the agent is in.
    pub process: Process,
    /// The heap as a whole.
    pub heap: Heap,
    /// The sampler.
    pub sampling: Sampling,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// Every account, each name once, in no particular order; not yet folded to the
    /// cardinality cap.
    pub accounts: Vec<Account>,
    /// The latest report on leaks.
    pub leaks: Arc<Report>,
    /// When that was judged; `None` before the first look.
    pub leaks_judged_at: Option<SystemTime>,
    /// JVM TI capabilities by contract name, and whether the agent holds them.
    pub capabilities: Vec<(&'static str, bool)>,
    /// Exact accounts; `None` if they have not been on.
    pub exact: Option<ExactStatus>,
    /// Mistakes of programs in their use of scopes, counted by kind.
    pub scope_misuses: Vec<(&'static str, u64)>,
    /// Whether the heap is short, and by which figures.
    pub duress: Figures,
    /// Collections that the agent asked for, by kind.
    pub evidence: Vec<Evidence>,
    /// For how long the evidence budget allows no collection, in seconds; `None` if it allows one
    /// within a second.
    pub evidence_budget_used_up_seconds: Option<f64>,
    /// CPU seconds used by each part of the agent since it was loaded.
    pub cpu_seconds: Vec<(&'static str, f64)>,
    /// Stacks of samples taken for sites.
    pub stacks: u64,
    /// Samples that were to have a stack and got none, or a shorter one, by reason.
    pub stacks_skipped: Vec<(&'static str, u64)>,
    /// Native bytes held by each part of the agent.
    pub memory_bytes: Vec<(&'static str, u64)>,
    /// Blocks of native memory that are in no account, because there was no room for them.
    pub unentered_blocks: u64,
    /// Blocks of native memory that were charged as their thread's block before.
    pub assumed_blocks: u64,
    /// Versions of the agent and the JVM: label name and value, for `heapwarden_build_info`; `version` first.
    pub build: Vec<(&'static str, String)>,
}

/// The process that the agent is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id, as it sees itself (in a container: the container's number).
    pub id: u32,
    /// The main class, `module/class`, or the file name of the jar; without arguments. Empty if the virtual
    /// machine does not tell.
    pub program: String,
    /// The virtual machine: `OpenJDK 64-Bit Server VM`.
    pub vm: String,
    /// Its version: `21.0.5+11-LTS`.
    pub version: String,
    /// Whether the agent was loaded by a start-up flag; false: into a running process.
    pub loaded_at_start: bool,
}

/// The heap as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heap {
    /// Used bytes as read just after the latest collection.
    pub used_after_gc_bytes: u64,
    /// The maximum heap (`-Xmx`) in bytes.
    pub max_bytes: u64,
    /// Collection pauses seen since the agent was loaded.
    pub gc_epoch: u64,
    /// The epoch of the live bytes: everything charged in it or before has been through a collection.
    /// 0 before the first.
    pub live_gc_epoch: u64,
    /// The age of `live_gc_epoch`: how long ago it was confirmed; `None` before the first. With generational ZGC this is the
    /// age of the latest major collection.
    pub live_age_seconds: Option<f64>,
    /// The sum of all accounts against the heap; `None` before the first covering collection.
    pub accounts: Option<AccountsSum>,
}

/// The sum of all accounts against the heap, as of a covering collection ([`crate::sum_against_heap`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AccountsSum {
    /// The figures.
    pub reading: Reading,
    /// Whether the finding stands: the accounts sum up to more than the heap holds, so nobody is refused.
    pub exceeds: bool,
    /// By what all stated errors are multiplied for that; 1 if it does not stand.
    pub error_factor: f64,
}

/// The sampler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// Mean bytes between samples; 0 when every allocation is sampled (`exact`).
    pub interval_bytes: u64,
    /// Samples charged since the agent was loaded.
    pub samples: u64,
    /// Samples dropped since the agent was loaded, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Samples of large arrays passed over since the agent was loaded.
    pub thinned: u64,
    /// Samples of classes that the policy thins, passed over since the agent was loaded.
    pub thinned_by_class: u64,
    /// How many times larger than published the standard error of what was allocated is, because many threads were
    /// sampled at the same places: see [`crate::sampling::first_draws`]. 0: not known.
    pub error_factor: f64,
    /// Median time of a sample on the allocating thread, in ns.
    pub callback_p50_ns: u64,
    /// The 99th percentile of the time of a sample on the allocating thread, in ns.
    pub callback_p99_ns: u64,
}

/// The policy in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyStatus {
    /// Counts the policies put in force; the first is 1.
    pub generation: u64,
    /// Whether refusals are thrown.
    pub mode: Mode,
    /// The share of wall time (0 to 1) that the collections requested by the agent may take.
    pub evidence_budget_ratio: f64,
    /// False from a rejected policy file until the next accepted one.
    pub last_reload_successful: bool,
    /// When the policy in force was accepted, seconds since the Unix epoch.
    pub last_reload_success_timestamp_seconds: f64,
    /// Why the file was rejected (`file:line:column: message`), if it was.
    pub last_error: Option<String>,
}

/// The enforcement mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Counts refusals, does not throw.
    #[default]
    Observe,
    /// Throws refusals.
    Enforce,
}

impl Mode {
    /// The contract's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Observe => "observe",
            Mode::Enforce => "enforce",
        }
    }
}

/// The kind of unit that an account stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A deployed application.
    Service,
    /// A set of Java packages that pays for itself.
    Package,
    /// A set of Java packages whose callers pay (`charge = "caller"`).
    Library,
    /// A tenant named through the Java API.
    Scope,
    /// Reserved: `_unaccounted`, `_other`.
    #[default]
    Reserved,
}

impl Kind {
    /// The contract's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Service => "service",
            Kind::Package => "package",
            Kind::Library => "library",
            Kind::Scope => "scope",
            Kind::Reserved => "reserved",
        }
    }
}

/// Where an account stands against its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Not known to be over its limit.
    #[default]
    Open,
    /// The charge is above the limit; evidence is awaited.
    Suspect,
    /// A collection has proved that the account is above its limit.
    Over,
}

impl State {
    /// The contract's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Suspect => "suspect",
            State::Over => "over",
        }
    }
}

/// The door of an account: whether new requests are turned away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DoorState {
    /// It has none.
    #[default]
    None,
    /// New requests are let in.
    Open,
    /// New work is turned away, but for what is let in as a probe or because it is cheap.
    Shut,
}

impl DoorState {
    /// The contract's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            DoorState::None => "none",
            DoorState::Open => "open",
            DoorState::Shut => "shut",
        }
    }
}

/// One account. Its figures are rows of `policy_report::account_figures` under the same names: from these the agent
/// makes all that is shown of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// The account's name.
    pub name: String,
    /// The kind of unit that it stands for.
    pub kind: Kind,
    /// The service it was recognised as (context path or deployment name); empty for other kinds.
    pub service: String,
    /// The account of the service that this scope is inside of; empty where there is none.
    pub parent: String,
    /// The sums of the account and the scopes inside it; `None` if it has no scopes.
    pub tree: Option<Tree>,
    /// The charges that survived the latest collection. This and the following amounts exclude the
    /// scopes inside the account, so that sums over accounts count nothing twice. Its limits and its
    /// state apply to [`Account::tree`].
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    pub live_standard_error_bytes: f64,
    /// If none of its samples is live: the most that it may hold, with 95 % confidence.
    pub live_at_most_bytes: Option<u64>,
    /// Charges less refunds so far.
    pub charged_bytes: u64,
    /// Standard error of `charged_bytes`.
    pub standard_error_bytes: f64,
    /// Estimated number of objects in `live_bytes`.
    pub live_objects: u64,
    /// All bytes ever charged to it.
    pub allocated_bytes_total: u64,
    /// All objects ever charged to it.
    pub allocated_objects_total: u64,
    /// The exact count of its bytes by inserted code; `None` if exact accounts have not been on.
    pub exact_allocated_bytes_total: Option<u64>,
    /// The exact count of its objects.
    pub exact_allocated_objects_total: Option<u64>,
    /// Live bytes by what was counted and the share of it that samples see alive; `None` while nothing is
    /// counted, or of few samples.
    pub live_by_ratio: Option<LiveByRatio>,
    /// Soft limit, if there is one.
    pub soft_limit_bytes: Option<u64>,
    /// Limit, if there is one.
    pub limit_bytes: Option<u64>,
    /// The bytes that it may be charged beyond its limit before errors are thrown; `None` if it has no door.
    pub reserve_bytes: Option<u64>,
    /// The most direct and native bytes together that it may have, if that is limited.
    pub direct_limit_bytes: Option<u64>,
    /// Blocks that were refused for that limit's sake; `None` without one.
    pub direct_refusals_total: Option<u64>,
    /// Blocks that would have been; `None` without a limit.
    pub direct_would_refuse_total: Option<u64>,
    /// Blocks that were given although a refusal was due; `None` without a limit.
    pub direct_deferred_total: Option<u64>,
    /// Where it stands against its limit.
    pub state: State,
    /// Whether new requests are turned away.
    pub door: DoorState,
    /// Times that its live bytes rose above its soft limit.
    pub soft_limit_events_total: u64,
    /// Refusals thrown.
    pub refusals_total: u64,
    /// Refusals that were not thrown because the mode is `observe`.
    pub would_refuse_total: u64,
    /// Requests and calls turned away at a door.
    pub admission_refusals_total: u64,
    /// Threads that ended with an uncaught refusal.
    pub threads_killed_total: u64,
    /// The time for which enforcement made its threads and requests wait, in milliseconds.
    pub wait_milliseconds_total: u64,
    /// Refusals that were due where a throw is not safe, by reason.
    pub deferred: Vec<(&'static str, u64)>,
    /// The obstacle to its refusals, if it stays over its limit and they do not stop it.
    pub ineffective: Option<Ineffective>,
    /// Where errors were thrown in it, or in mode `observe` would have been, most frequent first. Since the mode
    /// last changed.
    pub places: Vec<Place>,
    /// How many errors were, or would have been, thrown at places that are not listed.
    pub places_elsewhere: u64,
    /// The costs of its requests by route, largest live bytes first. Empty if it has no door.
    pub routes: Vec<Route>,
    /// Undeployed services of this account whose class loader still lives and holds bytes.
    pub retired_loaders: u64,
    /// The part of `live_bytes` that undeployed versions have left: their class loader is gone.
    pub left_behind_bytes: u64,
    /// Live threads of undeployed versions of this service.
    pub threads_left_behind: u64,
    /// Some of them.
    pub left_threads: Vec<LeftThread>,
    /// Its use of resources beside the heap. Empty for scopes and libraries, and before the first count.
    pub usage: Vec<Usage>,
    /// The live bytes that its code allocated, by principal.
    pub principals: Vec<Principal>,
    /// Its holdings by class, largest live bytes first.
    pub classes: Vec<Class>,
}

/// The cost of the requests of one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The method and the first segments of the path, or `_other`.
    pub route: String,
    /// Requests that came in.
    pub calls_total: u64,
    /// Requests that were turned away.
    pub refused_total: u64,
    /// The bytes that they allocated and that have survived the latest collection.
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    pub standard_error_bytes: u64,
    /// The bytes that a request keeps, by the latest requests.
    pub kept_bytes: u64,
    /// The bytes that a request allocates, by the latest requests.
    pub allocated_bytes: u64,
    /// The most that a request is taken to hold while it runs.
    pub peak_bytes: u64,
}

/// Where errors were thrown in an account, or would have been.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The account's method that gets the error: `com.acme.Cart#add`.
    pub frame: String,
    /// The account's method with which its own code begins.
    pub entry: String,
    /// The work of the thread: `request` or `background`.
    pub thread: &'static str,
    /// The method with which the unit of work begins; `scope`, if a scope delimits it.
    pub unit: String,
    /// How many errors.
    pub count: u64,
    /// The line of policy that would spare the thread, if one is proposed.
    pub never_interrupt: Option<String>,
}

/// The obstacle to the refusals of an account: the reason and a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ineffective {
    /// The most frequent reason, as the metrics name it.
    pub reason: &'static str,
    /// The method of a frame that barred one of them; `None` if it is not known.
    pub frame: Option<String>,
}

/// The sums of an account and the scopes inside it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tree {
    /// Their charges that survived the latest collection.
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    pub live_standard_error_bytes: f64,
    /// If none of their samples is live: the most that they may hold, with 95 % confidence.
    pub live_at_most_bytes: Option<u64>,
    /// Their charges less refunds so far.
    pub charged_bytes: u64,
    /// Standard error of `charged_bytes`.
    pub standard_error_bytes: f64,
}

/// The live bytes that an agent account allocated for one principal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Principal {
    /// Account name of the principal.
    pub name: String,
    /// Live bytes that the agent account allocated on this principal's behalf.
    pub live_bytes: u64,
}

/// The objects of one class in one account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Class {
    /// Java source name: `java.lang.String`, `byte[]`.
    pub class: String,
    /// Live bytes.
    pub live_bytes: u64,
    /// Live objects.
    pub live_objects: u64,
    /// All bytes ever charged for this class.
    pub allocated_bytes_total: u64,
    /// Standard error of `live_bytes`.
    pub live_standard_error_bytes: f64,
    /// Estimated number of objects ever charged for this class.
    pub allocated_objects_total: u64,
    /// Of `allocated_bytes_total`: what was freed.
    pub freed_bytes_total: u64,
    /// Of `allocated_objects_total`: what was freed.
    pub freed_objects_total: u64,
    /// The exact count of it by inserted code; `None`: nothing was ever counted.
    pub exact: Option<Exact>,
    /// Live bytes by ratio; `None` without exact accounts, and of few samples.
    pub live_by_ratio: Option<LiveByRatio>,
    /// Ages and sizes of what is live.
    pub shape: Shape,
    /// The share of samples of small objects that is kept; `None`: all.
    pub sample_share: Option<f64>,
    /// The live holdings by cohort, oldest first; only in a reading with cohorts.
    pub cohorts: Vec<Held>,
}

/// The holdings of one class of one account in one cohort ([`crate::cohorts`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Which cohort: up to where it reaches.
    pub upto: Epoch,
    /// The live part of it.
    pub sum: Sum,
}

/// Collections of one kind that the agent asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The kind of collection.
    pub kind: &'static str,
    /// How many.
    pub collections: u64,
    /// Wall seconds spent waiting for them.
    pub seconds: f64,
}

/// Gives renderers their snapshots.
pub trait Source: Send + Sync {
    /// A snapshot that is at most a second old. May take milliseconds; never called on an
    /// allocating thread.
    fn snapshot(&self) -> Arc<Snapshot>;
    /// Where survivors were allocated, at most a few seconds old. May take milliseconds; never called on an
    /// allocating thread.
    fn sites(&self) -> Arc<SitesReading> {
        Arc::default()
    }
    /// Whether the agent keeps accounts: the JVM is up and sampling is on.
    ///
    /// # Errors
    /// The reason why not, as text for an operator.
    fn ready(&self) -> Result<(), String>;
    /// The last answers to `heapwarden paths` and `holders`, as JSON.
    fn walks(&self) -> Vec<u8> {
        b"{\"walks\":[]}\n".to_vec()
    }
    /// Returns the allocations in each calling context, as JSON.
    fn contexts(&self) -> Vec<u8> {
        b"{\"contexts\":[]}\n".to_vec()
    }
    /// The last answers to `heapwarden instances`, as JSON.
    fn instances(&self) -> Vec<u8> {
        b"{\"answers\":[]}\n".to_vec()
    }
    /// The listener keeps so many bytes to answer with later.
    fn remembers(&self, _bytes: u64) {}
    /// Returns the answer that another thread makes or reads, for a reader who first asked at `asked`. Does not wait:
    /// the reader asks again.
    fn requested(&self, wanted: &Wanted, asked: Instant) -> Requested {
        let _ = (wanted, asked);
        Requested::Failed("no documents are made here".to_owned())
    }
}

/// A document, a profile, a list or a file that a reader can ask another thread for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The document of everything that the accounts hold.
    Document,
    /// The profile of the accounts.
    Profile,
    /// The list of the snapshots on disk.
    Files,
    /// A snapshot on disk, by its name.
    File(String),
}

/// A document that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// Here it is, as gzip.
    Made(Arc<[u8]>),
    /// It is being made.
    Pending,
    /// It cannot be made, as text for an operator.
    Failed(String),
    /// There is no such thing.
    Missing,
}
