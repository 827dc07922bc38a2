//! Keeps the JVM's sampler right before JDK 25 (JDK-8356372).
//!
//! # What is wrong
//! An allocation that does not fit the rest of its thread's buffer is made outside, if that rest is more than the
//! buffer's size divided by `TLABRefillWasteFraction` (64): the rest would be too much to waste. With sampling on, the
//! JVM then adds the rest of the buffer to the bytes since the latest sample, each time, though nobody has allocated
//! them. The next object for which the buffer is refilled is judged with all of these, and sampled too often. Arrays of
//! 1 to 4 KiB in small buffers came out up to twice too high.
//!
//! # What is done
//! With 1 no rest is too much, so such an allocation refills the buffer: nothing is made outside while a new buffer can
//! be had, and no bytes are added twice. The rest of the buffer is wasted, less than the size of the object that did
//! not fit, and the JVM takes it for allocated by that object: it samples an object of s bytes that came after a waste of x
//! bytes with `p(s + x)` instead of `p(s)`, where `p(b) = 1 - e^(-b/I)`. So a sample of an object that is the first in its
//! buffer is kept with the probability `p(s) / p(s + x)`. The x of one refill is not known; the thread's mean since the
//! latest collection is, and x is less than s.
//!
//! The flag can be set in `Agent_OnLoad` only. The JVM reads it when it sizes the buffer of its first thread, after
//! that, and again at each refill.
//!
//! # When it is undone
//! Where arrays are about as large as buffers, half of what is allocated could be wasted, and collections come twice
//! as often. So waste is measured at the sampled refills ([`Waste`]): if it is more than a tenth of the buffers, the flag
//! gets its value back, for good. Samples are then what the JVM makes of them, and the capability says so.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::options::TlabRefill;
use policy_jvm::{
    BufferFields, Buffers, ChangedFlag, FlagChange, FlagKept, Jni, JvmTi, Refill, Start,
};

/// The first JDK whose sampler counts right.
const FIRST_RIGHT: u32 = 25;

const CHANGE: FlagChange = FlagChange {
    name: "TLABRefillWasteFraction",
    default: 64,
    value: 1,
};

/// The remedy, in words for the user.
const REMEDY: &str = "start the JVM with -XX:TLABRefillWasteFraction=1";

/// Set at the load, if samples of refills are to be thinned.
static FIELDS: OnceLock<BufferFields> = OnceLock::new();
static BUFFERS: OnceLock<Buffers> = OnceLock::new();
/// Set if the agent has changed the flag, and may undo it.
static CHANGED: OnceLock<ChangedFlag> = OnceLock::new();
static WASTE: Waste = Waste::new();
/// The flag has its value back.
static UNDONE: AtomicBool = AtomicBool::new(false);
/// The log has said so.
static UNDONE_TOLD: AtomicBool = AtomicBool::new(false);

/// Sets the flag, if the JVM needs it and the option does not forbid it; whether samples are right. Why they are not is
/// logged.
pub(crate) fn correct(start: &Start, release: u32, wanted: TlabRefill) -> bool {
    if release >= FIRST_RIGHT {
        return true;
    }
    let keep = wanted == TlabRefill::Keep;
    let changed = start.change_flag(&CHANGE, !keep);
    if let (Ok(changed), TlabRefill::Auto) = (changed.as_ref(), wanted) {
        let _ = CHANGED.set(*changed);
    }
    let why = match changed {
        Ok(_) | Err(FlagKept::Already(_)) => {
            match start.buffer_fields() {
                Ok(fields) => drop(FIELDS.set(fields)),
                Err(why) => tracing::warn!("the rest of a buffer counts as allocated ({why})"),
            }
            return true;
        }
        Err(FlagKept::Left(_)) if keep => "tlab-refill=keep".to_owned(),
        Err(FlagKept::Left(_)) => "the JVM runs already".to_owned(),
        Err(why @ FlagKept::Chosen(_)) => why.to_string(),
        Err(why) => {
            tracing::warn!("{} cannot be changed: {why}", CHANGE.name);
            why.to_string()
        }
    };
    tracing::info!(
        "before JDK {FIRST_RIGHT} accounts of arrays can be too high, and {} is left alone ({why}); {REMEDY}",
        CHANGE.name
    );
    false
}

/// Finds where threads have their buffers, if samples of refills are to be thinned. On a Java thread, in the live phase.
pub(crate) fn locate(jvmti: &JvmTi, jni: &Jni) {
    let Some(fields) = FIELDS.get() else { return };
    let thread = jvmti.current_thread(jni);
    match thread.and_then(|thread| fields.locate(jni, &thread)) {
        Some(buffers) => drop(BUFFERS.set(buffers)),
        None => tracing::warn!("the rest of a buffer counts as allocated (threads are not found)"),
    }
}

