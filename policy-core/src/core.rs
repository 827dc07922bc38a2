//! The shared state of one JVM's accounts, for the agent's threads and allocating threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::counted_since::CountedSince;
use crate::enforce::evidence_log::EvidenceLog;
use crate::enforce::gate::Gate;
use crate::enforce::throw_points::ThrowPoints;
use crate::enforce::{Enforcement, TestRefuse};
use crate::exact::ExactCounting;
use crate::holdings::Holdings;
use crate::identity::Identity;
use crate::identity::classes::ClassId;
use crate::identity::directory::Directory;
use crate::interval_control::IntervalControl;
use crate::leaks::Leaks;
use crate::ledger::{Capacity, Ledger, PurseId, Tag};
use crate::native_memory::gates::Verdict;
use crate::native_memory::{NativeMemory, Way};
use crate::peaks::Peaks;
use crate::ports::Heap;
use crate::sampling::class_thinning::{ClassThinning, widest_bytes};
use crate::sampling::first_draws::FirstDraws;
use crate::sampling::new_threads::NewThreads;
use crate::sampling::thinning::Thinning;
use crate::sites::Sites;
use crate::sum_against_heap::SumAgainstHeap;
use crate::usage::{self, Resource, Usages};
use crate::wakeup::Wakeup;

/// The largest number of purses, the reserved one included: as many as there are purse ids.
const MAX_PURSES: u32 = 1 << 16;

/// The shared state. Made once, at the start of the agent. Each field says what it holds; locks are
/// never taken on an allocating thread.
pub struct Core {
    /// The charges: records of sampled objects, and sums per purse.
    pub ledger: Ledger,
    /// Which class, loader or scope belongs to which purse.
    pub identity: Identity,
    directory: Mutex<Directory>,
    /// The enforcement of limits.
    pub enforcement: Enforcement,
    /// Where a throw is safe.
    pub throw_points: ThrowPoints,
    /// How many collections the agent has asked for.
    pub evidence: EvidenceLog,
    /// The sampling interval.
    pub interval_control: IntervalControl,
    /// Fewer samples of large arrays.
    pub thinning: Thinning,
    /// Fewer samples of classes that the policy names.
    pub class_thinning: ClassThinning,
    /// How samples come by chance beside many new threads.
    pub new_threads: NewThreads,
    /// The first samples of threads, which do not come by chance.
    pub first_draws: FirstDraws,
    /// Where survivors were allocated, for what somebody wants to know about.
    pub sites: Sites,
    /// The highest live bytes of purses that a test watches.
    pub peaks: Peaks,
    /// The holdings of each account, by class, age and size.
    pub holdings: Holdings,
    /// The state of the leak detection.
    pub leaks: Leaks,
    /// Whether inserted code counts allocations.
    pub exact: ExactCounting,
    /// Its counts of each purse since it was switched on.
    pub counted_since: CountedSince,
    /// The heap at the latest collection.
    pub heap: HeapUse,
    /// Whether the accounts sum up to more than the heap holds.
    pub accounts_sum: SumAgainstHeap,
    /// Resources that accounts use beside the heap.
    pub usages: Usages,
    /// Blocks of native memory, and who pays for them.
    pub native_memory: NativeMemory,
    /// Wakes the thread that enforces limits.
    pub enforcer: Wakeup,
    /// For tests only: refuse without evidence.
    pub test_refuse: Option<TestRefuse>,
    samples_are_taken: bool,
    has_failed: AtomicBool,
}

/// The settings that a core is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The largest number of sampled objects that are tracked at once.
    pub max_tracked: u32,
    /// Whether the VM samples allocations and reports deaths.
    pub samples_are_taken: bool,
    /// For tests only.
    pub test_refuse: Option<TestRefuse>,
}

#[cfg(test)]
impl Setup {
    /// Of a core that tracks so many objects.
    pub(crate) fn of_test(max_tracked: u32) -> Setup {
        Setup {
            max_tracked,
            samples_are_taken: true,
            test_refuse: None,
        }
    }
}

impl Core {
    /// A core without charges or accounts.
    #[must_use]
    pub fn new(setup: Setup) -> Core {
        Core::with_purses(setup, MAX_PURSES)
    }

