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
//! not fit, and the JVM takes it for allocated by that object. So a surplus of that size remains (docs/limitations.md).
//!
//! The flag can be set in `Agent_OnLoad` only. The JVM reads it when it sizes the buffer of its first thread, after
//! that, and again at each refill.

use policy_jvm::{FlagChange, FlagKept, Start};

/// The first JDK whose sampler counts right.
const FIRST_RIGHT: u32 = 25;

const CHANGE: FlagChange = FlagChange {
    name: "TLABRefillWasteFraction",
    default: 64,
    value: 1,
};

/// What a user can do.
const REMEDY: &str = "start the JVM with -XX:TLABRefillWasteFraction=1";

/// Sets the flag, if the JVM needs it and `keep` does not forbid it; whether samples are right. Why they are not is
/// logged.
pub(super) fn correct(start: &Start, release: u32, keep: bool) -> bool {
    if release >= FIRST_RIGHT {
        return true;
    }
    let why = match start.change_flag(&CHANGE, !keep) {
        Ok(()) | Err(FlagKept::Already(_)) => return true,
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
