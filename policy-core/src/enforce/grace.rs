//! Grace: what a refused thread may allocate so that its handlers run.
//!
//! # Rules
//! 1. After a refusal the thread has a grace of [`GRACE_BYTES`] of charge and [`GRACE_MS`]; while
//!    both last, its due charges are not refused.
//! 2. A thread that is refused again within [`CALM_MS`] gets half of its last grace: so code cannot
//!    go on allocating by catching errors.
//! 3. From the second such refusal on the thread is also slowed before the throw, twice as long each
//!    time up to [`SLOWEST_MS`]: code that catches every error and keeps what it allocates
//!    between samples would otherwise fill the heap at full speed.
//! 4. In duress a thread waits for a verdict at most [`WAIT_MS`] at a time, and [`WAITS_MS`] for one
//!    suspicion. Then it goes on, slowed to [`SLOW_BYTES_PER_MS`]: if the evidence is late, a leak must
//!    not fill the heap meanwhile.
//! 5. If a method on its stack is not known yet, a thread that asked for one object larger than the whole limit waits at
//!    most [`FIND_OUT_MS`] at a time until it is looked up. These waits count for [`WAITS_MS`] too. The
//!    thread may hold locks at that place, so the wait is short, and there is none once
//!    [`WAITS_MS`] is used up.
//! 6. Small allocations within [`ECHO_CPU`] after a refusal pass, up to [`ECHO_SAMPLES`] samples or
//!    [`ECHO_BYTES`], whatever the grace: they may be the VM's own, an *echo* of the throw. When an
//!    error passes a compiled frame, HotSpot may deoptimise the frame and then allocates the objects
//!    that the compiler had kept in registers. If such an allocation fails, HotSpot drops the frames
//!    without running their handlers ("failed reallocation of scalar replaced objects"), and a lock
//!    or a bin of a map that they would have released stays taken. Measured on JDK 17: about one in a
//!    thousand refusals that directly followed another. The allocation comes within microseconds of
//!    the thread's CPU time, but perhaps much later by the clock, if the thread loses its processor.
//!    So the rule counts CPU time from the throw on. A next request may begin within [`ECHO_CPU`], and where
//!    samples are as heavy as requests, a program grew by two of them for each one refused. So what comes
//!    later than [`ECHO_SOON`] counts by rule 8.
//! 7. Threads without a unit of work are never refused (see [`super::throw_points`]). While they would
//!    be, and the heap is short, they are slowed to [`SLOW_BYTES_PER_MS`], at most [`SLOWEST_MS`] at a time: such a
//!    thread may serve everybody, and hold locks that others need. One that keeps nothing of what it makes is not slowed:
//!    it may be what lets go ([`super::latest_samples`]).
//! 8. All threads of an account that is over its limit together have [`account_grace_bytes`] for their
//!    graces until it has recovered. The gate counts them. A leak that is refused again and again would
//!    otherwise grow by its graces. What rule 6 lets through at once is not counted.
//! 9. Each native thread has one such memory, for one account at a time. A virtual thread uses
//!    its carrier's, and is never slowed or made to wait, because other tenants need the carrier too.
//! 10. A request that a shut door has let in has an *allowance* of [`allowance_bytes`]: it is not refused before it has
//!     used that up. The gate counts all of them; together they have as much as the latest collection has left room
//!     for ([`super::gate::Gate::set_allowances`]), anew after each covering collection. A request at a container's door, or
//!     a call of a method, is on one thread, and its use is counted here. Work that was let in for a program that asked may
//!     be on many: the gate counts its use ([`super::gate::Gate::spend_probes_allowance`]), and it has an allowance while
//!     it is the probe ([`super::door::Door::is_inside`]).

use std::time::Duration;

use super::latest_samples::LatestSamples;

