//! Judged methods: what is known of each method that was on the stack of a due charge.
//!
//! An allocating thread looks up no name. It asks the metadata thread for a method that it does not
//! know, and its refusal waits. The metadata thread inspects the method and publishes the result here,
//! in a table that is read without a lock. Method ids are not reused (see
//! [`crate::identity::method_classes`]), so an entry for an unloaded method only takes room. The
//! table starts over when it is full or old. It can get out of date, because code can be replaced
//! while it runs (JVM TI RedefineClasses), and then the bytecode indexes in it are wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};

use super::bytecode::Code;
use super::exceptions::{Payer, Said};
use super::judge::{MethodRule, Unit};
use super::units::Begun;

/// The largest number of methods in the table, and the largest size of their entries.
const MAX_METHODS: usize = 48 * 1024;
const MAX_BYTES: usize = 16 << 20;
/// After so long the table starts over.
const LONGEST_AGE: Duration = Duration::from_secs(600);
const FIRST_SLOTS: usize = 1024;
/// Slots that remember which methods were asked for, so that each is asked for only once.
const ASKED_SLOTS: usize = 4096;

/// A method as the VM numbers it while its class is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodKey(pub usize);

/// For each error that a refusal may throw: which class a loader has loaded under that name, as a
/// number that only its maker understands; 0 for none.
pub type Meant = [u32; 3];

/// An entry of the table: a method, its rules, and the properties of its code.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    /// The method.
    pub method: MethodKey,
    /// The rule for every account.
    pub rule: MethodRule,
    /// Whether a unit of work begins with it, for every account, and what its thread does.
    pub begun: Begun,
    /// Whether it is the loop of a thread that serves many.
    pub is_event_loop: bool,
    /// Whether it only passes calls on to the code that does the work.
    pub passes_on: bool,
    /// The exceptions of single accounts.
    pub said: Said,
    /// Whether it is a native method.
    pub native: bool,
    /// Its handlers and allocation sites.
    pub code: Code,
    /// Which classes its code refers to by the names of the errors.
    pub meant: Meant,
}

impl Judged {
    /// The rule for this payer; `None` if the entry belongs to an older policy and must be found out
    /// again.
    pub fn rule_for(&self, payer: Payer) -> Option<MethodRule> {
        self.said.rule(self.rule, payer, self.native)
    }

    /// Whether a unit of work of this payer begins with it. Only for an entry of the policy in force.
    pub fn unit_for(&self, payer: Payer) -> Unit {
        let known = match self.begun.is_task && !payer.interrupts_tasks {
            true => Unit::None,
            false => self.begun.unit,
        };
        match self.said.is_work(payer) {
            true => known.max(Unit::Begins),
            false => known,
        }
    }

    /// Whether a unit of work of this payer begins with it by the policy alone. Only for an entry of the policy
    /// in force.
    pub fn is_unit_by_policy(&self, payer: Payer) -> bool {
        self.begun.unit == Unit::None && self.said.is_work(payer)
    }

    /// Whether what runs in it has come through a door of this payer at a method, or is its work by the policy.
    /// Only for an entry of the policy in force.
    pub fn is_entrance_for(&self, payer: Payer) -> bool {
        self.said.is_entrance(payer)
    }

    fn bytes(&self) -> usize {
        size_of::<Judged>() + self.code.heap_bytes() + self.said.heap_bytes()
    }
}

/// A table of methods with open addressing; slots are written once.
pub struct Table {
    slots: Box<[OnceLock<Arc<Judged>>]>,
}

