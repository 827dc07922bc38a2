//! A policy as plain data, and its defaults.

use std::fmt;

use crate::admit::Admit;
use crate::door::Door;
use crate::exact::Exact;
use crate::glob::Glob;
use crate::interrupt::{Interrupts, Listed};
use crate::leak::AcknowledgedLeak;
use crate::listen::Listen;
use crate::pattern::{PackagePattern, PackageTable};
use crate::snapshots::Snapshots;
use crate::thin::Thin;
use crate::units::format_bytes;
use crate::words::{Throw, words};

/// Smallest sampling interval, in bytes: below it `exact` costs less.
pub const MIN_INTERVAL_BYTES: u64 = 64;
/// Largest sampling interval, in bytes: above it the error of a service of ordinary
/// size (the square root of interval times live bytes) is as large as the service.
pub const MAX_INTERVAL_BYTES: u64 = 64 << 20;
/// Smallest value of `max-tracked`.
pub const MIN_TRACKED: u32 = 1024;
/// Largest value of `max-tracked`.
pub const MAX_TRACKED: u32 = 16_000_000;
/// Smallest share of wall time that collections for evidence may take, in percent: with less, an
/// account over its limit would be found after hours.
pub const MIN_EVIDENCE_BUDGET_PERCENT: f64 = 0.01;
/// Largest share of wall time that collections for evidence may take, in percent.
pub const MAX_EVIDENCE_BUDGET_PERCENT: f64 = 50.0;
/// Smallest share of the process's CPU time that can be set for samples, in percent.
pub const MIN_CPU_BUDGET_PERCENT: f64 = 0.01;
/// Largest share of the process's CPU time that can be set for samples, in percent.
pub const MAX_CPU_BUDGET_PERCENT: f64 = 50.0;
/// The finest interval that the agent chooses for small limits, in bytes, where the policy names none.
pub const FINEST_DEFAULT_INTERVAL_BYTES: u64 = 16 << 10;
/// How often the interval is doubled at most, if samples cost more than their budget.
pub const MAX_INTERVAL_DOUBLINGS: u32 = 6;
/// Default of `mask`, in bytes.
pub const DEFAULT_MASK_BYTES: u64 = 8 << 20;
/// The `priority` of an account whose policy names none.
pub const DEFAULT_PRIORITY: f64 = 1.0;
/// The largest `priority`.
pub const MAX_PRIORITY: f64 = 1000.0;
/// Smallest reserve, in percent of a limit: errors are thrown from the limit on.
pub const MIN_RESERVE_PERCENT: f64 = 0.0;
/// Largest reserve, in percent of a limit: with more, the limit would say little about what an account
/// may hold.
pub const MAX_RESERVE_PERCENT: f64 = 100.0;
/// Longest account name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// A whole, valid policy file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// `[agent]`
    pub agent: AgentSection,
    /// `[sampling]`
    pub sampling: Sampling,
    /// `[enforcement]`
    pub enforcement: Enforcement,
    /// `[snapshots]`; `None`: no files are written.
    pub snapshots: Option<Snapshots>,
    /// `[exact]`
    pub exact: Exact,
    /// `[leaks]`
    pub leak_settings: LeakSettings,
    /// `[privacy]`
    pub privacy: Privacy,
    /// `[[account]]`, in file order, which decides between services and scopes.
    pub accounts: Vec<Account>,
    /// `[[leak]]`: acknowledged leaks, which are not reported again.
    pub leaks: Vec<AcknowledgedLeak>,
}

impl Policy {
    /// All package patterns compiled; [`PackageTable::lookup`] gives the index of the
    /// account in [`Policy::accounts`].
    pub fn package_table(&self) -> PackageTable {
        PackageTable::new(
            self.accounts
                .iter()
                .enumerate()
                .flat_map(|(index, account)| {
                    match &account.matcher {
                        Matcher::Packages(patterns) => patterns.as_slice(),
                        Matcher::Service(_) | Matcher::Scope(_) => &[],
                    }
                    .iter()
                    .map(move |pattern| (pattern, index))
                }),
        )
    }

    /// The index of the first account whose `service` glob matches any of the `names`
    /// of one deployment.
    pub fn service_account(&self, names: &[&str]) -> Option<usize> {
        self.accounts.iter().position(|account| {
            matches!(&account.matcher, Matcher::Service(glob)
                if glob.matches_any(names.iter().copied()))
        })
    }

    /// The index of the first account whose `scope` glob matches `name`.
    pub fn scope_account(&self, name: &str) -> Option<usize> {
        self.accounts.iter().position(
            |account| matches!(&account.matcher, Matcher::Scope(glob) if glob.matches(name)),
        )
    }
}

