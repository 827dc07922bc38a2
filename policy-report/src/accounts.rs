//! The answer of `GET /api/v1/accounts`. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Counts;
use crate::Held;
use crate::number::{either, optional, whole};

/// The whole answer. Only `accounts` must be there: without it the answer is another server's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Accounts<'a> {
    /// The process that the agent is in. An older agent does not say.
    #[serde(default)]
    pub jvm: Jvm<'a>,
    /// The heap as a whole.
    #[serde(default)]
    pub heap: Heap,
    /// The sampler.
    #[serde(default)]
    pub sampling: Sampling<'a>,
    /// The policy in force.
    #[serde(default)]
    pub policy: Policy<'a>,
    /// The collections that the agent asks for.
    #[serde(default)]
    pub evidence: Evidence,
    /// The state of the heap by which the limits of all accounts are enforced.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// The processor time and the native memory that the agent itself uses.
    #[serde(default)]
    pub costs: Costs<'a>,
    /// Exact accounts as a whole. `None`: no policy wanted them yet, or the agent does not know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Exact<'a>>,
    /// The accounts, largest live bytes first.
    pub accounts: Vec<Account<'a>>,
    /// Accounts that the agent left out of the document to bound its size.
    #[serde(default, deserialize_with = "whole")]
    pub accounts_omitted: u64,
}

/// The process that the agent is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Jvm<'a> {
    /// Its process id, as it sees itself (in a container: the container's number); 0 where the agent does
    /// not say.
    #[serde(deserialize_with = "whole")]
    pub pid: u64,
    /// Its main class, `module/class`, or the file name of its jar, without arguments.
    pub name: Cow<'a, str>,
    /// The virtual machine: `OpenJDK 64-Bit Server VM`.
    pub vm: Cow<'a, str>,
    /// The version of the JDK: `21.0.5+11-LTS`.
    pub version: Cow<'a, str>,
    /// Whether the agent was loaded by a start-up flag; false: into the running JVM. `None`: the agent does
    /// not say.
    pub loaded_at_start: Option<bool>,
}

/// The processor time and the native memory that the agent itself uses, by its parts. Empty: the agent does not say (an
/// older one).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Costs<'a> {
    /// Processor time since the agent was loaded, in milliseconds.
    pub cpu_milliseconds: Counts<'a>,
    /// Native memory, in bytes.
    pub memory_bytes: Counts<'a>,
}

/// Exact accounts as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exact<'a> {
    /// Whether code that counts is in all classes now.
    pub counting: bool,
    /// The bytes that the JVM itself says its threads allocated while all classes counted. `None`: it does not say, or
    /// not yet.
    #[serde(deserialize_with = "optional")]
    pub jvm_allocated_bytes_total: Option<u64>,
    /// The bytes that were counted over the same time, for all accounts together. `None` as before.
    #[serde(deserialize_with = "optional")]
    pub counted_bytes_total: Option<u64>,
    /// The first less the second; negative where more was counted than made. `None` as before.
    pub remainder_bytes: Option<i64>,
    /// Objects that no account has, because the thread that made them was just being made itself.
    #[serde(deserialize_with = "whole")]
    pub lost_objects_total: u64,
    /// Class files that were given counters.
    #[serde(deserialize_with = "whole")]
    pub classes_rewritten_total: u64,
    /// Class files of which something has no counters, by reason.
    pub classes_skipped: Counts<'a>,
}

/// The collections that the agent asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// For how long the evidence budget allows none, in seconds. `None`: it allows one within a second, or
    /// the agent does not say.
    pub budget_used_up_seconds: Option<f64>,
}

/// The state of the heap by which the limits of all accounts are enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enforcement {
    /// Whether the heap is short: what the latest collection left free is less than what the accounts that are
    /// suspect can take until the next evidence. False where the agent does not say (an older one).
    pub duress: bool,
    /// Bytes of the heap that count as free for that; 0 while no account has a limit.
    #[serde(deserialize_with = "whole")]
    pub heap_free_bytes: u64,
    /// Below so many free bytes the heap is short; 0 while no account has a limit.
    #[serde(deserialize_with = "whole")]
    pub heap_short_below_bytes: u64,
}

