//! How long a thread waits for the verdict about its account's native memory. Pure.
//!
//! # Rules
//! 1. While a verdict is awaited, a thread that asks for a block beyond the limit waits for it, at most `ALL_MS` in all
//!    for one verdict.
//! 2. When that is used up it waits `ONE_MS` for each block: evidence is late, and what is above the limit may be garbage.
//!
//! Virtual threads and event loops do not wait, and neither does a thread on whose stack a method is not known yet: the
//! caller sees to that.

/// See rule 1. A collection and the JDK's cleaner take less where the machine is not busy.
pub const ALL_MS: u64 = 2_000;
/// See rule 2.
pub const ONE_MS: u64 = 20;

/// The waits of one thread for the verdict that it has waited for last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// The number of the account, and which of its suspicions.
    of: (u32, u64),
    waited_ms: u64,
}

impl Waits {
    /// It has not waited.
    pub const NONE: Waits = Waits {
        of: (0, 0),
        waited_ms: 0,
    };

    /// How many milliseconds it may wait now.
    #[must_use]
    pub fn may_wait_ms(&self, account: u32, suspicion: u64) -> u64 {
        let waited_ms = match self.of == (account, suspicion) {
            true => self.waited_ms,
            false => 0,
        };
        ALL_MS.saturating_sub(waited_ms).max(ONE_MS)
    }

    /// It has waited so long.
    #[must_use]
    pub fn after(self, account: u32, suspicion: u64, ms: u64) -> Waits {
        let of = (account, suspicion);
        let before = if self.of == of { self.waited_ms } else { 0 };
        Waits {
            of,
            waited_ms: before.saturating_add(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_one_verdict_and_then_a_little_at_each_block() {
        let waits = Waits::default();
        assert_eq!(waits.may_wait_ms(1, 1), ALL_MS);
        let waits = waits.after(1, 1, 500).after(1, 1, 700);
        assert_eq!(waits.may_wait_ms(1, 1), ALL_MS - 1_200);
        let late = waits.after(1, 1, 5_000);
        assert_eq!(late.may_wait_ms(1, 1), ONE_MS);
        assert_eq!(late.may_wait_ms(1, 2), ALL_MS, "another verdict");
        assert_eq!(late.may_wait_ms(2, 1), ALL_MS, "another account");
        assert_eq!(late.after(1, 2, 3).may_wait_ms(1, 2), ALL_MS - 3);
    }
}
