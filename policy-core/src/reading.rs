//! Reads the accounts: makes one [`Snapshot`] from the ledger, the directory and the counters.
//!
//! Runs on a thread of the agent. Charges and refunds continue meanwhile, so sums of one snapshot may
//! differ by them. A reading has three steps, so that no thread waits for the scan of the records:
//! 1. `count` scans the records once and sums up live bytes by purse, class and principal, as numbers.
//!    It holds no lock.
//! 2. `look` takes names, limits and totals of purses under the locks of the policy and the directory,
//!    so that a reading never mixes two policies.
//! 3. `row` makes the rows, by name. It holds no lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use policy_config::{Thin, thin_rule};

use crate::cohorts::{Cohorts, Mark, Sum};
use crate::core::Core;
use crate::counted_since::classes::UNKNOWN;
use crate::enforce::Enforcement;
use crate::enforce::refused_places::RefusedPlace;
use crate::enforce::throw_points::Reason;
use crate::events;
use crate::identity::classes::ClassId;
use crate::identity::directory;
use crate::identity::directory::counting::{Counting, Names};
use crate::ledger::{DropReason, Ledger, PurseId, Totals, UNKNOWN_CLASS};
use crate::sampling::class_thinning::widest_bytes;
use crate::sampling::weight::OBJECT_UNIT;
use crate::sites::Skip;
use crate::uncertainty::{Survivors, stated_error_bytes, widened};
use crate::usage::{Resource, Usage};

use crate::snapshot::{
    Account, AccountsSum, Class, Heap, Held, Ineffective, Kind, OTHER, Place, PolicyStatus,
    Principal, Route, Sampling, Snapshot, State, Tree, UNACCOUNTED,
};

mod classes;
mod counted;

use classes::{OfPurses, whole_objects};
use counted::{Counted, Group, count, open_purses};

/// The unit of work that a scope delimits.
const OF_SCOPE: &str = "scope";

/// A reading, with the live bytes by purse that the Java API asks for.
#[derive(Default)]
pub struct Taken {
    /// The figures that are published.
    pub snapshot: Snapshot,
    /// The name of the account of each purse.
    pub names: Arc<Names>,
    /// The live charges of each purse.
    pub live_of_purses: HashMap<PurseId, LiveOfPurse>,
}

/// The live charges of one purse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveOfPurse {
    /// Live bytes.
    pub bytes: u64,
    /// The variance of `bytes` as its error is stated, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
    /// Live objects, in units of 2^-16.
    units: u64,
}

impl LiveOfPurse {
    /// The estimated number of objects.
    pub fn objects(self) -> u64 {
        self.units.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT
    }
}

/// Takes a reading of the core. The parts of the snapshot that the core does not know keep their
/// defaults. On an agent thread. `policy` gives the policy in force and a guard that keeps it in force;
/// the guard and the directory's lock are held for one short step.
pub fn read<G>(core: &Core, policy: impl FnOnce() -> (G, PolicyStatus)) -> Taken {
    read_accounts(core, None, policy).taken(core)
}

/// As [`read`]; classes also have what they hold by cohort, cut at these marks. Their live bytes, and those
/// of the accounts, are the sums over the cohorts. Also returns the cohorts that there are.
pub fn read_with_cohorts<G>(
    core: &Core,
    cuts: Vec<Mark>,
    policy: impl FnOnce() -> (G, PolicyStatus),
) -> (Taken, Cohorts) {
    let mut read = read_accounts(core, Some(Cohorts::new(cuts)), policy);
    let cohorts = std::mem::take(&mut read.cohorts);
    (read.taken(core), cohorts)
}

struct Read {
    accounts: Vec<Account>,
    policy: PolicyStatus,
    names: Arc<Names>,
    live_of_purses: HashMap<PurseId, LiveOfPurse>,
    cohorts: Cohorts,
}

impl Read {
    fn taken(self, core: &Core) -> Taken {
        Taken {
            snapshot: snapshot(core, self.accounts, self.policy),
            names: self.names,
            live_of_purses: self.live_of_purses,
        }
    }
}

