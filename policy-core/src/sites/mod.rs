//! Sites: where survivors were allocated, for what somebody wants to know about.
//!
//! By default no stack is taken, because it costs twenty times as much as the rest of a sample. Stacks are
//! taken of wanted rows only (an account's purse and a class): of the suspects of the leak detector, and of
//! the accounts that the policy names.
//!
//! # Rules
//! 1. A sample of what nobody wants costs one load while nothing is wanted, and a look-up otherwise
//!    ([`wanted`]).
//! 2. The number of stacks in a second is bounded. What is passed over is made up for by the weight of what
//!    is taken (`budget`).
//! 3. A stack is a node of a trie of fixed capacity, filled without locks or names (`trie`, `keys`). A
//!    record holds the node and the level of the budget in its 24 bits for a site. A stack that finds no room
//!    is cut, or not stored, and is counted.
//! 4. A number of the trie is given out again only if no record has it. So the thread that clears the trie
//!    first has it to itself (`entrance`). Then it looks at all records, keeps the nodes of those that are
//!    still wanted, and erases the sites of the others. A thread that takes a stack is inside from before
//!    its first node until its record is published. So every node that it uses is in a record, or it is seen
//!    inside.
//! 5. No allocating thread waits for that: it is turned away, takes no stack, and is counted.
//! 6. While nothing is wanted, there is no trie and no record has a site.
//! 7. Readers of the trie exclude its clearing by a lock that no allocating thread takes.
//!
//! Allocations at a stack, survivors or not, are summed beside the trie (`allocated`). Such stacks are kept as
//! those of records are, as long as there is room.
//!
//! The part of a stack that is kept: [`depth`]. Names: [`names`]. Ranking: [`survivors`]. Whole stacks, for
//! profiles: [`stacks`]. The rows that the policy wants: [`of_policy`].

mod allocated;
mod budget;
pub mod depth;
mod entrance;
mod frames;
mod keys;
pub mod listing;
pub mod names;
mod node;
pub mod of_policy;
pub mod reading;
pub mod stacks;
pub mod survivors;
mod trie;
pub mod wanted;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};

use crate::cohorts::Mark;
use crate::ledger::{Ledger, PurseId, SiteId};
use crate::sampling::weight::Charge;

use allocated::Key;
use budget::{Budget, Draw};
use entrance::{Entrance, Inside};
use names::{Found, Names};
use node::{Node, pack, unpack};
use stacks::Stack;
use survivors::{Count, Most, RowSites};
use trie::{Step, Trie};
use wanted::{Asked, Asker, Row, Wanted};

/// For how long the clearing thread waits for threads that are inside, before it gives up until later.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How long it sleeps at a time.
const NAP: Duration = Duration::from_millis(1);
/// The shortest time between two clearings of a trie that fills, in milliseconds. If all of it is in use, a
/// clearing frees nothing.
const BETWEEN_CLEARINGS_MS: u64 = 30_000;

/// Why a sample that was wanted has no stack, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// Another stack stands for it.
    Budget,
    /// Beyond what the budget can make up for: shares are no longer exact.
    Exhausted,
    /// The trie is being cleared.
    Clearing,
    /// The trie has no room for the stack, or for its lower part.
    Full,
}

impl Skip {
    /// All of them, each at the index that is its number.
    pub const ALL: [Skip; 4] = [Skip::Budget, Skip::Exhausted, Skip::Clearing, Skip::Full];

    /// The label in the metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Skip::Budget => "budget",
            Skip::Exhausted => "exhausted",
            Skip::Clearing => "clearing",
            Skip::Full => "full",
        }
    }
}

/// Counts since the agent was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stacks taken.
    pub taken: u64,
    /// Stacks skipped, by reason.
    pub skipped: [u64; Skip::ALL.len()],
    /// Frames that the trie holds.
    pub frames: u64,
}