/// Bytes that a refused thread may be charged during its first grace.
pub const GRACE_BYTES: u64 = 1 << 20;
/// How long a grace lasts.
pub const GRACE_MS: u64 = 500;
/// After so long without a refusal, the next one counts as the first again.
pub const CALM_MS: u64 = 2_000;
/// The longest delay before a throw.
pub const SLOWEST_MS: u64 = 100;
/// The longest wait for a verdict at one allocation.
pub const WAIT_MS: u64 = 2_000;
/// The sum of all waits of one thread for one suspicion.
pub const WAITS_MS: u64 = 5_000;
/// The longest wait at one allocation until its place is looked up.
pub const FIND_OUT_MS: u64 = 100;
/// A thread whose waits are used up may be charged so many bytes in a millisecond: 4 MiB a second. A thread without a
/// unit of work as well.
pub const SLOW_BYTES_PER_MS: u64 = 4 << 10;
/// For so much of the thread's CPU time after a throw, small allocations may be the VM's own (rule 6).
pub const ECHO_CPU: Duration = Duration::from_millis(2);
/// Within so much of it, nearly all of them come, and no other request does (rule 6).
pub const ECHO_SOON: Duration = Duration::from_micros(100);
/// C2 keeps arrays of up to 64 elements (`EliminateAllocationArraySizeLimit`) and objects of up
/// to 512 fields (`EliminateAllocationFieldsLimit`) in registers.
pub const ECHO_OBJECT_BYTES: u64 = 8 << 10;
/// Samples let through after a refusal.
pub const ECHO_SAMPLES: u32 = 2;
/// More samples pass if they are light, up to this charge in total.
pub const ECHO_BYTES: u64 = 16 << 10;

/// Returns the bytes that one request which a shut door has let in may be charged before it can be refused: 1 MiB, or a
/// part of the limit if that is more.
pub fn allowance_bytes(limit_bytes: u64) -> u64 {
    (limit_bytes / 32).max(1 << 20)
}

/// Returns the bytes that all graces of an account that is over its limit may let through until it has recovered: a
/// sixteenth of its limit, but the graces of a few threads in any case.
pub fn account_grace_bytes(limit_bytes: u64) -> u64 {
    (limit_bytes / 16).max(4 * GRACE_BYTES)
}

/// A native thread's memory of its latest refusal, its waits and its allowance. All zero at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grace {
    account: u32,
    streak: u32,
    refused_at_ms: u64,
    left_bytes: u64,
    /// The native thread's CPU time at the throw; `None` if nothing was thrown.
    thrown_at_cpu: Option<Duration>,
    /// Samples that passed by rule 6 since the refusal, and their charge.
    echo_samples: u32,
    echo_bytes: u64,
    /// How long the thread has waited so far, for the gate's word with this serial number.
    waited_ms: u64,
    waited_for: u32,
    /// Charges without a unit of work that the thread has not been slowed for yet.
    unpaid_bytes: u64,
    /// The bytes that the request which a door let in has used of its allowance (rule 10), and of which account.
    allowed_bytes: u64,
    allowed_for: u32,
    /// Of a thread without a unit of work (rule 7).
    pub(super) latest_samples: LatestSamples,
}

impl Grace {
    /// The grace of a thread that was never refused.
    pub const NONE: Grace = Grace {
        account: 0,
        streak: 0,
        refused_at_ms: 0,
        left_bytes: 0,
        thrown_at_cpu: None,
        echo_samples: 0,
        echo_bytes: 0,
        waited_ms: 0,
        waited_for: 0,
        unpaid_bytes: 0,
        allowed_bytes: 0,
        allowed_for: 0,
        latest_samples: LatestSamples::NONE,
    };

    /// A door lets a request in on this thread: it has its whole allowance.
    pub fn let_in(&mut self) {
        self.allowed_bytes = 0;
    }