/// The heap as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heap {
    /// Used bytes as read just after the latest collection.
    #[serde(deserialize_with = "whole")]
    pub used_after_gc_bytes: u64,
    /// The maximum heap (`-Xmx`) in bytes.
    #[serde(deserialize_with = "whole")]
    pub max_bytes: u64,
    /// Collection pauses since the agent was loaded.
    #[serde(deserialize_with = "whole")]
    pub gc_epoch: u64,
    /// Of which collection the live bytes are, as a [`Heap::gc_epoch`]. `None`: the agent does not
    /// say (an older one).
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub live_gc_epoch: Option<u64>,
    /// Seconds since that collection. `None`: there was none yet, or the agent does not say.
    pub live_age_seconds: Option<f64>,
    /// The sum of all accounts against the heap. `None`: no collection of all memory was recognised yet, or the agent does
    /// not say (an older one).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<AccountsSum>,
}

/// The sum of all accounts against the heap, as of a collection that covered old memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountsSum {
    /// The bytes that all accounts held then.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Its standard error as the samples have it, in bytes.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// The bytes that the heap had in use then.
    #[serde(deserialize_with = "whole")]
    pub heap_bytes: u64,
    /// The first by the last.
    pub over_heap_ratio: f64,
    /// Whether the accounts sum up to more than the heap holds, by more than three standard errors and twice in a row.
    /// Then no verdict rests on them.
    pub exceeds: bool,
    /// By what all stated errors are multiplied while that is so; else 1.
    pub error_factor: f64,
}

/// The sampler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling<'a> {
    /// Mean bytes between samples; 0 when every allocation is sampled.
    #[serde(deserialize_with = "whole")]
    pub interval_bytes: u64,
    /// Samples charged since the agent was loaded.
    #[serde(deserialize_with = "whole")]
    pub samples: u64,
    /// Samples dropped since the agent was loaded.
    #[serde(deserialize_with = "whole")]
    pub dropped: u64,
    /// The same by reason.
    pub dropped_by_reason: Counts<'a>,
    /// Median time of a sample on the allocating thread, in ns.
    #[serde(deserialize_with = "whole")]
    pub callback_p50_ns: u64,
    /// The time that 99 of 100 samples stay within, in ns.
    #[serde(deserialize_with = "whole")]
    pub callback_p99_ns: u64,
}

/// The policy in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy<'a> {
    /// Counts the policies put in force; the first is 1.
    #[serde(deserialize_with = "whole")]
    pub generation: u64,
    /// `observe` or `enforce`; empty where the agent does not say.
    pub mode: Cow<'a, str>,
    /// False from a rejected policy file until the next accepted one.
    pub last_reload_successful: bool,
    /// Why the latest policy file was rejected (`file:line:column: message`), if it was.
    pub last_error: Option<Cow<'a, str>>,
}

/// Where an account stands against its limit; the worst known state is the largest.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not known to be over its limit.
    Open,
    /// The charge is above the limit; no collection has confirmed it yet.
    Suspect,
    /// The bytes that survived a collection are above the limit.
    Over,
    /// A state that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl State {
    /// The spelling in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Suspect => "suspect",
            State::Over => "over",
            State::Unknown => "unknown",
        }
    }
}

/// The door of an account: whether new requests are turned away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    /// It has none, as every account of an older agent.
    #[default]
    None,
    /// New requests are let in.
    Open,
    /// New work is turned away.
    Shut,
    /// A word that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Door {
    /// The spelling in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Door::None => "none",
            Door::Open => "open",
            Door::Shut => "shut",
            Door::Unknown => "unknown",
        }
    }
}

/// The most frequent obstacle to the refusals of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ineffective<'a> {
    /// The most frequent reason, as the metrics name it.
    pub reason: Cow<'a, str>,
    /// The method of a frame that barred one of them; `None` if it is not known.
    pub frame: Option<Cow<'a, str>>,
}