/// Stacks of samples. See the module.
#[derive(Debug)]
pub struct Sites {
    wanted: Wanted,
    budget: Budget,
    entrance: Entrance,
    /// Present while anything is wanted.
    trie: ArcSwapOption<Trie>,
    taken: AtomicU64,
    skipped: [AtomicU64; Skip::ALL.len()],
    /// Rule 7: held by readers of the trie, and by whoever clears it.
    tended: Mutex<Tended>,
    names: Mutex<Names>,
}

/// The state that the clearing thread keeps between two clearings.
#[derive(Debug, Default)]
struct Tended {
    /// Rows were given up since the last clearing.
    is_due: bool,
    cleared_ms: Option<u64>,
}

/// A thread that takes a stack. It is inside until this is dropped, which must not be before its record is
/// published (rule 4).
#[derive(Debug)]
pub struct Visit<'a> {
    sites: &'a Sites,
    /// Dropped before `_inside`.
    trie: Guard<Option<Arc<Trie>>>,
    level: u32,
    node: Node,
    is_cut: bool,
    payer: PurseId,
    class: u32,
    _inside: Inside<'a>,
}

impl Visit<'_> {
    /// Adds the next frame, from the allocation down: its method as the VM numbers it, and the index of its
    /// bytecode. If the calling thread shall hand the method over to be named, returns its number here.
    pub fn frame(&mut self, method: u64, bci: Option<u32>) -> Option<u32> {
        let trie = self.trie.as_ref()?;
        if self.is_cut {
            return None;
        }
        let Some(method) = trie.method(method) else {
            self.is_cut = true;
            return None;
        };
        self.step(Step::Frame { method, bci });
        let trie = self.trie.as_ref()?;
        (!self.is_cut && trie.hands_over(method)).then_some(method)
    }

    /// Notes that frames are left out here.
    pub fn leave_out(&mut self) {
        self.step(Step::LeftOut);
    }

    fn step(&mut self, step: Step) {
        let Some(trie) = self.trie.as_ref() else {
            return;
        };
        match trie.node(self.node, step) {
            Some(node) if !self.is_cut => self.node = node,
            _ => self.is_cut = true,
        }
    }

    /// A method could not be handed over; the next thread that meets it tries again.
    pub fn gives_up(&self, method: u32) {
        if let Some(trie) = self.trie.as_ref() {
            trie.gives_up(method);
        }
    }

    /// The site of the stack, for the record. Counts it.
    pub fn site(&self) -> SiteId {
        if self.is_cut {
            self.sites.skip(Skip::Full);
        }
        let site = pack(self.level, self.node);
        if site != SiteId::NONE {
            self.sites.taken.fetch_add(1, Ordering::Relaxed);
        }
        site
    }

    /// Counts what the ledger charged for the sample, under its stack.
    pub fn charged(&self, charge: &Charge) {
        let Some(trie) = self.trie.as_ref() else {
            return;
        };
        let key = Key {
            node: self.node,
            purse: self.payer,
            class: self.class,
        };
        if !trie.allocated.add(key, self.level, charge) {
            self.sites.skip(Skip::Full);
        }
    }
}

impl Sites {
    /// Nothing is wanted.
    #[must_use]
    pub fn new() -> Sites {
        Sites {
            wanted: Wanted::new(),
            budget: Budget::new(),
            entrance: Entrance::new(),
            trie: ArcSwapOption::empty(),
            taken: AtomicU64::new(0),
            skipped: [const { AtomicU64::new(0) }; Skip::ALL.len()],
            tended: Mutex::default(),
            names: Mutex::default(),
        }
    }

    // ---- allocating threads ---------------------------------------------------------

    /// Whether stacks of anything are wanted. One load; any thread.
    #[inline]
    pub fn any_wanted(&self) -> bool {
        self.wanted.any()
    }