    /// Takes `charged_bytes` from the allowance of the request that the thread runs; false if that is used up.
    pub fn allows(&mut self, account: u32, charged_bytes: u64, most_bytes: u64) -> bool {
        if self.allowed_for != account {
            (self.allowed_for, self.allowed_bytes) = (account, 0);
        }
        let sum = self.allowed_bytes.saturating_add(charged_bytes);
        let may = sum <= most_bytes;
        if may {
            self.allowed_bytes = sum;
        }
        may
    }

    /// Takes `charged_bytes` from the grace; false if not so much is left.
    pub fn spend(&mut self, account: u32, now_ms: u64, charged_bytes: u64) -> bool {
        let lasts = self.streak > 0
            && self.account == account
            && now_ms.saturating_sub(self.refused_at_ms) < GRACE_MS
            && self.left_bytes >= charged_bytes;
        if lasts {
            self.left_bytes -= charged_bytes;
        }
        lasts
    }

    /// Whether an object may be the VM's own allocation after the last throw (rule 6); if so, counts
    /// it. `cpu_time` reads the native thread's CPU time, which is a system call. `spend` takes what comes
    /// late from what the account has for its graces (rule 8), if so much is left.
    pub fn echoes(
        &mut self,
        cpu_time: impl FnOnce() -> Duration,
        size_bytes: u64,
        charged_bytes: u64,
        spend: impl FnOnce() -> bool,
    ) -> bool {
        let Some(thrown_at) = self.thrown_at_cpu else {
            return false;
        };
        let bytes = self.echo_bytes.saturating_add(charged_bytes);
        if size_bytes > ECHO_OBJECT_BYTES || self.echo_samples >= ECHO_SAMPLES && bytes > ECHO_BYTES
        {
            return false;
        }
        let since = cpu_time().saturating_sub(thrown_at);
        let may = since < ECHO_SOON || since < ECHO_CPU && spend();
        if may {
            self.echo_samples += 1;
            self.echo_bytes = bytes;
        }
        may
    }

    /// Notes that the error was thrown, at this CPU time of the native thread.
    pub fn thrown(&mut self, cpu_time: Duration) {
        self.thrown_at_cpu = Some(cpu_time);
    }

    /// How long to slow the thread before it is refused now, in milliseconds.
    pub fn slowed_ms(&self, account: u32, now_ms: u64) -> u64 {
        match self.streak_at(account, now_ms) {
            0 | 1 => 0,
            streak => (1u64 << (streak - 1).min(16)).min(SLOWEST_MS),
        }
    }

    /// How long to slow the thread for a charge that is not refused because it has no unit of work, in
    /// milliseconds. What is less than a millisecond counts at the next charge.
    pub fn slowed_without_unit_ms(&mut self, charged_bytes: u64) -> u64 {
        let bytes = self.unpaid_bytes.saturating_add(charged_bytes);
        self.unpaid_bytes = bytes % SLOW_BYTES_PER_MS;
        (bytes / SLOW_BYTES_PER_MS).min(SLOWEST_MS)
    }

    /// Starts a new grace: the thread is refused now.
    pub fn refused(&mut self, account: u32, now_ms: u64) {
        let streak = self.streak_at(account, now_ms).saturating_add(1);
        *self = Grace {
            account,
            streak,
            refused_at_ms: now_ms,
            left_bytes: GRACE_BYTES >> (streak - 1).min(63),
            thrown_at_cpu: None,
            echo_samples: 0,
            echo_bytes: 0,
            ..*self
        };
    }

    /// How many milliseconds the thread may wait now for the word that follows `serial`, after a
    /// charge of `charged_bytes`, while there is evidence to be had.
    pub fn may_wait_ms(&self, serial: u32, charged_bytes: u64) -> u64 {
        if self.waited_for == serial {
            let slowed = (charged_bytes / SLOW_BYTES_PER_MS).min(WAIT_MS);
            (WAITS_MS.saturating_sub(self.waited_ms)).clamp(slowed, WAIT_MS)
        } else {
            WAIT_MS
        }
    }