/// Where errors were thrown in an account, or would have been.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place<'a> {
    /// The account's method that gets the error: `com.acme.Cart#add`.
    pub frame: Cow<'a, str>,
    /// The account's method with which its own code begins, above the unit of work.
    pub entry: Cow<'a, str>,
    /// The thread's task: `request` or `background`.
    pub thread: Cow<'a, str>,
    /// The method with which the unit of work begins that the error ends; `scope`, if a scope delimits it.
    pub unit: Cow<'a, str>,
    /// How many errors.
    #[serde(deserialize_with = "whole")]
    pub count: u64,
    /// The line of policy that would spare the thread. `None`: none is proposed.
    pub never_interrupt: Option<Cow<'a, str>>,
}

/// The use that an account makes of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage<'a> {
    /// `heap`, `direct` and `native` (bytes) or `threads` (live platform threads).
    pub resource: Cow<'a, str>,
    /// How much; of the heap the live bytes, with those of the scopes inside.
    #[serde(deserialize_with = "whole")]
    pub used: u64,
    /// The most that it may use. `None`: it has no limit.
    #[serde(deserialize_with = "optional")]
    pub limit: Option<u64>,
    /// Refusals for the limit's sake, errors and turned away requests together.
    #[serde(deserialize_with = "whole")]
    pub refusals_total: u64,
}

/// A live thread of an undeployed version of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftThread<'a> {
    /// Its name, which a tenant has chosen.
    pub name: Cow<'a, str>,
    /// Whether it lets the JVM end.
    pub daemon: bool,
    /// The method that it is in: the uppermost one that is not the JDK's, if there is one. `None`: it shows none.
    pub runs: Option<Cow<'a, str>>,
}

/// A route of an account: what begins a unit of its work, and what such units allocate and keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route<'a> {
    /// The method and the first segments of the path, `POST /statements`; or the entry method,
    /// `org.h2.command.Command#executeUpdate`.
    pub route: Cow<'a, str>,
    /// Calls let in.
    #[serde(deserialize_with = "whole")]
    pub calls_total: u64,
    /// Calls turned away.
    #[serde(deserialize_with = "whole")]
    pub refused_total: u64,
    /// Bytes that its calls allocated and that had survived the latest collection.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// The bytes that stay of those that a call allocates.
    #[serde(deserialize_with = "whole")]
    pub kept_bytes_per_call: u64,
    /// The bytes that a call allocates.
    #[serde(deserialize_with = "whole")]
    pub allocated_bytes_per_call: u64,
    /// The most bytes that a call is taken to hold while it runs.
    #[serde(deserialize_with = "whole")]
    pub peak_bytes_per_call: u64,
}

macro_rules! account {
    ($(fields {$($field:tt)*} figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$($row:tt)*] $help:literal;
    )*})*) => {
        /// One account. All amounts but those of [`Account::tree`] are without the scopes inside it, so
        /// that a sum over accounts counts nothing twice; its limits and its state are about the tree.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Account<'a> {$(
            $($field)*
            $(
                #[doc = $help]
                #[serde(deserialize_with = "either")]
                $(#[$serde])*
                pub $key: $type,
            )*
        )*}

        impl Account<'_> {
            /// The keys of its figures, in the order of the JSON.
            pub const FIGURES: &'static [&'static str] = &[$($(stringify!($key),)*)*];
        }
    };
}

crate::account_figures!(account!);

/// The bytes that an account and the scopes inside it hold together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tree {
    /// Bytes of their charges that had survived the latest collection.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Standard error of `live_bytes`. `None`: the agent does not say (an older one).
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub live_standard_error_bytes: Option<u64>,
    /// How much they may hold at most (95 %) although no sample of them is live. `None`: a sample is
    /// live, or the agent does not say.
    #[serde(deserialize_with = "optional")]
    pub live_at_most_bytes: Option<u64>,
    /// Their charges less refunds so far.
    #[serde(deserialize_with = "whole")]
    pub charged_bytes: u64,
    /// Standard error of `charged_bytes`.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
}

impl Tree {
    /// Standard error of the live bytes. An agent that does not publish it publishes that of the
    /// charged bytes, which stands in for it.
    pub fn live_error_bytes(&self) -> u64 {
        self.live_standard_error_bytes
            .unwrap_or(self.standard_error_bytes)
    }