fn read_accounts<G>(
    core: &Core,
    cohorts: Option<Cohorts>,
    policy: impl FnOnce() -> (G, PolicyStatus),
) -> Read {
    let _timing = events::reading_for_report();
    let counting = core.directory().begin_counting();
    let times = core.holdings.marks();
    let since = core.counted_since.read();
    let counted_of_classes = core.counted_since.read_classes();
    let mut counted = count(
        &core.ledger,
        since,
        counted_of_classes,
        core.heap.used_after_gc_bytes(),
        times,
        cohorts,
    );
    let seen = look(core, &mut counted, counting, policy);
    core.enforcement.drain();
    let mut live_of_purses = live_of_purses(&counted.groups);
    for (purse, live) in &mut live_of_purses {
        let stated = (counted.survivors).live_variance(&core.ledger, &[*purse]);
        live.variance = widened(&core.ledger, stated);
    }
    let mut of_purses = OfPurses::of(&core.ledger, &mut counted);
    let mut live = live(counted.groups, &seen.names);
    let by_cohort = (counted.cohorts.as_ref()).map(|cohorts| by_cohort(cohorts, &seen));
    let limits: HashMap<String, u64> = (seen.accounts.iter())
        .filter_map(|one| Some((one.account.name.clone(), one.account.limit_bytes?)))
        .collect();
    let mut accounts = Vec::new();
    for mut of_account in seen.accounts {
        let found = live.remove(&of_account.name).unwrap_or_default();
        let of_purse = |purse: &PurseId| live_of_purses.get(purse).map_or(0, |live| live.bytes);
        of_account.account.left_behind_bytes = of_account.left.iter().map(of_purse).sum();
        if let Some(tree) = &mut of_account.account.tree {
            let bytes: u64 = of_account.tree.iter().map(of_purse).sum();
            tree.live_bytes = bytes.min(tree.charged_bytes);
        }
        let mut account = row(
            &core.enforcement,
            of_account,
            found,
            &mut of_purses,
            &seen.classes,
        );
        set_sample_shares(core, &mut account, &seen.thin, &limits);
        if let Some(by_cohort) = &by_cohort {
            let cuts = counted.cohorts.as_ref().map_or(&[][..], Cohorts::cuts);
            set_cohorts(&core.ledger, &mut account, by_cohort, cuts);
        }
        accounts.push(account);
    }
    Read {
        accounts,
        policy: seen.policy,
        names: seen.names,
        live_of_purses,
        cohorts: counted.cohorts.unwrap_or_default(),
    }
}

/// Sets which share of the samples of each class is kept, as the rules of the policy and the limits of the
/// account and of the service around it allow.
fn set_sample_shares(
    core: &Core,
    account: &mut Account,
    rules: &[Thin],
    limits: &HashMap<String, u64>,
) {
    if rules.is_empty() {
        return;
    }
    let bounds = [&account.name, &account.parent].map(|name| limits.get(name).copied());
    let widest = widest_bytes(bounds.into_iter().flatten());
    for class in &mut account.classes {
        let rule = thin_rule(rules, &class.class);
        class.sample_share = rule.and_then(|rule| core.class_thinning.share(rule, widest));
    }
}

/// Live sums by account, class and place among the cuts.
type ByCohort = HashMap<Arc<str>, BTreeMap<Arc<str>, BTreeMap<usize, Sum>>>;

fn by_cohort(cohorts: &Cohorts, seen: &Seen) -> ByCohort {
    let unaccounted: Arc<str> = UNACCOUNTED.into();
    let unknown: Arc<str> = UNKNOWN.into();
    let mut by_cohort = ByCohort::new();
    for (payer, class, cut, sum) in cohorts.sums() {
        let account = seen.names.get(&payer).unwrap_or(&unaccounted).clone();
        let class = seen.classes.get(&class).unwrap_or(&unknown).clone();
        let of_class = by_cohort
            .entry(account)
            .or_default()
            .entry(class)
            .or_default();
        *of_class.entry(cut).or_default() += sum;
    }
    by_cohort
}

