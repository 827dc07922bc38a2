//! The sums of a purse over its thinned large arrays ([`crate::sampling::thinning_error`]), as atomics.
//!
//! # Rules
//! 1. Allocating threads and the thread that reports frees only add, without locks. What is drawn is
//!    added as floating-point numbers, by compare and exchange: it is an error's estimate and need not
//!    come back to exactly zero. What is kept and refunded are the records' integers, and does.
//! 2. After a collection that decides on large arrays the enforcer alone takes off what it freed
//!    ([`ThinnedPlace::settle`]). What is drawn meanwhile may be taken off with it, in its
//!    share; it is undecided then and its kept arrays are charged, so the share is nearly 1 for it.
//! 3. Nothing here is charged or refunded: a purse that holds nothing may still have an error.

use crate::sampling::thinning_error::{Drawn, Thinned};
use crate::sync::{AtomicU64, Ordering};

/// The sums of one purse: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ThinnedPlace {
    /// Floating-point numbers, as their bits.
    drawn: AtomicU64,
    weighted: AtomicU64,
    decided: AtomicU64,
    /// Sums that only grow (modulo 2^64).
    kept: AtomicU64,
    refunded: AtomicU64,
    /// `refunded` at the latest decision.
    refunded_before: AtomicU64,
    passed_bytes: AtomicU64,
    widest_bytes: AtomicU64,
}

/// Changes a floating-point number; gives the new one.
fn change(place: &AtomicU64, new: impl Fn(f64) -> f64) -> f64 {
    let mut before = place.load(Ordering::Relaxed);
    loop {
        let after = new(f64::from_bits(before));
        match place.compare_exchange_weak(
            before,
            after.to_bits(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return after,
            Err(found) => before = found,
        }
    }
}

fn real(place: &AtomicU64) -> f64 {
    f64::from_bits(place.load(Ordering::Relaxed))
}

impl ThinnedPlace {
    /// A large array was drawn; `passed_over` is the interval for which it was passed over, if it
    /// was. Allocating threads.
    pub(crate) fn drawn(&self, array: &Drawn, passed_over: Option<u64>) {
        change(&self.weighted, |sum| sum + array.weighted);
        change(&self.drawn, |sum| sum + array.variance);
        if let Some(interval_bytes) = passed_over {
            self.passed_bytes
                .fetch_add(array.bytes as u64, Ordering::Relaxed);
            self.widest_bytes
                .fetch_max(interval_bytes, Ordering::Relaxed);
        }
    }

    /// One that was kept is charged. Allocating threads.
    pub(crate) fn kept(&self, variance: u64) {
        self.kept.fetch_add(variance, Ordering::Relaxed);
    }

    /// One is refunded. As [`crate::ledger::Ledger::refund`].
    pub(crate) fn refunded(&self, variance: u64) {
        self.refunded.fetch_add(variance, Ordering::Release);
    }

    /// The sums now. Any thread.
    pub(crate) fn read(&self) -> Thinned {
        // Refunds first: each comes with what was kept.
        let refunded = self.refunded.load(Ordering::Acquire);
        let before = self.refunded_before.load(Ordering::Relaxed);
        let kept = self.kept.load(Ordering::Relaxed);
        Thinned {
            drawn: real(&self.drawn),
            weighted: real(&self.weighted),
            decided: real(&self.decided),
            kept: kept.wrapping_sub(before) as f64,
            held: kept.wrapping_sub(refunded) as f64,
            passed_bytes: self.passed_bytes.load(Ordering::Relaxed) as f64,
            widest_bytes: self.widest_bytes.load(Ordering::Relaxed),
        }
    }

    /// Takes off what a collection freed that has decided on large arrays and whose refunds are in. The
    /// enforcer alone.
    pub(crate) fn settle(&self) {
        let passed_bytes = self.passed_bytes.load(Ordering::Relaxed);
        let refunded = self.refunded.load(Ordering::Acquire);
        let sums = self.read();
        if sums.is_none() {
            return;
        }
        let left = sums.share_left();
        change(&self.weighted, |sum| sum * left);
        let drawn = change(&self.drawn, |sum| sum * left);
        self.decided.store(drawn.to_bits(), Ordering::Relaxed);
        self.refunded_before.store(refunded, Ordering::Relaxed);
        // Arrays that are passed over meanwhile stay.
        self.passed_bytes.fetch_sub(passed_bytes, Ordering::Relaxed);
    }

    /// Resets the sums for the next owner of the purse.
    pub(crate) fn reset(&self) {
        self.drawn.store(0, Ordering::Relaxed);
        self.weighted.store(0, Ordering::Relaxed);
        self.decided.store(0, Ordering::Relaxed);
        self.widest_bytes.store(0, Ordering::Relaxed);
        let before = self.refunded.load(Ordering::Relaxed);
        self.refunded_before.store(before, Ordering::Relaxed);
        self.passed_bytes.store(0, Ordering::Relaxed);
    }
}