/// Whether too much was wasted, and the JVM does as it likes again. Any thread.
pub(crate) fn is_undone() -> bool {
    UNDONE.load(Ordering::Relaxed)
}

/// Tells the log, once, that the flag has its value back. A thread of the agent.
pub(crate) fn tell() {
    if is_undone() && !UNDONE_TOLD.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "{} is {} again: this program would waste more than a tenth of its allocation buffers; before JDK {FIRST_RIGHT} accounts of arrays can be too high now",
            CHANGE.name,
            CHANGE.default
        );
    }
}

/// Whether a sample is one too many: of an object for which its buffer was refilled. On the allocating thread: four
/// loads, and for a refill three more and two exponentials.
pub(crate) fn is_surplus(jni: &Jni, size_bytes: u64, interval_bytes: u64) -> bool {
    if is_undone() {
        return false;
    }
    let Some(refill) = (BUFFERS.get()).and_then(|buffers| buffers.refill(jni, size_bytes)) else {
        return false;
    };
    if let Some(changed) = CHANGED.get()
        && WASTE.is_too_much(&refill)
    {
        changed.put_back();
        UNDONE.store(true, Ordering::Relaxed);
        return false;
    }
    let kept = share_kept(size_bytes, refill.mean_waste_bytes, interval_bytes);
    kept < 1.0 && fastrand::f64() >= kept
}

/// How much of their buffers threads waste, over some sampled refills: their number in the upper half, the sum of the
/// shares in 1/1024 in the lower one. Relaxed, and refills that come during a change of window may be lost: it is a mean.
struct Waste(AtomicU64);

impl Waste {
    /// Refills in a window.
    const WINDOW: u64 = 256;
    /// The most of the buffers that may be wasted: one part in so many.
    const MOST: u64 = 10;
    const ONE: f64 = 1024.0;

    const fn new() -> Waste {
        Waste(AtomicU64::new(0))
    }

    /// Counts a refill; whether it ends a window in which too much was wasted.
    fn is_too_much(&self, refill: &Refill) -> bool {
        let Some(buffer_bytes) = refill.buffer_bytes.filter(|bytes| *bytes > 0) else {
            return false;
        };
        let share = (refill.mean_waste_bytes / buffer_bytes as f64).min(1.0);
        let counted = 1 << 32 | (share * Self::ONE) as u64;
        let sum = self.0.fetch_add(counted, Ordering::Relaxed) + counted;
        let (refills, shares) = (sum >> 32, sum & u64::from(u32::MAX));
        if refills < Self::WINDOW {
            return false;
        }
        self.0.store(0, Ordering::Relaxed);
        shares * Self::MOST > refills * Self::ONE as u64
    }
}

/// The share of such samples that is kept.
fn share_kept(size_bytes: u64, mean_waste_bytes: f64, interval_bytes: u64) -> f64 {
    if interval_bytes == 0 || size_bytes == 0 {
        return 1.0;
    }
    let size = size_bytes as f64;
    let p = |bytes: f64| -(-bytes / interval_bytes as f64).exp_m1();
    p(size) / p(size + mean_waste_bytes.min(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_buffers_may_be_wasted_and_no_more() {
        let refill = |waste: f64, buffer_bytes| Refill {
            mean_waste_bytes: waste,
            buffer_bytes,
        };
        let judged = |waste| {
            let meter = Waste::new();
            (0..Waste::WINDOW * 3).any(|_| meter.is_too_much(&refill(waste, Some(32 << 10))))
        };
        assert!(judged(8.0 * 1024.0));
        assert!(judged(4.0 * 1024.0));
        assert!(!judged(3.0 * 1024.0));
        let meter = Waste::new();
        for _ in 1..Waste::WINDOW {
            assert!(!meter.is_too_much(&refill(9e9, Some(1024))), "too few yet");
            assert!(!meter.is_too_much(&refill(9e9, None)), "nothing is known");
        }
        assert!(meter.is_too_much(&refill(9e9, Some(1024))));
    }

    #[test]
    fn what_is_kept_undoes_what_the_waste_adds() {
        assert_eq!(share_kept(1000, 0.0, 65_536), 1.0);
        assert!((share_kept(1000, 500.0, 1 << 30) - 2.0 / 3.0).abs() < 1e-3);
        assert!(
            (share_kept(1000, 9e9, 1 << 30) - 0.5).abs() < 1e-3,
            "never more than the size"
        );
        assert!(
            share_kept(1_000_000, 500_000.0, 1024) > 0.999,
            "certain with or without"
        );
        assert_eq!(share_kept(1000, 500.0, 0), 1.0, "every object is sampled");
    }
}
