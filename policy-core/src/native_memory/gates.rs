//! Gates of native memory: a thread that asks for a block sees its account's `direct-limit` through one.
//!
//! Each account with such a limit has a gate; its number is that of the purse that represents the account. The enforcer
//! ([`crate::enforce::direct_limits`]) writes gates; threads that ask for blocks read them and count.
//!
//! # Rules
//! 1. Until the account is found over its limit every block is given: what is above the limit may be garbage that no
//!    collection has found. One load for all accounts together, while none is above its limit.
//! 2. In mode `enforce` a thread that asks for a block beyond the limit waits for the verdict meanwhile, if it may be held: all
//!    threads together until one moment, which the enforcer sets once for each suspicion.
//! 3. Of an account that is over its limit a block is refused if the account would have more than its limit with it. The
//!    bytes that it has are summed up at this moment, so what was given back counts at once, and a block within the limit is
//!    always given.
//! 4. Blocks that are asked for at the same moment do not see each other: the limit may be exceeded by a block for each
//!    thread.
//! 5. A gate gets another account after a reload, or when its purse ends. It is closed before, and told whose purses count
//!    for it after.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::ledger::{Chunks, PurseId};
use crate::sync::{AtomicU64, Ordering, places};

/// The fate of a block beyond the limit. A later one is harder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is given: the account has no limit, or was not found over it.
    Given,
    /// It is given, and counted: the policy only observes.
    Observed,
    /// It is not known yet whether the account is over its limit. Whoever may be held waits.
    Awaited,
    /// It is refused.
    Refused,
}

impl Verdict {
    fn of(word: u64) -> Verdict {
        match word {
            0 => Verdict::Given,
            1 => Verdict::Observed,
            2 => Verdict::Awaited,
            _ => Verdict::Refused,
        }
    }

    fn word(self) -> u64 {
        match self {
            Verdict::Given => 0,
            Verdict::Observed => 1,
            Verdict::Awaited => 2,
            Verdict::Refused => 3,
        }
    }
}

/// The purses whose blocks count for an account, and their most.
#[derive(Debug)]
struct Limit {
    purses: Box<[PurseId]>,
    bytes: u64,
}

/// One account's gate.
#[derive(Debug, Default)]
struct Gate {
    verdict: AtomicU64,
    limit: ArcSwapOption<Limit>,
    refused: AtomicU64,
    observed: AtomicU64,
    deferred: AtomicU64,
    waited_ms: AtomicU64,
    /// Until then threads wait for a verdict, in milliseconds since the agent was made.
    wait_until_ms: AtomicU64,
}

#[cfg(not(loom))]
const GATES_PER_CHUNK: usize = 64;
#[cfg(loom)]
const GATES_PER_CHUNK: usize = 1;
const GATES: u32 = places(1 << u16::BITS);

/// Blocks that were beyond a limit since the counts were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Refused.
    pub refused: u64,
    /// Given, because the policy only observes.
    pub observed: u64,
    /// Given, because an error would do harm at the place.
    pub deferred: u64,
    /// For how long threads have waited for a verdict, in milliseconds.
    pub waited_ms: u64,
}

/// The gates of all accounts. See the module.
#[derive(Debug)]
pub struct Gates {
    gates: Chunks<Gate, GATES_PER_CHUNK>,
    /// How many accounts have another verdict than [`Verdict::Given`].
    judged: AtomicU64,
}

impl Default for Gates {
    fn default() -> Self {
        Gates {
            gates: Chunks::new(GATES),
            judged: AtomicU64::new(0),
        }
    }
}

impl Gates {
    /// Whether blocks of any account are not just given. One load; any thread.
    pub fn is_any_judged(&self) -> bool {
        self.judged.load(Ordering::Acquire) > 0
    }

    /// The fate of so many bytes more for the account of this number; `used` tells what a purse has. Lock-free; any
    /// thread.
    pub fn ask(&self, number: u32, more_bytes: u64, used: impl Fn(PurseId) -> u64) -> Verdict {
        let Some(gate) = self.gates.get(number) else {
            return Verdict::Given;
        };
        let verdict = Verdict::of(gate.verdict.load(Ordering::Acquire));
        if verdict == Verdict::Given {
            return verdict;
        }
        let limit = gate.limit.load();
        let Some(limit) = limit.as_deref() else {
            return Verdict::Given;
        };
        let sum = |sum: u64, purse: &PurseId| sum.saturating_add(used(*purse));
        if limit.purses.iter().fold(more_bytes, sum) <= limit.bytes {
            return Verdict::Given;
        }
        verdict
    }

    /// Counts a block that was beyond the limit of the account of this number. Any thread.
    pub fn count(&self, number: u32, verdict: Verdict) {
        if let Some(gate) = self.gates.get(number) {
            match verdict {
                Verdict::Refused => gate.refused.fetch_add(1, Ordering::Relaxed),
                Verdict::Observed => gate.observed.fetch_add(1, Ordering::Relaxed),
                Verdict::Given | Verdict::Awaited => 0,
            };
        }
    }

