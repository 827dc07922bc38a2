//! The door of an account: whether a new request may enter its service.
//!
//! A circuit breaker. While the account is over its limit the door is shut (the gate's word says so), and
//! requests are turned away before any code of the service runs. One at a time is let in all the same, as a
//! *probe* (half-open): otherwise no request could ever let memory go.
//!
//! ```text
//!              knock, pause over ──▶ probe's ticket
//!  ┌─────────┐ ───────────────────────────────▶ ┌───────┐
//!  │ pausing │                                  │ busy  │  all others are turned away
//!  └─────────┘ ◀─────────────────────────────── └───────┘
//!              end of the probe: a pause
//! ```
//!
//! # Rules
//! 1. At most one probe is inside. Its place is a lease: if its end is never told (its thread was ended
//!    by force), the place is free again after [`LEASE_MS`].
//! 2. After a probe there is a pause, of [`FIRST_PAUSE_MS`] first, then twice the one before, up to
//!    [`LONGEST_PAUSE_MS`]: a service that only fills up further gets little. A request that says by its
//!    method that it lets go (`DELETE`) skips the pause, not the busy probe. After a *light* probe, during which
//!    the account was charged no more than [`LIGHT_SHARE`] of its limit, the pause is [`LIGHT_PAUSE_MS`] at the
//!    most: some services let go of what was deleted only as one thread after the other gets another request.
//! 3. A *heavy* probe, whose own thread was charged more than [`HEAVY_SHARE`] of the limit, is followed by a pause in
//!    proportion: as long as brings the pace of such probes down to a limit in [`MS_OF_LIMIT`] (2 % of it a second), and
//!    [`LONGEST_HEAVY_PAUSE_MS`] at the most, because what lets go may come by the same way as what takes. What other
//!    threads of the account were charged meanwhile does not count: so a probe on virtual threads, or of a program that
//!    asked, is never known to be heavy.
//!    A probe of which only the beginning was seen, because it goes on elsewhere, is never light.
//! 4. The enforcer begins anew ([`Door::reset`]) each time that it shuts the door, and when evidence shows that the
//!    account has let go of more than [`LET_GO_SHARE`] of its limit since the evidence before. It leaves a probe that is
//!    still inside its place.
//! 5. The end of a probe counts only for the lease that it was given (by its ticket).
//!
//! 6. Nobody is made to wait at a door: it may be on an event loop, or hold a thread that others need.
//!
//! The same breaker answers programs that ask themselves ([`Core::ask`](crate::core::Core::ask)), also for accounts
//! without a door.
//!
//! Before it is asked, a request of a route that keeps next to nothing goes in freely while there is room for it
//! ([`super::routes`]).
//!
//! Everything is one atomic word, so the rules hold whatever threads do (model: `one_probe_at_a_time`).

use crate::sync::{AtomicU64, Ordering};

/// How long a probe keeps its place at the most, in milliseconds.
pub const LEASE_MS: u64 = 30_000;
/// The pause after the first probe, in milliseconds.
pub const FIRST_PAUSE_MS: u64 = 100;
/// The longest pause, in milliseconds.
pub const LONGEST_PAUSE_MS: u64 = 1_600;
/// The longest pause after a light probe, in milliseconds.
pub const LIGHT_PAUSE_MS: u64 = 400;
/// A light probe's charges are at most the limit divided by this.
pub const LIGHT_SHARE: u64 = 1_024;
/// A heavy probe's own charges are more than the limit divided by this.
pub const HEAVY_SHARE: u64 = 32;
/// An account that lets go of more than the limit divided by this between two collections of all memory has no pause.
pub const LET_GO_SHARE: u64 = 8;
/// How long heavy probes take at the least until they were charged the whole limit, in milliseconds.
pub const MS_OF_LIMIT: u64 = HEAVY_SHARE * LONGEST_PAUSE_MS;
/// The longest pause after a heavy probe, in milliseconds.
pub const LONGEST_HEAVY_PAUSE_MS: u64 = 6_400;
/// 503, the answer of a door of which the policy says nothing else.
pub(super) const UNAVAILABLE: u16 = 503;
/// A client is told to wait so long while a probe is inside, in milliseconds; longer if the probe is heavy already.
const BUSY_RETRY_MS: u64 = 1_000;

pub(super) const BUSY: u64 = 1 << 62;
const STEP: u64 = 1 << 59;
const MAX_STEPS: u64 = 7;
const UNTIL: u64 = STEP - 1;
/// The step whose pause is [`LIGHT_PAUSE_MS`].
const LIGHT_STEPS: u64 = 2;
const _: () = assert!(FIRST_PAUSE_MS << LIGHT_STEPS == LIGHT_PAUSE_MS);