/// Sets what the classes of an account hold by cohort. A class that is not listed is part of the last one,
/// the sum of the rest.
fn set_cohorts(ledger: &Ledger, account: &mut Account, by_cohort: &ByCohort, cuts: &[Mark]) {
    let mut live = Sum::default();
    let mut rest: BTreeMap<usize, Sum> = BTreeMap::new();
    let none = BTreeMap::new();
    let classes = by_cohort.get(account.name.as_str()).unwrap_or(&none);
    let listed: HashMap<&str, usize> = (account.classes.iter().enumerate())
        .map(|(at, class)| (class.class.as_str(), at))
        .collect();
    let mut of_listed = vec![BTreeMap::new(); account.classes.len()];
    for (class, cohorts) in classes {
        for (cut, sum) in cohorts {
            live += *sum;
            let of_class = match listed.get(&**class) {
                Some(&at) => &mut of_listed[at],
                None => &mut rest,
            };
            *of_class.entry(*cut).or_default() += *sum;
        }
    }
    drop(listed);
    if !rest.is_empty() {
        // The two passes over the names agree, so the rest has a row already; if not, it gets one.
        match account
            .classes
            .iter()
            .position(|class| class.class == OTHER)
        {
            Some(at) => of_listed[at] = rest,
            None => {
                let class = OTHER.to_owned();
                account.classes.push(Class {
                    class,
                    ..Class::default()
                });
                of_listed.push(rest);
            }
        }
    }
    for (class, cohorts) in account.classes.iter_mut().zip(of_listed) {
        let mut all = Sum::default();
        cohorts.values().for_each(|sum| all += *sum);
        class.live_bytes = all.live.bytes;
        class.live_standard_error_bytes = stated_error_bytes(widened(ledger, all.live.variance));
        class.live_objects = all.live.objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT;
        let held = cohorts.into_iter().map(|(cut, sum)| Held {
            upto: cuts[cut].epoch,
            sum,
        });
        class.cohorts = held.collect();
    }
    account.live_bytes = live.live.bytes;
    account.live_objects = live.live.objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT;
}

// ---- the second step ---------------------------------------------------------------

/// The state of the directory at one moment: accounts, policy and names.
struct Seen {
    accounts: Vec<SeenAccount>,
    /// The rules for classes of the policy in force.
    thin: Vec<Thin>,
    policy: PolicyStatus,
    names: Arc<Names>,
    classes: HashMap<u32, Arc<str>>,
}

struct SeenAccount {
    name: Arc<str>,
    /// Filled from the directory and the totals of the purses.
    account: Account,
    purses: Vec<PurseId>,
    /// Its purses and those of the scopes inside it; empty if it has no scopes.
    tree: Vec<PurseId>,
    /// Those of its purses whose loader is gone.
    left: Vec<PurseId>,
}