    /// How many milliseconds the thread may wait now until its place is looked up, while the gate's
    /// word has this serial number.
    pub fn may_find_out_ms(&self, serial: u32) -> u64 {
        let waited_ms = if self.waited_for == serial {
            self.waited_ms
        } else {
            0
        };
        WAITS_MS.saturating_sub(waited_ms).min(FIND_OUT_MS)
    }

    /// Notes that the thread has waited so long.
    pub fn waited(&mut self, serial: u32, ms: u64) {
        if self.waited_for != serial {
            self.waited_for = serial;
            self.waited_ms = 0;
        }
        // A wait of 0 ms counts as 1 ms, so that there is no endless series of them.
        self.waited_ms += ms.max(1);
    }

    /// Returns the bytes that are left of the grace, the serial number of the word last waited for, and how many
    /// milliseconds the thread has waited for it.
    #[cfg(test)]
    pub(crate) fn accounts(&self) -> (u64, u32, u64) {
        (self.left_bytes, self.waited_for, self.waited_ms)
    }

    fn streak_at(&self, account: u32, now_ms: u64) -> u32 {
        if self.account == account && now_ms.saturating_sub(self.refused_at_ms) < CALM_MS {
            self.streak
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::gate::Gate;
    use proptest::prelude::*;

    #[test]
    fn a_refused_thread_may_clean_up() {
        let mut grace = Grace::default();
        assert!(!grace.spend(7, 10, 1));
        assert_eq!(grace.slowed_ms(7, 10), 0);
        grace.refused(7, 10);
        assert!(grace.spend(7, 11, GRACE_BYTES / 2));
        assert!(!grace.spend(8, 11, 1), "another account's");
        assert!(grace.spend(7, 11, GRACE_BYTES / 2));
        assert!(!grace.spend(7, 11, 1));
        grace.refused(7, 12);
        assert!(!grace.spend(7, 13, GRACE_BYTES));
        assert!(grace.spend(7, 13, GRACE_BYTES / 2));
        assert!(!grace.spend(7, 12 + GRACE_MS, 0));
    }

    #[test]
    fn what_the_vm_makes_as_it_delivers_is_let_through() {
        const THROWN: Duration = Duration::from_millis(10);
        let left = || true;
        let after = |ms: u64| move || THROWN + Duration::from_millis(ms);
        let refused = |now_ms| {
            let mut grace = Grace::default();
            grace.refused(7, now_ms);
            assert!(
                !grace.echoes(after(0), 16, 16, left),
                "nothing is thrown yet"
            );
            grace.thrown(THROWN);
            grace
        };
        let mut grace = Grace::default();
        assert!(!grace.echoes(after(0), 16, 16, left), "nothing was refused");
        grace = refused(10);
        assert!(
            !grace.echoes(after(0), ECHO_OBJECT_BYTES + 1, 16, left),
            "too large"
        );
        assert!(grace.echoes(after(0), 16, 1 << 16, left));
        assert!(grace.echoes(after(1), 16, 1 << 16, left));
        assert!(
            !grace.echoes(after(1), 16, 1 << 16, left),
            "more than the VM makes"
        );
        grace = refused(20);
        assert!(
            (0..ECHO_BYTES / 16).all(|_| grace.echoes(after(0), 16, 16, left)),
            "light samples"
        );
        assert!(!grace.echoes(after(0), 16, 16, left));
        grace = refused(30);
        assert!(
            !grace.echoes(|| THROWN + ECHO_CPU, 16, 16, left),
            "too late"
        );
    }

    #[test]
    fn what_may_be_the_next_request_is_the_accounts_grace() {
        let mut grace = Grace::default();
        grace.refused(7, 10);
        grace.thrown(Duration::ZERO);
        let used_up = || false;
        assert!(!grace.echoes(|| ECHO_SOON, 16, 1 << 15, used_up));
        assert!(grace.echoes(|| ECHO_SOON, 16, 1 << 15, || true));
        let soon = ECHO_SOON - Duration::from_nanos(1);
        assert!(grace.echoes(|| soon, 16, 1 << 15, used_up), "at once");
    }

    #[test]
    fn a_place_is_waited_for_briefly_and_not_for_ever() {
        let mut grace = Grace::default();
        let mut waits = Vec::new();
        while grace.may_find_out_ms(3) > 0 {
            waits.push(grace.may_find_out_ms(3));
            grace.waited(3, waits[waits.len() - 1]);
        }
        assert_eq!(waits, [FIND_OUT_MS; (WAITS_MS / FIND_OUT_MS) as usize]);
        assert_eq!(grace.may_find_out_ms(4), FIND_OUT_MS, "another word");
    }

    #[test]
    fn who_is_refused_again_and_again_is_slowed() {
        let mut grace = Grace::default();
        let mut slowed = Vec::new();
        for _ in 0..10 {
            slowed.push(grace.slowed_ms(7, 5));
            grace.refused(7, 5);
        }
        assert_eq!(slowed, [0, 0, 2, 4, 8, 16, 32, 64, 100, 100]);
        assert_eq!(grace.slowed_ms(7, 5 + CALM_MS), 0);
    }

    #[test]
    fn who_has_no_unit_of_work_is_slowed_to_a_rate_and_never_for_long() {
        let mut grace = Grace::default();
        assert_eq!(grace.slowed_without_unit_ms(64 << 10), 16);
        assert_eq!(grace.slowed_without_unit_ms(1 << 30), SLOWEST_MS);
        let mut grace = Grace::default();
        let slowed: u64 = (0..1 << 18).map(|_| grace.slowed_without_unit_ms(16)).sum();
        assert_eq!(slowed, 1024, "4 MiB of small charges");
    }

    proptest! {
        /// A thread that catches everything gets at most two first graces in any calm time.
        #[test]
        fn graces_are_bounded(steps in proptest::collection::vec((0u64..50, 1u64..1 << 20), 1..500)) {
            let mut grace = Grace::default();
            let (mut now, mut granted) = (0, 0u64);
            for (pause, bytes) in steps {
                now += pause.min(CALM_MS - 1);
                if grace.spend(1, now, bytes) {
                    granted += bytes;
                } else {
                    grace.refused(1, now);
                }
            }
            prop_assert!(granted <= 2 * GRACE_BYTES);
        }

        /// However many threads an account has, and however often they are refused, their graces let
        /// through no more than the account's until it recovers.
        #[test]
        fn the_graces_of_an_account_are_bounded(
            steps in proptest::collection::vec((0usize..20, 0u64..200, 1u64..1 << 20), 1..2000),
            limit_bytes in 1u64..1 << 30,
        ) {
            let gate = Gate::default();
            gate.set_marks(limit_bytes, 0, 0);
            let mut threads = [Grace::default(); 20];
            let (mut now, mut granted) = (0, 0u64);
            for (thread, pause, bytes) in steps {
                now += pause;
                let grace = &mut threads[thread];
                if grace.spend(1, now, bytes) && gate.spend_grace(bytes) {
                    granted += bytes;
                } else {
                    grace.refused(1, now);
                }
            }
            prop_assert!(granted <= account_grace_bytes(limit_bytes));
        }

        /// For one word a thread waits a bounded time, and is then only slowed.
        #[test]
        fn waits_are_bounded(waits in proptest::collection::vec((0u64..=WAIT_MS, 0u64..1 << 24), 1..200)) {
            let mut grace = Grace::default();
            let (mut sum, mut slowed) = (0, 0);
            for (wait, charged) in waits {
                let may = grace.may_wait_ms(3, charged);
                prop_assert!(may <= WAIT_MS);
                sum += wait.min(may);
                slowed += charged / SLOW_BYTES_PER_MS;
                grace.waited(3, wait.min(may));
            }
            prop_assert!(sum <= WAITS_MS + slowed);
        }
    }
}