/// The door's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It goes in.
    In,
    /// It goes in as the probe with this ticket, which is never zero. [`Door::end`] wants it.
    Probe(u64),
    /// It goes in freely, because its route is cheap. [`Core::probe_ended`](crate::core::Core::probe_ended) wants the
    /// ticket.
    Free(u64),
    /// It is turned away, and may come again after so many milliseconds.
    Away {
        /// At least 1.
        retry_after_ms: u64,
    },
}

/// Of a ticket: enough to tell the work that was let in with it from what was let in before and after.
pub const MARK: u64 = (1 << 31) - 1;

/// A request as the door sees it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The path inside the application, from `/` on.
    pub path: &'a str,
    /// The number of its route ([`super::routes`]); 0 if it has none.
    pub route: u32,
}

impl Request<'_> {
    /// Whether its method says that it lets something go.
    pub(super) fn lets_go(&self) -> bool {
        self.method.eq_ignore_ascii_case("DELETE")
    }
}

/// The charges while a probe was inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeCharges {
    /// To the account, by all threads, in bytes.
    pub all_bytes: u64,
    /// To it by the probe's own thread alone, in bytes.
    pub own_bytes: u64,
    /// The limit of the account in bytes.
    pub limit_bytes: u64,
}

impl ProbeCharges {
    /// Those of a probe that has been charged so much until now, and goes on.
    pub(super) fn of_more(self) -> ProbeCharges {
        ProbeCharges {
            all_bytes: u64::MAX,
            ..self
        }
    }

    fn is_light(self) -> bool {
        self.all_bytes <= self.limit_bytes / LIGHT_SHARE
    }

    /// The shortest pause after it, in milliseconds: rule 3. 0 if it is not heavy.
    pub(super) fn least_pause_ms(self) -> u64 {
        if self.own_bytes <= self.limit_bytes / HEAVY_SHARE {
            return 0;
        }
        let pause_ms = self.own_bytes.saturating_mul(MS_OF_LIMIT) / self.limit_bytes.max(1);
        pause_ms.min(LONGEST_HEAVY_PAUSE_MS)
    }
}

/// The breaker of one account. See the rules of the module. Any thread.
#[derive(Debug, Default)]
pub struct Door(AtomicU64);

/// The word, unpacked.
#[derive(Debug, Clone, Copy)]
struct State {
    is_busy: bool,
    /// How often the pause was doubled.
    step: u64,
    /// When the pause or the lease ends.
    until_ms: u64,
}

impl State {
    fn of(word: u64) -> State {
        State {
            is_busy: word & BUSY != 0,
            step: (word / STEP) & MAX_STEPS,
            until_ms: word & UNTIL,
        }
    }

    fn word(self) -> u64 {
        let busy = if self.is_busy { BUSY } else { 0 };
        busy | (self.step.min(MAX_STEPS) * STEP) | (self.until_ms & UNTIL)
    }
}

impl Door {
    /// Asks to go in as a probe: its ticket, or for how many milliseconds to stay away. `now_ms` is the
    /// uptime.
    ///
    /// # Errors
    /// The milliseconds, if a probe is inside or the pause lasts.
    pub fn knock(&self, now_ms: u64, lets_go: bool) -> Result<u64, u64> {
        loop {
            let word = self.0.load(Ordering::Acquire);
            let state = State::of(word);
            if now_ms < state.until_ms {
                if state.is_busy {
                    return Err(BUSY_RETRY_MS);
                }
                if !lets_go {
                    return Err(state.until_ms - now_ms);
                }
            }
            let ticket = State {
                is_busy: true,
                until_ms: now_ms + LEASE_MS,
                ..state
            }
            .word();
            let order = (Ordering::AcqRel, Ordering::Acquire);
            if (self.0)
                .compare_exchange(word, ticket, order.0, order.1)
                .is_ok()
            {
                return Ok(ticket);
            }
        }
    }

    /// The probe with this ticket has ended. Nothing if its lease was over and another has its place.
    pub fn end(&self, ticket: u64, now_ms: u64, charges: ProbeCharges) {
        let state = State::of(ticket);
        if !state.is_busy {
            return;
        }
        let (longest_ms, most_steps) = match charges.is_light() {
            true => (LIGHT_PAUSE_MS, LIGHT_STEPS),
            false => (LONGEST_PAUSE_MS, MAX_STEPS),
        };
        let pause_ms = (FIRST_PAUSE_MS << state.step).min(longest_ms);
        let after = State {
            is_busy: false,
            step: (state.step + 1).min(most_steps),
            until_ms: now_ms + pause_ms.max(charges.least_pause_ms()),
        };
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = (self.0).compare_exchange(ticket, after.word(), order.0, order.1);
    }