    /// Where nothing is known to be live: how much may be live all the same (95 %). `None` where
    /// something is live, or the agent does not say.
    pub fn live_at_most(&self) -> Option<u64> {
        self.live_at_most_bytes
            .filter(|&bytes| bytes > 0 && self.live_bytes == 0)
    }
}

/// A share of an account's live bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Principal<'a> {
    /// Account name of the principal.
    pub name: Cow<'a, str>,
    /// Live bytes allocated on its behalf.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
}

/// The objects of one class in one account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Class<'a> {
    /// Java source name: `java.lang.String`, `byte[]`.
    pub class: Cow<'a, str>,
    /// Live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Live objects.
    #[serde(deserialize_with = "whole")]
    pub live_objects: u64,
    /// All bytes ever charged for this class.
    #[serde(deserialize_with = "whole")]
    pub allocated_bytes_total: u64,
    /// Standard error of `live_bytes`. `None`: the agent does not say (an older one).
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub live_standard_error_bytes: Option<u64>,
    /// Estimated number of objects ever charged for this class. `None`: the agent does not say.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub allocated_objects_total: Option<u64>,
    /// Of all bytes ever charged for this class, those that were freed. `None`: the agent does not say.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub freed_bytes_total: Option<u64>,
    /// Of all objects ever charged for this class, those that were freed. `None`: the agent does not say.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub freed_objects_total: Option<u64>,
    /// All bytes that inserted code has counted of this class. `None`: exact accounts have not been on.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub exact_allocated_bytes_total: Option<u64>,
    /// All objects that inserted code has counted of this class. `None` as before.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub exact_allocated_objects_total: Option<u64>,
    /// Estimated live bytes: what was counted, times the share of it that samples see alive. `None`: exact accounts are
    /// off, or samples are too few.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub live_by_ratio_bytes: Option<u64>,
    /// Standard error of `live_by_ratio_bytes`.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub live_by_ratio_standard_error_bytes: Option<u64>,
    /// The share of this class's samples that is kept, 0 to 1 (`[[sampling.thin]]`). `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_share: Option<f64>,
    /// Generations (covering collections apart) with live instances. `None`: the agent does not say.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub generations: Option<u64>,
    /// Live bytes and objects, by collections survived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ages_collections: Vec<Bin>,
    /// Live bytes and objects, by age in seconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ages_seconds: Vec<Bin>,
    /// Live bytes and objects, by the size of one object in bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Bin>,
    /// Live bytes and objects by cohort, oldest first; in a [`Snapshot`](crate::Snapshot) alone. Cohorts of which
    /// nothing is live are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<Held>,
}

/// One bin of a histogram; bins stand in ascending order, and each begins where the one before it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bin {
    /// The largest value that belongs here. `None`: everything beyond the bin before.
    #[serde(deserialize_with = "optional")]
    pub upto: Option<u64>,
    /// Live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Estimated number of live objects.
    #[serde(deserialize_with = "whole")]
    pub live_objects: u64,
}

impl Account<'_> {
    /// Returns the bytes that its limits are about: those of the account together with the scopes inside it.
    pub fn whole(&self) -> Tree {
        self.tree.unwrap_or(Tree {
            live_bytes: self.live_bytes,
            live_standard_error_bytes: self.live_standard_error_bytes,
            live_at_most_bytes: self.live_at_most_bytes,
            charged_bytes: self.charged_bytes,
            standard_error_bytes: self.standard_error_bytes,
        })
    }

    /// Live bytes, with those of the scopes inside it, in percent of the limit; `None` without a
    /// limit.
    pub fn percent_of_limit(&self) -> Option<f64> {
        let limit_bytes = self.limit_bytes.filter(|&bytes| bytes > 0)?;
        Some(self.whole().live_bytes as f64 / limit_bytes as f64 * 100.0)
    }

    /// How much it uses of the resource with this name in [`Usage::resource`]; `None` if the agent does not say.
    pub fn used(&self, resource: &str) -> Option<u64> {
        let usage = self.usage.iter().find(|usage| usage.resource == resource)?;
        Some(usage.used)
    }
}
