//! Judged methods: what is known of each method that due threads have met.
//!
//! An allocating thread looks up no name. A method that it meets for the first time it leaves
//! to the clerk, and its refusal waits; the clerk studies the method and publishes what it
//! found here, in a table that is read without a lock. Method ids are not used again (see
//! [`crate::identity::methods`]), so what is known of an unloaded method only takes room;
//! a table that is full, or old, starts over. Old, because code can be replaced while it runs
//! (JVM TI RedefineClasses), and then places in it are not what they were.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use crossbeam_queue::ArrayQueue;

use crate::jvm::java::Weak;
use crate::jvm::tools::MethodId;

use super::bytecode::Code;
use super::exceptions::{Payer, Said};
use super::judge::Verdict;

/// Methods that wait for the clerk at the most; a stack is up to 1,024 deep.
const MOST_QUEUED: usize = 2048;
/// Methods remembered at the most, and the bytes of what is remembered of them.
const MOST_METHODS: usize = 48 * 1024;
const MOST_BYTES: usize = 16 << 20;
/// After so long the table starts over.
const LONGEST_AGE: Duration = Duration::from_secs(600);
const FIRST_SLOTS: usize = 1024;
/// What keeps a method from being asked for again and again while it waits.
const ASKED_SLOTS: usize = 4096;

/// A method that a due thread has met, for the clerk to study.
pub(crate) struct NewMethod {
    pub(crate) method: MethodId,
    /// Its declaring class.
    pub(crate) class: Weak,
}

/// What is known of a method.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) method: MethodId,
    /// What holds for every account.
    pub(crate) verdict: Verdict,
    /// What single accounts say.
    pub(crate) said: Said,
    pub(crate) native: bool,
    pub(crate) code: Code,
}

impl Judged {
    /// What holds for this payer; `None` if that has to be found out anew.
    pub(crate) fn verdict_for(&self, payer: Payer) -> Option<Verdict> {
        self.said.verdict(self.verdict, payer, self.native)
    }

    fn bytes(&self) -> usize {
        size_of::<Judged>() + self.code.heap_bytes() + self.said.heap_bytes()
    }
}

/// A table of methods with open addressing; slots are written once.
pub(crate) struct Table {
    slots: Box<[OnceLock<Arc<Judged>>]>,
}