fn look<G>(
    core: &Core,
    counted: &mut Counted,
    counting: Counting,
    policy: impl FnOnce() -> (G, PolicyStatus),
) -> Seen {
    let (_unchanging, published) = policy();
    let mut directory = core.directory();
    counted.forget(&directory.end_counting(counting));
    let class_name = |class| Some((class, directory.class_name(ClassId(class))?));
    let known = counted
        .classes()
        .into_iter()
        .filter(|&c| c != UNKNOWN_CLASS);
    let classes = known.filter_map(class_name).collect();
    let policy = directory.policy().clone();
    let usage = core.usage();
    let accounts = directory.accounts().map(|(name, entry)| {
        let mut account = Account {
            name: name.to_string(),
            kind: entry.kind,
            service: entry.service.clone(),
            parent: (directory.parent(entry)).map_or_else(String::new, |p| p.to_string()),
            tree: tree(&core.ledger, entry, &counted.survivors),
            ..Account::default()
        };
        let mut purses: Vec<PurseId> = entry.purses.iter().copied().collect();
        if &**name == UNACCOUNTED {
            // A purse that was opened a moment ago has no owner until that is entered.
            purses.extend(open_purses(&core.ledger).filter(|&purse| !directory.is_owned(purse)));
        }
        let mut totals = Totals::default();
        for &purse in &purses {
            let of_purse = core.ledger.totals(purse);
            totals.charged.bytes = (totals.charged.bytes).saturating_add(of_purse.charged.bytes);
            totals.allocated_bytes = totals
                .allocated_bytes
                .wrapping_add(of_purse.allocated_bytes);
            totals.allocated_objects =
                (totals.allocated_objects).wrapping_add(of_purse.allocated_objects);
            totals.exact += of_purse.exact;
        }
        let departed = directory.departed(name);
        account.charged_bytes = totals.charged.bytes;
        let uncertainty = counted.survivors.uncertainty(&core.ledger, &purses);
        account.standard_error_bytes = uncertainty.charged_error_bytes;
        account.live_standard_error_bytes = uncertainty.live_error_bytes;
        account.live_at_most_bytes = uncertainty.live_at_most_bytes;
        account.live_by_ratio = counted.since.as_ref().and_then(|since| {
            let live = counted.survivors.live(&purses);
            since.live_by_ratio(&core.ledger, &purses, &live, &uncertainty)
        });
        account.allocated_bytes_total =
            (departed.allocated_bytes).wrapping_add(totals.allocated_bytes);
        account.allocated_objects_total =
            (departed.allocated_objects).wrapping_add(totals.allocated_objects);
        let mut exact = departed.exact;
        exact += totals.exact;
        let exact = core.exact.counts_accounts().then_some(exact);
        account.exact_allocated_bytes_total = exact.map(|exact| exact.bytes);
        account.exact_allocated_objects_total = exact.map(|exact| exact.objects);
        account.retired_loaders =
            directory.retired_loaders(entry, |purse| core.ledger.totals(purse).charged.bytes > 0);
        account.usage = usage.of(&purses);
        account.usage.retain(|usage| has(entry.kind, usage));
        if let Some(limit) = usage.direct_limit(name) {
            account.direct_limit_bytes = Some(limit.limit_bytes);
            account.direct_refusals_total = Some(limit.refusals_total);
            account.direct_would_refuse_total = Some(limit.would_refuse_total);
            account.direct_deferred_total = Some(limit.deferred_total);
            account.wait_milliseconds_total = limit.waited_ms;
        }
        account.threads_left_behind = usage.count_left_behind(&purses);
        account.left_threads = usage.left_threads(&purses);
        account.routes = routes(core, &purses, &counted.survivors);
        let rule = entry.rule.and_then(|index| policy.accounts.get(index));
        // A library has no charges of its own to limit.
        if let Some(rule) = rule.filter(|_| entry.kind != Kind::Library) {
            account.soft_limit_bytes = rule.soft_limit.resolve(core.heap.max_bytes());
            account.limit_bytes = rule.limit.resolve(core.heap.max_bytes());
        }
        SeenAccount {
            name: name.clone(),
            tree: (account.tree.iter()).flat_map(|_| entry.tree()).collect(),
            left: directory.left_purses(entry).collect(),
            account,
            purses,
        }
    });
    Seen {
        accounts: accounts.collect(),
        thin: policy.sampling.thin.clone(),
        policy: published,
        classes,
        names: directory.names(),
    }
}

/// Whether an account of this kind is shown with the resource: others pay for the code of a library, and no thread is
/// a scope's for its whole life.
fn has(kind: Kind, usage: &Usage) -> bool {
    let is_threads = usage.resource == Resource::Threads;
    match kind {
        // Blocks of before a policy made it one are still its own.
        Kind::Library => !is_threads && usage.used > 0,
        Kind::Scope => !is_threads,
        _ => true,
    }
}

/// The routes of these purses, by name: several versions of a service are one.
fn routes(core: &Core, purses: &[PurseId], survivors: &Survivors) -> Vec<Route> {
    let mut by_name: BTreeMap<String, (Route, Vec<PurseId>)> = BTreeMap::new();
    let mut most_calls: HashMap<String, u64> = HashMap::new();
    for (purse, row) in core.enforcement.routes.rows(purses) {
        let (route, of_route) = by_name.entry(row.route.clone()).or_default();
        route.calls_total += row.calls.saturating_sub(row.refused);
        route.refused_total += row.refused;
        let most = most_calls.entry(row.route).or_default();
        if row.price.calls >= *most {
            *most = row.price.calls;
            route.kept_bytes = row.price.kept_bytes;
            route.allocated_bytes = row.price.allocated_bytes;
            route.peak_bytes = row.price.peak_bytes;
        }
        of_route.push(purse);
    }
    let mut routes: Vec<Route> = (by_name.into_iter())
        .map(|(name, (mut route, purses))| {
            route.route = name;
            route.live_bytes = survivors.live(&purses).bytes;
            let uncertainty = survivors.uncertainty(&core.ledger, &purses);
            route.standard_error_bytes = uncertainty.live_error_bytes as u64;
            route
        })
        .collect();
    routes.sort_by_key(|route| std::cmp::Reverse(route.live_bytes));
    routes
}