    /// Whether a probe is inside, or was when its lease ended. One load.
    pub(super) fn is_busy(&self) -> bool {
        State::of(self.0.load(Ordering::Acquire)).is_busy
    }

    /// Whether the probe with this mark is inside, which is the end of its ticket (31 bits, and no more in the mark). One
    /// load.
    pub fn is_inside(&self, mark: u32) -> bool {
        let word = self.0.load(Ordering::Acquire);
        State::of(word).is_busy && word & MARK == u64::from(mark)
    }

    /// Begins anew, without a pause. Only for the enforcer: rule 4.
    pub fn reset(&self) {
        let anew = |word: u64| (!State::of(word).is_busy).then_some(0);
        let _ = (self.0).fetch_update(Ordering::AcqRel, Ordering::Acquire, anew);
    }
}

/// The part of a policy that rules the door of an account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoorRules {
    /// The reserve: in-flight requests and background threads may use this share of the limit beyond it, of
    /// 0 to 1.
    pub reserve_share: f64,
}

impl DoorRules {
    /// The reserve in bytes: the share of the limit, and at most half of what the latest collection left
    /// free of the heap. The neighbours' share of the heap bounds it: an account that is *x* beyond its
    /// limit has used *x* of what was free, so it uses a third of that at the most.
    pub fn reserve_bytes(&self, limit_bytes: u64, free_heap_bytes: u64) -> u64 {
        let share = (limit_bytes as f64 * self.reserve_share) as u64;
        share.min(free_heap_bytes / 2)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT_BYTES: u64 = 160 << 20;
    const LIGHT: ProbeCharges = charged(LIMIT_BYTES / LIGHT_SHARE, 0);
    const USUAL: ProbeCharges = charged(LIMIT_BYTES / LIGHT_SHARE + 1, 0);

    const fn charged(all_bytes: u64, own_bytes: u64) -> ProbeCharges {
        ProbeCharges {
            all_bytes,
            own_bytes,
            limit_bytes: LIMIT_BYTES,
        }
    }

    #[test]
    fn one_probe_at_a_time_and_pauses_that_double() {
        let door = Door::default();
        let mut now_ms = 5_000;
        for pause_ms in [100, 200, 400, 800, 1_600, 1_600, 1_600, 1_600, 1_600, 1_600] {
            let ticket = door.knock(now_ms, false).expect("it pauses no more");
            assert_eq!(door.knock(now_ms + 1, false), Err(BUSY_RETRY_MS));
            assert_eq!(door.knock(now_ms + 1, true), Err(BUSY_RETRY_MS));
            now_ms += 10;
            door.end(ticket, now_ms, USUAL);
            assert_eq!(door.knock(now_ms, false), Err(pause_ms));
            assert_eq!(door.knock(now_ms + pause_ms - 1, false), Err(1));
            now_ms += pause_ms;
        }
        door.reset();
        let ticket = door.knock(now_ms, false).expect("it began anew");
        door.end(ticket, now_ms, charged(LIMIT_BYTES, LIMIT_BYTES));
        assert!(door.knock(now_ms, true).is_ok(), "a delete skips the pause");
    }

    #[test]
    fn light_probes_have_short_pauses() {
        let door = Door::default();
        let mut now_ms = 5_000;
        let probes = [
            (LIGHT, 100),
            (LIGHT, 200),
            (LIGHT, 400),
            (LIGHT, 400),
            (USUAL, 400),
            (USUAL, 800),
            (USUAL, 1_600),
            (LIGHT, 400),
            (LIGHT, 400),
            // It goes on.
            (LIGHT.of_more(), 400),
            (LIGHT.of_more(), 800),
        ];
        for (charges, pause_ms) in probes {
            let ticket = door.knock(now_ms, false).expect("it pauses no more");
            door.end(ticket, now_ms, charges);
            assert_eq!(door.knock(now_ms, false), Err(pause_ms));
            now_ms += pause_ms;
        }
    }

    #[test]
    fn heavy_probes_have_pauses_in_proportion() {
        let door = Door::default();
        let mut now_ms = 5_000;
        let heavy = |share: u64| charged(LIMIT_BYTES, LIMIT_BYTES / share);
        let probes = [
            (heavy(8), 6_400),
            (heavy(10), 5_120),
            (heavy(32), 400),
            (heavy(31), 1_651),
            // Others were charged, not the probe.
            (charged(LIMIT_BYTES, 0), 1_600),
            (heavy(1), 6_400),
            (LIGHT, 400),
        ];
        for (charges, pause_ms) in probes {
            let ticket = door.knock(now_ms, false).expect("it pauses no more");
            door.end(ticket, now_ms, charges);
            assert_eq!(door.knock(now_ms, false), Err(pause_ms), "{charges:?}");
            now_ms += pause_ms;
        }
        let unlimited = ProbeCharges {
            own_bytes: u64::MAX,
            ..ProbeCharges::default()
        };
        assert_eq!(unlimited.least_pause_ms(), LONGEST_HEAVY_PAUSE_MS);
    }

    #[test]
    fn a_mark_is_inside_until_its_probe_ends() {
        let door = Door::default();
        let mark = |ticket| (ticket & MARK) as u32;
        let ticket = door.knock(1_000, false).expect("free");
        assert!(door.is_inside(mark(ticket)) && !door.is_inside(mark(ticket) + 1));
        door.reset();
        assert!(door.is_inside(mark(ticket)), "it keeps its place");
        door.end(ticket, 1_001, USUAL);
        assert!(!door.is_inside(mark(ticket)));
        let next = door.knock(2_000, false).expect("it pauses no more");
        assert!(door.is_inside(mark(next)) && !door.is_inside(mark(ticket)));
    }

    #[test]
    fn a_lease_ends_and_its_probe_with_it() {
        let door = Door::default();
        let lost = door.knock(1_000, false).expect("free");
        door.reset();
        assert!(door.knock(1_000 + LEASE_MS - 1, false).is_err(), "inside");
        let next = door.knock(1_000 + LEASE_MS, false).expect("free again");
        door.end(lost, 1_001 + LEASE_MS, USUAL);
        assert!(door.knock(1_002 + LEASE_MS, true).is_err(), "the next one");
        door.end(next, 1_003 + LEASE_MS, USUAL);
        assert!(door.knock(1_003 + LEASE_MS, true).is_ok());
    }

    proptest! {
        /// Whatever comes in whatever order, one probe is inside at the most while its lease lasts, and
        /// nobody waits longer than the longest pause after it. However they come, heavy probes of an eighth of the limit
        /// and less are charged no more than 2 % of it in a second, but for the one that is inside.
        #[test]
        fn never_two_never_shut_for_ever_and_never_fast(
            steps in proptest::collection::vec(
                (0u64..3_000, any::<bool>(), 0u8..4, 0..=LIMIT_BYTES / 8), 1..80),
        ) {
            let door = Door::default();
            let mut now_ms = 0;
            let mut inside: Option<(u64, u64)> = None;
            let mut heavy = None;
            for (pass_ms, lets_go, kind, own_bytes) in steps {
                now_ms += pass_ms;
                match (kind, inside) {
                    (0, Some((ticket, _))) => {
                        let charges = charged(own_bytes, own_bytes);
                        door.end(ticket, now_ms, charges);
                        inside = None;
                        heavy = Some((now_ms, own_bytes)).filter(|_| charges.least_pause_ms() > 0);
                    }
                    (1, _) => {
                        door.reset();
                        heavy = None;
                    }
                    _ => {
                        let answer = door.knock(now_ms, lets_go);
                        match (answer, inside) {
                            (Ok(_), Some((_, since_ms))) => {
                                prop_assert!(now_ms >= since_ms + LEASE_MS);
                            }
                            (Err(wait_ms), None) => prop_assert!(wait_ms <= LONGEST_HEAVY_PAUSE_MS),
                            _ => {}
                        }
                        if let (Ok(_), Some((ended_ms, bytes)), false) = (answer, heavy, lets_go) {
                            let pace = bytes * 1_000 / (now_ms - ended_ms).max(1);
                            prop_assert!(pace <= LIMIT_BYTES / 51, "{pace}");
                        }
                        if let Ok(ticket) = answer {
                            prop_assert!(i64::try_from(ticket).is_ok_and(|ticket| ticket > 0));
                            inside = Some((ticket, now_ms));
                        }
                    }
                }
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    /// Of two requests and the end of a third, one at the most is inside with it.
    #[test]
    fn one_probe_at_a_time() {
        loom::model(|| {
            let door = Arc::new(Door::default());
            let inside = door.knock(1, false).unwrap();
            let other = {
                let door = door.clone();
                thread::spawn(move || door.knock(1_000, true).is_ok())
            };
            door.end(inside, 1_000, ProbeCharges::default());
            let own = door.knock(1_000, true).is_ok();
            assert!(!(own && other.join().unwrap()));
        });
    }
}