/// `[agent]`: the agent itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentSection {
    /// `listen`: where `/metrics` is served; by default `127.0.0.1:9464`.
    pub listen: Listen,
    /// `listen-strict`: whether the agent waits for its port if another process has it; by default it
    /// takes a free one.
    pub listen_strict: bool,
}

/// `[sampling]`: what is measured, and how precisely.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// `interval`: mean bytes between samples; by default 64 KiB.
    pub interval: Interval,
    /// Whether the policy leaves the interval to the agent, which then samples finer for small limits.
    pub interval_is_default: bool,
    /// `principals`: how far a stack is walked; by default [`Principals::Full`].
    pub principals: Principals,
    /// `max-tracked`: most sampled objects that are tracked at the same time; further samples are
    /// dropped and counted. By default 1,000,000.
    pub max_tracked: u32,
    /// `cpu-budget`: the share of the process's CPU time, in percent, above which the agent widens the
    /// interval; `None`: never. By default 0.5 %.
    pub cpu_budget_percent: Option<f64>,
    /// `[[sampling.thin]]`: classes of which fewer samples are kept; the first that matches a class decides.
    pub thin: Vec<Thin>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            interval: Interval::default(),
            interval_is_default: true,
            principals: Principals::default(),
            max_tracked: 1_000_000,
            cpu_budget_percent: Some(0.5),
            thin: Vec::new(),
        }
    }
}

/// The mean distance between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interval {
    /// Every allocation is a sample.
    Exact,
    /// Mean bytes between samples, from [`MIN_INTERVAL_BYTES`] to
    /// [`MAX_INTERVAL_BYTES`].
    Bytes(u64),
}

impl Interval {
    /// Mean bytes between samples; 0 for [`Interval::Exact`], as it is published.
    pub fn bytes(self) -> u64 {
        match self {
            Interval::Exact => 0,
            Interval::Bytes(bytes) => bytes,
        }
    }
}

impl Default for Interval {
    /// 64 KiB.
    fn default() -> Self {
        Interval::Bytes(64 << 10)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interval::Exact => formatter.write_str("exact"),
            Interval::Bytes(bytes) => formatter.write_str(&format_bytes(*bytes)),
        }
    }
}

/// How far the stack of a sample is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Principals {
    /// To the next different account below the payer, for the principal–agent matrix.
    #[default]
    Full,
    /// Only until the payer is known.
    Payer,
}
words!(Principals { Full = "full", Payer = "payer" });

/// `[enforcement]`: what the agent does about an account over its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Enforcement {
    /// `mode`: by default [`Mode::Observe`].
    pub mode: Mode,
    /// `evidence-budget`: the share of the machine's time, in percent, that the collections which
    /// the agent asks for may take, from [`MIN_EVIDENCE_BUDGET_PERCENT`] to
    /// [`MAX_EVIDENCE_BUDGET_PERCENT`]; by default 5.
    pub evidence_budget_percent: f64,
    /// `mask`: how much an account over its limit may allocate in sections of code in which its program
    /// asks not to be refused, until it has recovered; by default [`DEFAULT_MASK_BYTES`].
    pub mask: Limit,
    /// `when`: whether limits bind at any time; by default [`When::Always`].
    pub when: When,
    /// `reserve`: what work that is already inside, and background threads, may allocate beyond the limit of
    /// their account while its door is shut; by default [`Reserve::Auto`].
    pub reserve: Reserve,
}

impl Default for Enforcement {
    fn default() -> Self {
        Enforcement {
            mode: Mode::default(),
            evidence_budget_percent: 5.0,
            mask: Limit::Bytes(DEFAULT_MASK_BYTES),
            when: When::default(),
            reserve: Reserve::default(),
        }
    }
}

/// Whether refusals are thrown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Count what would be refused.
    #[default]
    Observe,
    /// Refuse.
    Enforce,
}
words!(Mode { Observe = "observe", Enforce = "enforce" });

/// Whether limits bind while there is room in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum When {
    /// A limit binds at any time.
    #[default]
    Always,
    /// Limits bind only while the heap is short of memory.
    HeapIsShort,
}
words!(When { Always = "always", HeapIsShort = "heap-is-short" });

/// The bytes that an account may hold beyond its limit while its door is shut.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Reserve {
    /// As much as the heap can give.
    #[default]
    Auto,
    /// A share of the limit, from 0 to 1. A policy writes it in percent, from [`MIN_RESERVE_PERCENT`] to
    /// [`MAX_RESERVE_PERCENT`].
    Share(f64),
}

impl fmt::Display for Reserve {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::Auto => formatter.write_str("auto"),
            // Without the noise of the division by 100.
            Reserve::Share(share) => write!(formatter, "{}%", (share * 1e8).round() / 1e6),
        }
    }
}