    pub(crate) fn with_purses(setup: Setup, purses: u32) -> Core {
        Core {
            ledger: Ledger::new(Capacity {
                records: setup.max_tracked,
                purses,
            }),
            identity: Identity::new(),
            directory: Mutex::new(Directory::new(Arc::default())),
            enforcement: Enforcement::new(),
            throw_points: ThrowPoints::new(),
            evidence: EvidenceLog::default(),
            interval_control: IntervalControl::default(),
            thinning: Thinning::default(),
            class_thinning: ClassThinning::default(),
            new_threads: NewThreads::default(),
            first_draws: FirstDraws::default(),
            sites: Sites::new(),
            peaks: Peaks::new(),
            holdings: Holdings::default(),
            leaks: Leaks::default(),
            exact: ExactCounting::default(),
            counted_since: CountedSince::default(),
            heap: HeapUse::default(),
            accounts_sum: SumAgainstHeap::default(),
            usages: Usages::default(),
            native_memory: NativeMemory::default(),
            enforcer: Wakeup::default(),
            test_refuse: setup.test_refuse,
            samples_are_taken: setup.samples_are_taken,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Locks the directory, which holds the names. Never on an allocating thread.
    pub fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// As [`Core::directory`]; `None` while another thread holds the lock.
    #[cfg(test)]
    pub(crate) fn try_directory(&self) -> Option<MutexGuard<'_, Directory>> {
        self.directory.try_lock().ok()
    }

    /// Enters the name of a class, and which rule thins its samples. The metadata thread.
    pub fn name_class(&self, class: ClassId, name: String) {
        let mut directory = self.directory();
        let rule = policy_config::thin_rule(&directory.policy().sampling.thin, &name);
        directory.name_class(class, name);
        self.identity.classes.set_thinned_by(class, rule);
    }

    /// Finds the rule that thins each class anew, for the policy that the directory has. The metadata thread.
    pub fn find_thinned_classes(&self) {
        let directory = self.directory();
        let rules = &directory.policy().sampling.thin;
        for class in self.identity.classes.all() {
            let name = directory.class_name(class);
            let rule = name.and_then(|name| policy_config::thin_rule(rules, &name));
            self.identity.classes.set_thinned_by(class, rule);
        }
    }

    /// The widest interval under which samples may be kept that are charged to `payer`: its account's limit,
    /// and that of the service around its scope, allow no wider one. Some loads; any thread.
    #[must_use]
    pub fn widest_interval_bytes(&self, payer: PurseId) -> u64 {
        let account = self.identity.representative(payer);
        let service = self.identity.above(payer);
        let gates = [Some(account), service.map(|purse| u32::from(purse.get()))];
        let gates = gates.into_iter().flatten();
        widest_bytes(gates.filter_map(|number| self.enforcement.gates.get(number)?.limit_at_rest()))
    }

    /// The use that accounts make of resources beside the heap, as it is now. Not on an allocating thread.
    pub fn usage(&self) -> usage::Reading {
        if self.native_memory.is_seen() {
            let ways = [
                (Resource::Direct, Way::Direct),
                (Resource::Native, Way::Unsafe),
            ];
            for (resource, way) in ways {
                self.usages.counted(resource, self.native_memory.used(way));
            }
        }
        self.usages.read()
    }

    /// The fate of a block of native memory for `payer`, by the limit of its account and that of the service around its
    /// scope, with the number of the account whose limit says so. `None`: it is given. One load while no account is over
    /// such a limit; no lock. Any thread.
    pub fn block_beyond(&self, payer: PurseId, size_bytes: u64) -> Option<(u32, Verdict)> {
        let gates = &self.native_memory.gates;
        if !gates.is_any_judged() {
            return None;
        }
        let account = self.identity.representative(payer);
        let service = (self.identity.above(payer)).map(|purse| u32::from(purse.get()));
        let used = |purse| self.native_memory.used_by(purse);
        let accounts = [Some(account), service].into_iter().flatten();
        let verdicts = accounts.map(|account| (account, gates.ask(account, size_bytes, used)));
        let beyond = verdicts.filter(|(_, verdict)| *verdict != Verdict::Given);
        beyond.max_by_key(|(_, verdict)| *verdict)
    }

    /// Whether allocations are sampled at all.
    #[must_use]
    pub fn samples_are_taken(&self) -> bool {
        self.samples_are_taken
    }

    /// Whether the account of `payer`, or that of the service around its scope, is over its limit and
    /// refused. Some loads, no lock. Any thread.
    #[must_use]
    pub fn refuses(&self, payer: PurseId) -> bool {
        self.refuser(payer).is_some()
    }

    /// The account that [`Core::refuses`] means, as a purse of it. If both are over their limits, it is the
    /// service: it is the wider one. Some loads, no lock. Any thread.
    #[must_use]
    pub fn refuser(&self, payer: PurseId) -> Option<PurseId> {
        let is_refused = |purse: &PurseId| {
            let account = self.identity.representative(*purse);
            let gate = self.enforcement.gates.get(account);
            gate.is_some_and(Gate::refuses)
        };
        let accounts = [self.identity.above(payer), Some(payer)];
        accounts.into_iter().flatten().find(is_refused)
    }

    /// To be called when a thread of the agent has failed: nobody is refused from now on. Otherwise a
    /// verdict would stand for ever, and an edit of the policy would have no effect. Any thread.
    pub fn fail_open(&self) {
        self.has_failed.store(true, Ordering::Release);
        self.enforcer.wake();
    }

    /// Whether [`Core::fail_open`] was called.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Begins a new epoch, at the end of a collection's pause. Inside the pause: atomics and one futex
    /// call.
    pub fn collection_finished(&self) {
        let epoch = self.ledger.epochs().gc_finished();
        self.enforcement.gates.begin(epoch);
        self.enforcer.wake();
    }

    /// Handles the death of an object with this tag. Atomics and, for a canary, one futex call. On the
    /// VM thread that reports deaths.
    pub fn freed(&self, tag: i64) {
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
                self.enforcer.wake();
            }
            Some(Tag::OldCanary(epoch)) => {
                self.ledger.epochs().old_died(epoch);
                self.enforcer.wake();
            }
            Some(Tag::Thread(_)) | None => {}
        }
    }
}