    /// Counts a block that is given although it is beyond the limit of the account of this number: an error would do harm
    /// where it is asked for. Any thread.
    pub fn count_deferred(&self, number: u32) {
        if let Some(gate) = self.gates.get(number) {
            gate.deferred.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Until when to wait for the verdict about the account of this number. Any thread.
    pub fn wait_until_ms(&self, number: u32) -> u64 {
        (self.gates.get(number)).map_or(0, |gate| gate.wait_until_ms.load(Ordering::Relaxed))
    }

    /// Sets until when threads wait. Before [`Verdict::Awaited`] is decided. The enforcer.
    pub fn set_wait_until_ms(&self, number: u32, until_ms: u64) {
        if let Some(gate) = self.gates.get(number) {
            gate.wait_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    /// A thread has waited so long for the verdict about this account. Any thread.
    pub fn waited(&self, number: u32, ms: u64) {
        if let Some(gate) = self.gates.get(number) {
            gate.waited_ms.fetch_add(ms, Ordering::Relaxed);
        }
    }

    /// Gives a gate to an account with these purses, without a verdict. The enforcer.
    pub fn assign(&self, number: u32, purses: &[PurseId], limit_bytes: u64) {
        self.close(number);
        if let Some(gate) = self.gates.get_or_grow(number) {
            gate.limit.store(Some(Arc::new(Limit {
                purses: purses.into(),
                bytes: limit_bytes,
            })));
        }
    }

    /// Takes a gate away from its account. The enforcer.
    pub fn close(&self, number: u32) {
        self.decide(number, Verdict::Given);
        if let Some(gate) = self.gates.get(number) {
            gate.limit.store(None);
        }
    }

    /// Says what becomes of blocks beyond the limit. The enforcer.
    pub fn decide(&self, number: u32, verdict: Verdict) {
        let Some(gate) = self.gates.get(number) else {
            return;
        };
        let before = Verdict::of(gate.verdict.load(Ordering::Relaxed));
        if before == Verdict::Given && verdict != Verdict::Given {
            self.judged.fetch_add(1, Ordering::AcqRel);
        }
        gate.verdict.store(verdict.word(), Ordering::Release);
        if before != Verdict::Given && verdict == Verdict::Given {
            self.judged.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes all verdicts back: nobody will, any more. Any thread.
    pub fn open_all(&self) {
        for number in 0..self.gates.capacity() {
            self.decide(number, Verdict::Given);
        }
    }

    /// Takes the counts of a gate. The enforcer.
    pub fn take_beyond(&self, number: u32) -> Beyond {
        self.gates
            .get(number)
            .map_or(Beyond::default(), |gate| Beyond {
                refused: gate.refused.swap(0, Ordering::Relaxed),
                observed: gate.observed.swap(0, Ordering::Relaxed),
                deferred: gate.deferred.swap(0, Ordering::Relaxed),
                waited_ms: gate.waited_ms.swap(0, Ordering::Relaxed),
            })
    }

    /// Native memory held by the table itself, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        self.gates.committed_bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SHOP: PurseId = PurseId::new(1);
    const SCOPE: PurseId = PurseId::new(2);

    fn used(purse: PurseId) -> u64 {
        match purse {
            SHOP => 60,
            SCOPE => 30,
            _ => 0,
        }
    }

    #[test]
    fn blocks_are_refused_beyond_the_limit_of_an_account_that_was_found_over_it() {
        let gates = Gates::default();
        assert_eq!(gates.ask(1, 1, used), Verdict::Given, "it has no limit");
        gates.assign(1, &[SHOP, SCOPE], 100);
        assert_eq!(gates.ask(1, 50, used), Verdict::Given, "nobody has looked");
        assert!(!gates.is_any_judged());
        gates.decide(1, Verdict::Refused);
        assert!(gates.is_any_judged());
        assert_eq!(gates.ask(1, 10, used), Verdict::Given, "just within it");
        assert_eq!(gates.ask(1, 11, used), Verdict::Refused);
        assert_eq!(gates.ask(1, u64::MAX, used), Verdict::Refused);
        assert_eq!(gates.ask(2, 11, used), Verdict::Given, "another account");
        gates.decide(1, Verdict::Observed);
        assert_eq!(gates.ask(1, 11, used), Verdict::Observed);
        for verdict in [
            Verdict::Refused,
            Verdict::Given,
            Verdict::Observed,
            Verdict::Refused,
        ] {
            gates.count(1, verdict);
            gates.count(70_000, verdict);
        }
        let beyond = Beyond {
            refused: 2,
            observed: 1,
            deferred: 1,
            waited_ms: 12,
        };
        gates.count_deferred(1);
        gates.count_deferred(70_000);
        gates.waited(1, 5);
        gates.waited(1, 7);
        assert_eq!(gates.take_beyond(1), beyond);
        assert_eq!(gates.take_beyond(1), Beyond::default());
        gates.decide(1, Verdict::Given);
        assert!(!gates.is_any_judged());
    }

    #[test]
    fn a_gate_that_gets_another_account_has_no_verdict() {
        let gates = Gates::default();
        gates.assign(1, &[SHOP], 10);
        gates.assign(3, &[SHOP], 10);
        gates.decide(1, Verdict::Refused);
        gates.decide(1, Verdict::Refused);
        gates.decide(3, Verdict::Observed);
        gates.set_wait_until_ms(1, 7);
        assert_eq!(gates.wait_until_ms(1), 7);
        gates.assign(1, &[SCOPE], 20);
        assert_eq!(gates.ask(1, 100, used), Verdict::Given);
        assert!(gates.is_any_judged(), "the other one still is");
        gates.open_all();
        assert!(!gates.is_any_judged());
        gates.decide(3, Verdict::Observed);
        gates.close(3);
        gates.close(3);
        assert!(!gates.is_any_judged());
        assert_eq!(gates.ask(3, 100, used), Verdict::Given);
    }
}
