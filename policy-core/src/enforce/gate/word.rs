//! The word of a gate, why a charge is due at it, and what is counted there.

const LIMITED: u32 = 1;
const OVER: u32 = 2;
const ENFORCED: u32 = 4;
const NAIVE: u32 = 8;
const SHUT: u32 = 16;
const DURESS: u32 = 32;
pub(super) const SERIAL: u32 = 64;

/// Deferrals are counted by reason; there are at most so many reasons.
#[cfg(not(loom))]
pub const MAX_REASONS: usize = 32;
/// Few, because loom tracks each counter.
#[cfg(loom)]
pub const MAX_REASONS: usize = 2;

/// The state of an account and its limit, as the enforcer sets it at a gate; without the serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word {
    /// The account has a limit.
    pub limited: bool,
    /// The account is over its limit, by a verdict; if it has a door, over limit and reserve.
    pub over: bool,
    /// Due charges are refused or wait; otherwise they are only counted.
    pub enforced: bool,
    /// For tests only: every sample is refused, wherever its thread is.
    pub naive: bool,
    /// The account has a door and is over its limit: new requests are turned away.
    pub shut: bool,
    /// The heap itself is short ([`crate::enforce::duress`]) and limits are enforced: a charge beyond the stop waits for the
    /// verdict, and threads that cannot be refused are slowed. Otherwise nobody waits.
    pub duress: bool,
}

#[cfg(test)]
impl Word {
    /// Of an account with a limit that is enforced, without a verdict.
    pub(crate) const OPEN: Word = Word {
        limited: true,
        over: false,
        enforced: true,
        naive: false,
        shut: false,
        duress: false,
    };
}

impl Word {
    pub(super) fn bits(self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        bit(self.limited, LIMITED)
            | bit(self.over, OVER)
            | bit(self.enforced, ENFORCED)
            | bit(self.naive, NAIVE)
            | bit(self.shut, SHUT)
            | bit(self.duress, DURESS)
    }

    pub(super) fn of(bits: u32) -> Word {
        Word {
            limited: bits & LIMITED != 0,
            over: bits & OVER != 0,
            enforced: bits & ENFORCED != 0,
            naive: bits & NAIVE != 0,
            shut: bits & SHUT != 0,
            duress: bits & DURESS != 0,
        }
    }
}

/// Why a charge is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The account is over its limit.
    Over,
    /// A single object is larger than the whole limit.
    Alone,
    /// The heap is short, the overdraft is used up and the verdict is awaited.
    Overdrawn,
}

/// The outcome of a charge at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// This charge crossed the trip: wake the enforcer.
    pub wake_enforcer: bool,
    /// Why the charge is due; `None` if it passes.
    pub due: Option<Due>,
}

/// The numbers of due charges by their outcome, and of requests and threads that were stopped, taken out of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Errors thrown.
    pub refusals: u64,
    /// Errors that would have been thrown in mode `enforce`.
    pub would_refuse: u64,
    /// Refusals that were due but not thrown, by [`crate::enforce::throw_points::Reason`].
    pub deferred: [u64; MAX_REASONS],
    /// Requests that were turned away at the door.
    pub admission_refusals: u64,
    /// Threads that ended with an uncaught refusal. No gate counts them: their errors name the account.
    pub threads_killed: u64,
    /// The time that enforcement made threads and requests wait, in milliseconds.
    pub waited_ms: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        // In full, so that none is forgotten.
        let Counts {
            refusals,
            would_refuse,
            deferred,
            admission_refusals,
            threads_killed,
            waited_ms,
        } = other;
        self.refusals += refusals;
        self.would_refuse += would_refuse;
        self.admission_refusals += admission_refusals;
        self.threads_killed += threads_killed;
        self.waited_ms += waited_ms;
        for (sum, more) in self.deferred.iter_mut().zip(deferred) {
            *sum += more;
        }
    }

    /// All charges that were due, whatever happened then.
    pub fn due(&self) -> u64 {
        self.refusals + self.would_refuse + self.deferred.iter().sum::<u64>()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Counts::default()
    }
}