/// How much of the heap the latest collection left in use. Any thread.
#[derive(Debug, Default)]
pub struct HeapUse {
    used_after_gc_bytes: AtomicU64,
    max_bytes: AtomicU64,
}

impl HeapUse {
    /// Sets the maximum heap (`-Xmx`), as the VM reports it at the start.
    pub fn set_max_bytes(&self, bytes: u64) {
        self.max_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The maximum heap in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that the latest collection left in use.
    #[must_use]
    pub fn used_after_gc_bytes(&self) -> u64 {
        self.used_after_gc_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the maximum heap that the latest collection left free.
    #[must_use]
    pub fn free_after_gc_bytes(&self) -> u64 {
        self.max_bytes().saturating_sub(self.used_after_gc_bytes())
    }

    /// Bytes free now, garbage counted as used; 0 if the VM does not report it.
    pub fn free_bytes(&self, heap: &(impl Heap + ?Sized)) -> u64 {
        heap.used_bytes()
            .map_or(0, |used| self.max_bytes().saturating_sub(used))
    }

    /// Reads how much is in use, just after a pause. Returns the free bytes; 0 if the VM does not
    /// report it.
    pub fn read_after_pause(&self, heap: &(impl Heap + ?Sized)) -> u64 {
        let Some(used) = heap.used_bytes() else {
            return 0;
        };
        self.used_after_gc_bytes.store(used, Ordering::Relaxed);
        self.max_bytes().saturating_sub(used)
    }

    /// Reads it again when a collection is complete: a concurrent collection still frees memory after
    /// its last pause, so the smaller reading is the better one.
    pub fn read_after_cycle(&self, heap: &(impl Heap + ?Sized)) {
        if let Some(used) = heap.used_bytes() {
            self.used_after_gc_bytes.fetch_min(used, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::enforce::gate::Word;

    #[test]
    fn an_account_refuses_while_it_or_the_service_around_it_is_over() {
        let core = Core::new(Setup::of_test(64));
        let purse = || core.ledger.open_purse().expect("there is room");
        let (service, tenant, other) = (purse(), purse(), purse());
        for purse in [service, tenant, other] {
            core.identity.set_representative(purse, purse);
        }
        core.identity.set_above(tenant, Some(service));
        let set = |purse: PurseId, over, enforced| {
            let gate = core.enforcement.gates.make(u32::from(purse.get()));
            gate.expect("there is room").set_word(Word {
                limited: true,
                over,
                enforced,
                naive: false,
                shut: false,
                duress: false,
            });
        };
        let refuses = || [service, tenant, other].map(|purse| core.refuses(purse));
        assert_eq!(refuses(), [false; 3]);
        set(service, true, true);
        assert_eq!(refuses(), [true, true, false]);
        set(service, true, false);
        assert_eq!(refuses(), [false; 3], "it is only observed");
        set(service, false, true);
        set(tenant, true, true);
        assert_eq!(refuses(), [false, true, false]);
    }
}