/// `[leaks]`: what is found out about what accounts hold, beyond what leak suspects need.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakSettings {
    /// `sites`: the accounts, by globs over their names as they are published, for which the agent takes
    /// stacks of samples of all classes. None by default; at most [`MAX_SITES`](crate::MAX_SITES).
    pub sites: Vec<Glob>,
    /// `paths`: whether the agent finds out by itself what keeps a suspect alive; by default
    /// [`LeakPaths::Off`].
    pub paths: LeakPaths,
    /// `paths-per-day`: how often it may do so in 24 hours, at most [`MAX_PATHS_PER_DAY`]; by default 4.
    pub paths_per_day: u32,
}

/// Whether the agent walks the heap for a suspect by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeakPaths {
    /// Only `heapwarden paths` does.
    #[default]
    Off,
    /// In a forked child of the JVM, never in place.
    Forked,
}
words!(LeakPaths { Off = "off", Forked = "forked" });

/// The largest `paths-per-day`.
pub const MAX_PATHS_PER_DAY: u32 = 1_000;

impl Default for LeakSettings {
    fn default() -> LeakSettings {
        LeakSettings {
            sites: Vec::new(),
            paths: LeakPaths::Off,
            paths_per_day: 4,
        }
    }
}

impl LeakSettings {
    /// Whether stacks are wanted of the account of this name.
    pub fn wants_sites_of(&self, account: &str) -> bool {
        self.sites.iter().any(|glob| glob.matches(account))
    }
}

/// `[privacy]`: what of the contents of objects may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Privacy {
    /// `values`: whether answers to `heapwarden instances` show the values of strings, numbers and arrays; by
    /// default they are masked.
    pub values: bool,
}

/// `[[account]]`: a rule that makes one account, or one for each service or scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// `name`: with a name, everything that matches shares one account; without, each matched service
    /// or scope has an account named after it. Package accounts always have a name.
    pub name: Option<String>,
    /// `service`, `packages` or `scope`: what belongs to it.
    pub matcher: Matcher,
    /// `charge`: who pays; by default [`Charge::SelfPays`].
    pub charge: Charge,
    /// `soft-limit`: live bytes above which the agent warns.
    pub soft_limit: Limit,
    /// `limit`: live bytes above which allocations are refused.
    pub limit: Limit,
    /// `direct-limit`: bytes off the heap, direct and native together, above which no more are given. A share is one of the
    /// maximum heap.
    pub direct_limit: Limit,
    /// `throw`: what the refused thread gets; by default [`Throw::Oom`].
    pub throw: Throw,
    /// `door`: where new work is turned away while it is over its limit; by default [`Door::Auto`].
    /// [`Door::Off`] is possible for services only.
    pub door: Door,
    /// `refuse-with`: what leaves the methods of its door; `None`: as `throw`. Only with [`Door::Methods`].
    pub refuse_with: Option<Throw>,
    /// `status`: what the servers' doors answer, 503 or 429; by default [`DEFAULT_DOOR_STATUS`](crate::DEFAULT_DOOR_STATUS).
    pub status: u16,
    /// `priority`: how much it counts where the heap is short: the account whose excess is the most, divided
    /// by this, is refused first. Above 0, at most [`MAX_PRIORITY`]; by default [`DEFAULT_PRIORITY`].
    pub priority: f64,
    /// `tasks`: whether an error may end a task of an executor; by default [`Tasks::Spare`].
    pub tasks: Tasks,
    /// `admit`: requests that the door always lets in; empty but for services.
    pub admit: Vec<Admit>,
    /// `interrupt-through`, `never-interrupt` and `work`: where its threads may be refused.
    pub interrupts: Interrupts,
}

impl Account {
    /// The rule in messages: its name, or what it matches.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => self.matcher.to_string(),
        }
    }
}

/// The deployments, packages or tenants that belong to an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// Deployments, by context path or name.
    Service(Glob),
    /// Java packages; never empty.
    Packages(Vec<PackagePattern>),
    /// Tenants named through the Java API.
    Scope(Glob),
}

impl fmt::Display for Matcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matcher::Service(glob) => write!(formatter, "service \"{glob}\""),
            Matcher::Scope(glob) => write!(formatter, "scope \"{glob}\""),
            Matcher::Packages(patterns) => write!(formatter, "packages {}", Listed(patterns)),
        }
    }
}

/// Who pays for what an account's packages allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Charge {
    /// The account itself.
    #[default]
    SelfPays,
    /// Whoever called: the account is a library.
    Caller,
}
words!(Charge { SelfPays = "self", Caller = "caller" });

/// Whether a task of an executor is a unit of work that an error may end: a `FutureTask`, a stage of a
/// `CompletableFuture`, a fork-join task, or one of a virtual thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tasks {
    /// It is not: nobody may look at how it ended.
    #[default]
    Spare,
    /// It is.
    Interrupt,
}
words!(Tasks { Spare = "spare", Interrupt = "interrupt" });