/// The charges of a service with the scopes inside it.
fn tree(ledger: &Ledger, entry: &directory::Account, survivors: &Survivors) -> Option<Tree> {
    if entry.beneath.is_empty() {
        return None;
    }
    let purses: Vec<PurseId> = entry.tree().collect();
    let uncertainty = survivors.uncertainty(ledger, &purses);
    let charged_bytes = purses.iter().fold(0u64, |sum, &purse| {
        sum.saturating_add(ledger.totals(purse).charged.bytes)
    });
    Some(Tree {
        live_standard_error_bytes: uncertainty.live_error_bytes,
        live_at_most_bytes: uncertainty.live_at_most_bytes,
        charged_bytes,
        standard_error_bytes: uncertainty.charged_error_bytes,
        ..Tree::default()
    })
}

// ---- the third step ----------------------------------------------------------------

/// The live part of an account.
#[derive(Default)]
struct Live {
    bytes: u64,
    /// In units of 2^-16.
    objects: u64,
    principals: BTreeMap<Arc<str>, u64>,
}

fn live_of_purses(groups: &HashMap<Group, (u64, u64)>) -> HashMap<PurseId, LiveOfPurse> {
    let mut of_purses: HashMap<PurseId, LiveOfPurse> = HashMap::new();
    for (&(payer, ..), &(bytes, units)) in groups {
        let live = of_purses.entry(payer).or_default();
        live.bytes = live.bytes.saturating_add(bytes);
        live.units = live.units.saturating_add(units);
    }
    of_purses
}

/// Live bytes and objects by the account that pays and, for the matrix, by agent account and principal.
fn live(groups: HashMap<Group, (u64, u64)>, names: &Names) -> HashMap<Arc<str>, Live> {
    let unaccounted: Arc<str> = UNACCOUNTED.into();
    let name = |purse| names.get(&purse).unwrap_or(&unaccounted).clone();
    let mut live: HashMap<Arc<str>, Live> = HashMap::new();
    for ((payer, agent_account, principal), (bytes, objects)) in groups {
        let entry = live.entry(name(payer)).or_default();
        entry.bytes += bytes;
        entry.objects += objects;
        // The matrix belongs to the agent account: what its code allocated, and for whom.
        let entry = live.entry(name(agent_account)).or_default();
        *entry.principals.entry(name(principal)).or_default() += bytes;
    }
    live
}

fn row(
    enforcement: &Enforcement,
    seen: SeenAccount,
    found: Live,
    of_purses: &mut OfPurses,
    names: &HashMap<u32, Arc<str>>,
) -> Account {
    let account = seen.account;
    let mut principals: Vec<Principal> = (found.principals.into_iter())
        .map(|(name, live_bytes)| Principal {
            name: name.to_string(),
            live_bytes,
        })
        .collect();
    principals.sort_by_key(|p| std::cmp::Reverse(p.live_bytes));
    let status = enforcement.status(&seen.name);
    // In full: a figure that nothing fills is a compile error.
    Account {
        name: account.name,
        kind: account.kind,
        service: account.service,
        parent: account.parent,
        tree: account.tree,
        // The steps do not see the same instant, so live bytes could exceed the charge.
        live_bytes: found.bytes.min(account.charged_bytes),
        live_standard_error_bytes: account.live_standard_error_bytes,
        live_at_most_bytes: account.live_at_most_bytes,
        charged_bytes: account.charged_bytes,
        standard_error_bytes: account.standard_error_bytes,
        live_objects: whole_objects(found.objects),
        allocated_bytes_total: account.allocated_bytes_total,
        allocated_objects_total: account.allocated_objects_total,
        exact_allocated_bytes_total: account.exact_allocated_bytes_total,
        exact_allocated_objects_total: account.exact_allocated_objects_total,
        live_by_ratio: account.live_by_ratio,
        soft_limit_bytes: account.soft_limit_bytes,
        limit_bytes: account.limit_bytes,
        reserve_bytes: status.reserve_bytes,
        direct_limit_bytes: account.direct_limit_bytes,
        direct_refusals_total: account.direct_refusals_total,
        direct_would_refuse_total: account.direct_would_refuse_total,
        direct_deferred_total: account.direct_deferred_total,
        // After a reload the limit may be gone before the enforcer's next pass.
        state: match account.limit_bytes {
            Some(_) => status.state,
            None => State::Open,
        },
        door: status.door,
        soft_limit_events_total: status.soft_events,
        refusals_total: status.counts.refusals,
        would_refuse_total: status.counts.would_refuse,
        admission_refusals_total: status.counts.admission_refusals,
        threads_killed_total: status.counts.threads_killed,
        // For the heap's limit, and for that on native memory.
        wait_milliseconds_total: (status.counts.waited_ms)
            .saturating_add(account.wait_milliseconds_total),
        deferred: Reason::ALL
            .iter()
            .map(|reason| (reason.name(), status.counts.deferred[*reason as usize]))
            .filter(|(_, count)| *count > 0)
            .collect(),
        ineffective: status.ineffective.map(|found| Ineffective {
            reason: found.reason.name(),
            frame: found.frame.map(|frame| frame.to_string()),
        }),
        places: status.places.into_iter().map(place).collect(),
        places_elsewhere: status.places_elsewhere,
        routes: account.routes,
        retired_loaders: account.retired_loaders,
        left_behind_bytes: account.left_behind_bytes,
        threads_left_behind: account.threads_left_behind,
        left_threads: account.left_threads,
        usage: account.usage,
        principals,
        classes: of_purses.take(&seen.purses, names),
    }
}