impl Table {
    fn new(slots: usize) -> Table {
        Table {
            slots: (0..slots).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The slots in which the method may be, the likeliest first. One of them is always empty.
    fn probe(&self, method: MethodKey) -> impl Iterator<Item = &OnceLock<Arc<Judged>>> {
        let mask = self.slots.len() - 1;
        (hash(method)..).map(move |index| &self.slots[index & mask])
    }

    /// Returns the entry of a method; `None` if the table has none. Lock-free, any thread. Each slot is read only once,
    /// because an empty one may hold another method a moment later.
    pub fn get(&self, method: MethodKey) -> Option<&Judged> {
        for slot in self.probe(method) {
            let judged = slot.get()?;
            if judged.method == method {
                return Some(judged);
            }
        }
        None
    }

    /// Adds a method that is not in the table. Only for the metadata thread, which keeps one slot
    /// empty.
    fn enter(&self, judged: Arc<Judged>) {
        let empty = self.probe(judged.method).find(|slot| slot.get().is_none());
        let entered = empty.map(|slot| slot.set(judged));
        debug_assert!(matches!(entered, Some(Ok(()))), "one writer, and room");
    }
}

fn hash(method: MethodKey) -> usize {
    // Fibonacci hashing: ids are addresses or serial numbers.
    ((method.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// How full and how old the table is. Only the metadata thread writes it.
struct Usage {
    methods: usize,
    bytes: usize,
    since: Instant,
}

/// The judged methods. Shared by all threads; see the module.
pub struct Methods {
    table: ArcSwap<Table>,
    usage: Mutex<Usage>,
    asked: Box<[AtomicUsize]>,
}

impl Methods {
    /// An empty table.
    pub fn new() -> Methods {
        Methods {
            table: ArcSwap::from_pointee(Table::new(FIRST_SLOTS)),
            usage: Mutex::new(Usage {
                methods: 0,
                bytes: 0,
                since: Instant::now(),
            }),
            asked: (0..ASKED_SLOTS).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// The table as it is now. Lock-free, any thread.
    pub fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    /// Whether the metadata thread should be asked for a method; notes that it was asked. The answer
    /// is not exact: two methods that share a slot may each be asked for more than once. Lock-free.
    pub fn ask(&self, method: MethodKey) -> bool {
        let place = &self.asked[hash(method) % ASKED_SLOTS];
        if place.load(Ordering::Relaxed) == method.0 {
            return false;
        }
        place.store(method.0, Ordering::Relaxed);
        true
    }

    /// The metadata thread could not be asked: the next sample tries again. Lock-free.
    pub fn forget_asking(&self, method: MethodKey) {
        self.asked[hash(method) % ASKED_SLOTS].store(0, Ordering::Relaxed);
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Publishes a method. Only for the metadata thread.
    pub fn publish(&self, judged: Judged) {
        let mut usage = self.usage();
        let mut table = self.table.load_full();
        if table.get(judged.method).is_some() {
            return;
        }
        if usage.methods >= MAX_METHODS || usage.bytes + judged.bytes() > MAX_BYTES {
            self.clear(&mut usage, Instant::now());
            table = self.table.load_full();
        } else if (usage.methods + 1) * 4 > table.slots.len() * 3 {
            let larger = Table::new(table.slots.len() * 2);
            for old in table.slots.iter().filter_map(OnceLock::get) {
                larger.enter(old.clone());
            }
            table = Arc::new(larger);
            self.table.store(table.clone());
        }
        usage.methods += 1;
        usage.bytes += judged.bytes();
        table.enter(Arc::new(judged));
    }

    /// Starts over if the table is old. The metadata thread calls it now and then.
    pub fn refresh(&self, now: Instant) {
        let mut usage = self.usage();
        if usage.methods > 0 && now.saturating_duration_since(usage.since) >= LONGEST_AGE {
            self.clear(&mut usage, now);
        }
    }

    /// Empties the table.
    pub fn start_over(&self) {
        self.clear(&mut self.usage(), Instant::now());
    }

    fn clear(&self, usage: &mut Usage, now: Instant) {
        self.table.store(Arc::new(Table::new(FIRST_SLOTS)));
        *usage = Usage {
            methods: 0,
            bytes: 0,
            since: now,
        };
        // After the table: a thread that misses a method in the new table, but still finds it asked
        // for, asks at its next sample. In the other order nobody would ask again.
        for place in &self.asked {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
        let slots = self.table.load().slots.len() * size_of::<OnceLock<Arc<Judged>>>();
        let asked = ASKED_SLOTS * size_of::<AtomicUsize>();
        (slots + asked + self.usage().bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(number: usize) -> Judged {
        Judged {
            method: MethodKey(number * 8),
            rule: if number.is_multiple_of(3) {
                MethodRule::Transparent
            } else {
                MethodRule::Outside
            },
            begun: Begun::default(),
            is_event_loop: false,
            passes_on: false,
            said: Said::default(),
            native: false,
            code: Code::default(),
            meant: Meant::default(),
        }
    }

    #[test]
    fn a_task_of_a_pool_is_a_unit_of_work_only_where_the_account_says_so() {
        let task = Judged {
            begun: Begun {
                unit: Unit::Shields,
                is_task: true,
                ..Begun::default()
            },
            ..judged(1)
        };
        for (interrupts_tasks, expected) in [(false, Unit::None), (true, Unit::Shields)] {
            let payer = Payer {
                number: None,
                generation: 0,
                interrupts_tasks,
            };
            assert_eq!(task.unit_for(payer), expected);
        }
    }

    #[test]
    fn what_was_published_is_found_and_nothing_else() {
        let methods = Methods::new();
        for number in 1..5000 {
            methods.publish(judged(number));
        }
        methods.publish(judged(7));
        let table = methods.table();
        for number in 1..5000 {
            assert_eq!(table.get(MethodKey(number * 8)), Some(&judged(number)));
            assert_eq!(table.get(MethodKey(number * 8 + 1)), None);
        }
        assert!(methods.committed_bytes() > 5000 * size_of::<Judged>() as u64);
    }

    #[test]
    fn a_full_table_starts_over_and_lets_ask_again() {
        let methods = Methods::new();
        let first = MethodKey(8);
        assert!(methods.ask(first));
        assert!(!methods.ask(first));
        for number in 1..=MAX_METHODS {
            methods.publish(judged(number));
        }
        assert!(methods.table().get(first).is_some());
        let old = methods.table();
        methods.publish(judged(MAX_METHODS + 1));
        assert!(methods.table().get(first).is_none());
        assert!(old.get(first).is_some(), "who reads it still may");
        assert!(
            methods
                .table()
                .get(MethodKey((MAX_METHODS + 1) * 8))
                .is_some()
        );
        assert!(methods.ask(first));
    }

    #[test]
    fn large_methods_do_not_take_all_memory() {
        let methods = Methods::new();
        let mut bytes = vec![0xb8; 60_000];
        bytes.push(0xb1);
        let calls: Vec<u8> = bytes.chunks(3).flat_map(|_| [0xb8, 0, 1]).collect();
        for number in 1..400 {
            methods.publish(Judged {
                code: Code::read(&calls),
                ..judged(number)
            });
            assert!(methods.committed_bytes() < (MAX_BYTES + (1 << 20)) as u64);
        }
    }

    #[test]
    fn an_old_table_starts_over() {
        let methods = Methods::new();
        methods.publish(judged(1));
        methods.refresh(Instant::now());
        assert!(methods.table().get(MethodKey(8)).is_some());
        methods.refresh(Instant::now() + LONGEST_AGE);
        assert!(methods.table().get(MethodKey(8)).is_none());
        methods.publish(judged(1));
        methods.start_over();
        assert!(methods.table().get(MethodKey(8)).is_none());
    }

    #[test]
    fn readers_see_all_or_nothing_while_the_clerk_writes() {
        let methods = Arc::new(Methods::new());
        let readers: Vec<_> = (0..3)
            .map(|seed| {
                let methods = methods.clone();
                std::thread::spawn(move || {
                    let mut found = 0u64;
                    let mut turn = 0usize;
                    // The last table is full: a thread that slept through the others finds it.
                    while turn < 200_000 || found == 0 {
                        turn += 1;
                        let number = (turn * 31 + seed) % 3000 + 1;
                        let table = methods.table();
                        if let Some(one) = table.get(MethodKey(number * 8)) {
                            assert_eq!(*one, judged(number));
                            found += 1;
                        }
                    }
                    found
                })
            })
            .collect();
        for evaluation in 0..20 {
            for number in 1..=3000 {
                methods.publish(judged(number));
            }
            if evaluation < 19 {
                methods.start_over();
            }
        }
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    }
}