/// A bound on the live bytes of an account.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Limit {
    /// Unbounded.
    #[default]
    None,
    /// So many bytes, more than zero.
    Bytes(u64),
    /// A share of the maximum heap, above 0 and at most 100.
    PercentOfMaxHeap(f64),
}

impl Limit {
    /// How many standard errors an estimate must be above a limit to count as above it. If an account
    /// is exactly at its limit, one estimate in 740 is that high by chance. The agent and `replay` use
    /// the same number.
    pub const MARGIN_STANDARD_ERRORS: f64 = 3.0;

    /// The share of the limit at which an account that was over it is admitted again.
    pub const READMISSION_SHARE: f64 = 0.95;

    /// The bound in bytes in a JVM whose maximum heap is `max_heap_bytes`, rounded
    /// down, but never to zero.
    pub fn resolve(self, max_heap_bytes: u64) -> Option<u64> {
        match self {
            Limit::None => None,
            Limit::Bytes(bytes) => Some(bytes),
            Limit::PercentOfMaxHeap(percent) => {
                let bytes = (max_heap_bytes as f64 * percent / 100.0) as u64;
                Some(bytes.min(max_heap_bytes).max(1))
            }
        }
    }

    /// Whether this is below `other` in every JVM; `None` if that depends on the heap, or either is
    /// unbounded.
    pub(crate) fn is_below(self, other: Limit) -> Option<bool> {
        match (self, other) {
            (Limit::Bytes(mine), Limit::Bytes(theirs)) => Some(mine < theirs),
            (Limit::PercentOfMaxHeap(mine), Limit::PercentOfMaxHeap(theirs)) => Some(mine < theirs),
            _ => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::None => formatter.write_str("none"),
            Limit::Bytes(bytes) => formatter.write_str(&format_bytes(*bytes)),
            Limit::PercentOfMaxHeap(percent) => write!(formatter, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_contract() {
        let policy = Policy::default();
        assert_eq!(policy.agent.listen.to_string(), "127.0.0.1:9464");
        assert_eq!(policy.sampling.interval, Interval::Bytes(65_536));
        assert_eq!(policy.sampling.principals, Principals::Full);
        assert_eq!(policy.sampling.max_tracked, 1_000_000);
        assert_eq!(policy.sampling.cpu_budget_percent, Some(0.5));
        assert_eq!(policy.enforcement.mode, Mode::Observe);
        assert_eq!(policy.enforcement.evidence_budget_percent, 5.0);
        assert_eq!(policy.enforcement.mask, Limit::Bytes(8 << 20));
        assert_eq!(policy.enforcement.when, When::Always);
        assert_eq!(policy.enforcement.reserve, Reserve::Auto);
        assert_eq!(Door::default(), Door::Auto);
        assert!(policy.accounts.is_empty() && policy.leaks.is_empty());
        assert!(policy.leak_settings.sites.is_empty());
    }

    #[test]
    fn limits_resolve_against_the_heap() {
        assert_eq!(Limit::None.resolve(100), None);
        assert_eq!(Limit::Bytes(7).resolve(1), Some(7));
        assert_eq!(
            Limit::PercentOfMaxHeap(25.0).resolve(1 << 30),
            Some(1 << 28)
        );
        assert_eq!(
            Limit::PercentOfMaxHeap(100.0).resolve(u64::MAX),
            Some(u64::MAX)
        );
        assert_eq!(Limit::PercentOfMaxHeap(0.001).resolve(10), Some(1));
    }

    #[test]
    fn words_read_back() {
        for word in Throw::WORDS {
            assert_eq!(Throw::from_word(word).unwrap().as_str(), *word);
        }
        for word in Door::WORDS {
            assert_eq!(Door::from_word(word).unwrap().to_string(), *word);
        }
        for word in When::WORDS {
            assert_eq!(When::from_word(word).unwrap().as_str(), *word);
        }
        for word in Tasks::WORDS {
            assert_eq!(Tasks::from_word(word).unwrap().as_str(), *word);
        }
        assert_eq!(Reserve::Share(0.07).to_string(), "7%");
        assert_eq!(Reserve::Share(0.125).to_string(), "12.5%");
        assert_eq!(Charge::from_word("self"), Some(Charge::SelfPays));
        assert_eq!(Charge::from_word("Self"), None);
    }

    #[test]
    fn long_matchers_are_cut_in_messages() {
        let patterns = ["a", "b", "c", "d", "e", "f"]
            .map(|text| PackagePattern::new(text).unwrap())
            .to_vec();
        assert_eq!(
            Matcher::Packages(patterns).to_string(),
            "packages a, b, c, d and 2 more"
        );
    }
}