fn place(found: RefusedPlace) -> Place {
    let name = found.name;
    Place {
        frame: name.frame.shown(),
        entry: name.entry.shown(),
        thread: name.work.as_str(),
        unit: (name.unit).map_or_else(|| OF_SCOPE.to_owned(), |unit| unit.shown()),
        count: found.count,
        never_interrupt: found.never_interrupt,
    }
}

fn snapshot(core: &Core, accounts: Vec<Account>, policy: PolicyStatus) -> Snapshot {
    let dropped: Vec<(&'static str, u64)> = DropReason::ALL
        .iter()
        .map(|&reason| (reason.name(), core.ledger.dropped(reason)))
        .collect();
    let all_dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
    let stacks = core.sites.counts();
    Snapshot {
        heap: Heap {
            used_after_gc_bytes: core.heap.used_after_gc_bytes(),
            max_bytes: core.heap.max_bytes(),
            gc_epoch: u64::from(core.ledger.epochs().current().get()),
            live_gc_epoch: (core.ledger.epochs().boundary())
                .map_or(0, |epoch| u64::from(epoch.get())),
            accounts: accounts_sum(core),
            ..Heap::default()
        },
        sampling: Sampling {
            interval_bytes: {
                let intervals = core.ledger.intervals();
                intervals.bytes(intervals.current())
            },
            samples: core.ledger.samples_total().saturating_sub(all_dropped),
            dropped,
            thinned: core.thinning.passed_over(),
            thinned_by_class: core.class_thinning.passed_over(),
            error_factor: core.first_draws.error_factor(core.ledger.samples_total()),
            ..Sampling::default()
        },
        policy,
        accounts,
        exact: core.exact.status(),
        scope_misuses: core.identity.scopes.misuses(),
        leaks: core.leaks.report(),
        evidence: core.evidence.read(),
        stacks: stacks.taken,
        stacks_skipped: (Skip::ALL.iter())
            .map(|&why| (why.name(), stacks.skipped[why as usize]))
            .collect(),
        memory_bytes: memory_bytes(core),
        unentered_blocks: core.native_memory.unentered_blocks(),
        assumed_blocks: core.native_memory.assumed_blocks(),
        ..Snapshot::default()
    }
}

fn accounts_sum(core: &Core) -> Option<AccountsSum> {
    let judged = core.accounts_sum.read();
    judged.latest().map(|reading| AccountsSum {
        reading,
        exceeds: judged.stands(),
        error_factor: judged.error_factor(),
    })
}

/// Native bytes held by each part.
fn memory_bytes(core: &Core) -> Vec<(&'static str, u64)> {
    vec![
        ("ledger", core.ledger.committed_bytes()),
        ("identity", core.identity.committed_bytes()),
        ("names", core.directory().estimated_bytes()),
        ("holdings", core.holdings.committed_bytes()),
        ("leaks", core.leaks.committed_bytes()),
        (
            "enforcement",
            core.enforcement.committed_bytes() + core.throw_points.methods.committed_bytes(),
        ),
        ("sites", core.sites.committed_bytes()),
        ("native_memory", core.native_memory.committed_bytes()),
    ]
}

#[cfg(test)]
mod tests;