    /// Begins a stack for a sample of this purse and class, if it is wanted and the budget has one for it.
    /// `second`: of a clock that does not go back. Lock-free; the allocating thread.
    pub fn visit(&self, payer: PurseId, class: u32, second: u32) -> Option<Visit<'_>> {
        if !self.wanted.has(payer, class) {
            return None;
        }
        let Some(inside) = self.entrance.enter() else {
            self.skip(Skip::Clearing);
            return None;
        };
        let trie = self.trie.load();
        // Nothing is wanted any more, or not yet.
        trie.as_ref()?;
        let row = u64::from(payer.get()) << 32 | u64::from(class);
        let level = match self.budget.draw(row, second, || fastrand::u32(..)) {
            Draw::Taken(level) => level,
            Draw::PassedOver => {
                self.skip(Skip::Budget);
                return None;
            }
            Draw::Exhausted => {
                self.skip(Skip::Exhausted);
                return None;
            }
        };
        Some(Visit {
            sites: self,
            trie,
            level,
            node: Node::ROOT,
            is_cut: false,
            payer,
            class,
            _inside: inside,
        })
    }

    fn skip(&self, why: Skip) {
        self.skipped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    // ---- agent threads --------------------------------------------------------------

    /// Asks for stacks of these rows, instead of those that this asker had asked for. Rows that nobody asks
    /// for any more lose their stacks at the next [`Sites::tend`]. Agent threads.
    pub fn set_wanted(&self, asker: Asker, rows: Vec<Row>) -> Asked {
        let mut tended = self.tended();
        let asked = self.wanted.set(asker, rows);
        tended.is_due |= asked.changed;
        if self.wanted.any() && self.trie.load().is_none() {
            self.trie.store(Some(Arc::new(Trie::new())));
        }
        asked
    }

    fn tended(&self) -> MutexGuard<'_, Tended> {
        self.tended.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Frees what no wanted record needs, if that is due; at most a pass over the records and a short wait.
    /// One agent thread, now and then.
    pub fn tend(&self, ledger: &Ledger, now_ms: u64) {
        let mut tended = self.tended();
        let trie = self.trie.load_full();
        let Some(trie) = trie else {
            tended.is_due = false;
            return;
        };
        let rested = (tended.cleared_ms)
            .is_none_or(|then| now_ms.saturating_sub(then) >= BETWEEN_CLEARINGS_MS);
        if !(tended.is_due || rested && (trie.is_filling() || trie.allocated.is_filling())) {
            return;
        }
        self.entrance.close();
        let mut waited = Duration::ZERO;
        while !self.entrance.is_empty() && waited < LONGEST_WAIT {
            std::thread::sleep(NAP);
            waited += NAP;
        }
        if self.entrance.is_empty() {
            self.clear(ledger, &trie);
            tended.is_due = false;
            tended.cleared_ms = Some(now_ms);
        }
        self.entrance.open();
    }

    /// Rule 4. While the entrance is closed and nobody is inside.
    fn clear(&self, ledger: &Ledger, trie: &Trie) {
        let mut used = std::collections::HashSet::new();
        ledger.scan(|record| {
            if record.site == SiteId::NONE {
                return;
            }
            if self.wanted.has(record.payer, record.class) {
                used.insert(unpack(record.site).1);
            } else {
                ledger.erase_site(record.tag);
            }
        });
        let is_wanted = |purse, class| self.wanted.has(purse, class);
        (trie.allocated).clear_unused(is_wanted, trie.is_filling(), &mut used);
        let methods = trie.clear_unused(used.into_iter());
        let mut names = self.names();
        names.retain(|method| methods.get(method as usize).copied().unwrap_or(false));
        if !self.wanted.any() {
            // Every record has lost its site.
            self.trie.store(None);
        }
    }

    /// Names a method that an allocating thread has handed over; `None`: its class is gone. `key`: as the VM
    /// numbers it; if `method` has become another one's number meanwhile, nothing is entered. Agent threads.
    pub fn name(&self, method: u32, key: u64, found: Option<Found>) {
        let _no_clearing = self.tended();
        let trie = self.trie.load();
        if trie.as_ref().and_then(|trie| trie.method_key(method)) == Some(key) {
            self.names().enter(method, found);
        }
    }

    /// Returns the survivors of the rows that `row` tells of purses and classes, ranked by the places where they were
    /// allocated; at most as many places of each row as `most` has. With `cuts`, also by birth. One pass over the
    /// records. Agent threads.
    pub fn survivors<K: Hash + Eq>(
        &self,
        ledger: &Ledger,
        row: impl FnMut(PurseId, u32) -> Option<K>,
        most: Most,
        cuts: &[Mark],
    ) -> HashMap<K, RowSites> {
        let _no_clearing = self.tended();
        let trie = self.trie.load_full();
        let allocated = trie.as_deref().filter(|_| most.allocated > 0);
        let count = counted(ledger, allocated, row, cuts);
        match trie {
            Some(trie) => count.ranked(&trie, &self.names(), most),
            None => count.unranked(),
        }
    }

    /// The stacks of the rows that `row` tells of purses and classes, with what survived and was allocated there: the
    /// largest, at most as many as `most` has of all rows together. One pass over the records. Agent threads.
    pub fn stacks<K: Hash + Eq + Clone>(
        &self,
        ledger: &Ledger,
        row: impl FnMut(PurseId, u32) -> Option<K>,
        most: Most,
    ) -> HashMap<K, Vec<Stack>> {
        let _no_clearing = self.tended();
        let Some(trie) = self.trie.load_full() else {
            return HashMap::new();
        };
        let count = counted(ledger, Some(&trie), row, &[]);
        count.stacks(&trie, &self.names(), most)
    }

    /// Forgets what was allocated for the purses and classes that are gone: before their numbers are given out again.
    /// Agent threads.
    pub fn forget(&self, is_gone: impl Fn(PurseId, u32) -> bool) {
        if let Some(trie) = self.trie.load().as_ref() {
            trie.allocated.forget(is_gone);
        }
    }

    /// The purses of which stacks are wanted, of all classes or some. Agent threads.
    #[must_use]
    pub fn wanted_purses(&self) -> Vec<PurseId> {
        self.wanted.purses()
    }

    /// Whether stacks are wanted of this purse and class. Any thread.
    #[must_use]
    pub fn wants(&self, purse: PurseId, class: u32) -> bool {
        self.wanted.any() && self.wanted.has(purse, class)
    }

    /// Returns the counts so far. Any thread but allocating ones.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let frames = self.trie.load().as_ref().map_or(0, |trie| trie.nodes());
        Counts {
            taken: self.taken.load(Ordering::Relaxed),
            skipped: std::array::from_fn(|why| self.skipped[why].load(Ordering::Relaxed)),
            frames: frames as u64,
        }
    }

    /// Native memory held, in bytes.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        let trie = (self.trie.load().as_ref()).map_or(0, |trie| trie.committed_bytes());
        trie + self.wanted.committed_bytes()
            + self.budget.committed_bytes()
            + self.names().committed_bytes()
    }
}

/// Counts the survivors of rows by stack, and what is `allocated` beside a trie. One pass over the records.
fn counted<K: Hash + Eq>(
    ledger: &Ledger,
    allocated: Option<&Trie>,
    mut row: impl FnMut(PurseId, u32) -> Option<K>,
    cuts: &[Mark],
) -> Count<K> {
    let mut count = Count::new(cuts);
    ledger.scan(|record| {
        if record.survived
            && let Some(row) = row(record.payer, record.class)
        {
            count.add(row, record);
        }
    });
    for (key, sum) in allocated.iter().flat_map(|trie| trie.allocated.all()) {
        if let Some(row) = row(key.purse, key.class) {
            count.add_allocated(row, key.node, sum);
        }
    }
    count
}