impl Table {
    fn new(slots: usize) -> Table {
        Table {
            slots: (0..slots).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The slots in which the method may be, the likeliest first. There is always an empty one.
    fn probe(&self, method: MethodId) -> impl Iterator<Item = &OnceLock<Arc<Judged>>> {
        let mask = self.slots.len() - 1;
        (hash(method)..).map(move |index| &self.slots[index & mask])
    }

    /// What is known of a method. Lock-free. Each slot is read once: one that was empty may
    /// hold another method a moment later.
    pub(crate) fn get(&self, method: MethodId) -> Option<&Judged> {
        for slot in self.probe(method) {
            let judged = slot.get()?;
            if judged.method == method {
                return Some(judged);
            }
        }
        None
    }

    /// Enters what is not there yet. The clerk alone, which keeps an empty slot.
    fn enter(&self, judged: Arc<Judged>) {
        let empty = self.probe(judged.method).find(|slot| slot.get().is_none());
        let entered = empty.map(|slot| slot.set(judged));
        debug_assert!(matches!(entered, Some(Ok(()))), "one writer, and room");
    }
}

fn hash(method: MethodId) -> usize {
    // Fibonacci hashing: ids are addresses or serial numbers.
    ((method.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// What only the clerk needs.
struct Books {
    methods: usize,
    bytes: usize,
    since: Instant,
}

/// The judged methods. See the module.
pub(crate) struct Methods {
    table: ArcSwap<Table>,
    books: Mutex<Books>,
    asked: Box<[AtomicUsize]>,
    pub(crate) new: ArrayQueue<NewMethod>,
}

impl Methods {
    pub(crate) fn new() -> Methods {
        Methods {
            table: ArcSwap::from_pointee(Table::new(FIRST_SLOTS)),
            books: Mutex::new(Books {
                methods: 0,
                bytes: 0,
                since: Instant::now(),
            }),
            asked: (0..ASKED_SLOTS).map(|_| AtomicUsize::new(0)).collect(),
            new: ArrayQueue::new(MOST_QUEUED),
        }
    }

    /// The table as it is now. Lock-free, any thread.
    pub(crate) fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    /// True if the clerk should be asked for a method. The answer is not exact: of two
    /// methods that share a place each may be asked for more than once.
    pub(crate) fn ask(&self, method: MethodId) -> bool {
        let place = &self.asked[hash(method) % ASKED_SLOTS];
        if place.load(Ordering::Relaxed) == method.0 {
            return false;
        }
        place.store(method.0, Ordering::Relaxed);
        true
    }

    /// The clerk could not be asked: the next sample tries again.
    pub(crate) fn forget_asking(&self, method: MethodId) {
        self.asked[hash(method) % ASKED_SLOTS].store(0, Ordering::Relaxed);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Publishes what the clerk has found. The clerk alone.
    pub(crate) fn publish(&self, judged: Judged) {
        let mut books = self.books();
        let mut table = self.table.load_full();
        if table.get(judged.method).is_some() {
            return;
        }
        if books.methods >= MOST_METHODS || books.bytes + judged.bytes() > MOST_BYTES {
            self.empty(&mut books, Instant::now());
            table = self.table.load_full();
        } else if (books.methods + 1) * 4 > table.slots.len() * 3 {
            let larger = Table::new(table.slots.len() * 2);
            for old in table.slots.iter().filter_map(OnceLock::get) {
                larger.enter(old.clone());
            }
            table = Arc::new(larger);
            self.table.store(table.clone());
        }
        books.methods += 1;
        books.bytes += judged.bytes();
        table.enter(Arc::new(judged));
    }

    /// Forgets what is old. The clerk, now and then.
    pub(crate) fn refresh(&self, now: Instant) {
        let mut books = self.books();
        if books.methods > 0 && now.saturating_duration_since(books.since) >= LONGEST_AGE {
            self.empty(&mut books, now);
        }
    }

    /// Forgets all. The clerk.
    pub(crate) fn start_over(&self) {
        self.empty(&mut self.books(), Instant::now());
    }

    fn empty(&self, books: &mut Books, now: Instant) {
        self.table.store(Arc::new(Table::new(FIRST_SLOTS)));
        *books = Books {
            methods: 0,
            bytes: 0,
            since: now,
        };
        // After the table: who misses a method in the new one, and still finds it asked for,
        // asks at its next sample. The other way round nobody would ask again.
        for place in &self.asked {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Native bytes held.
    pub(crate) fn committed_bytes(&self) -> u64 {
        let slots = self.table.load().slots.len() * size_of::<OnceLock<Arc<Judged>>>();
        let queue = MOST_QUEUED * size_of::<NewMethod>() + ASKED_SLOTS * size_of::<AtomicUsize>();
        (slots + queue + self.books().bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(number: usize) -> Judged {
        Judged {
            method: MethodId(number * 8),
            verdict: if number.is_multiple_of(3) {
                Verdict::Transparent
            } else {
                Verdict::Outside
            },
            said: Said::default(),
            native: false,
            code: Code::default(),
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
            assert_eq!(table.get(MethodId(number * 8)), Some(&judged(number)));
            assert_eq!(table.get(MethodId(number * 8 + 1)), None);
        }
        assert!(methods.committed_bytes() > 5000 * size_of::<Judged>() as u64);
    }

    #[test]
    fn a_full_table_starts_over_and_lets_ask_again() {
        let methods = Methods::new();
        let first = MethodId(8);
        assert!(methods.ask(first));
        assert!(!methods.ask(first));
        for number in 1..=MOST_METHODS {
            methods.publish(judged(number));
        }
        assert!(methods.table().get(first).is_some());
        let old = methods.table();
        methods.publish(judged(MOST_METHODS + 1));
        assert!(methods.table().get(first).is_none());
        assert!(old.get(first).is_some(), "who reads it still may");
        assert!(
            methods
                .table()
                .get(MethodId((MOST_METHODS + 1) * 8))
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
            assert!(methods.committed_bytes() < (MOST_BYTES + (1 << 20)) as u64);
        }
    }

    #[test]
    fn an_old_table_starts_over() {
        let methods = Methods::new();
        methods.publish(judged(1));
        methods.refresh(Instant::now());
        assert!(methods.table().get(MethodId(8)).is_some());
        methods.refresh(Instant::now() + LONGEST_AGE);
        assert!(methods.table().get(MethodId(8)).is_none());
        methods.publish(judged(1));
        methods.start_over();
        assert!(methods.table().get(MethodId(8)).is_none());
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
                    // The last table is full: whoever slept through the others finds it.
                    while turn < 200_000 || found == 0 {
                        turn += 1;
                        let number = (turn * 31 + seed) % 3000 + 1;
                        let table = methods.table();
                        if let Some(one) = table.get(MethodId(number * 8)) {
                            assert_eq!(*one, judged(number));
                            found += 1;
                        }
                    }
                    found
                })
            })
            .collect();
        for round in 0..20 {
            for number in 1..=3000 {
                methods.publish(judged(number));
            }
            if round < 19 {
                methods.start_over();
            }
        }
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    }
}
