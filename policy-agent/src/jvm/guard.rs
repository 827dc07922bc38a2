//! What stands between the VM and our code: panic containment and the re-entry latch.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics caught at a callback boundary since the agent was loaded.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `work`; a panic is counted and turned into `None`.
///
/// Unwinding into the VM's frames is undefined behaviour, and aborting would kill the
/// host, so every entry from the VM goes through here.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // Dropping a payload may itself panic; forgetting it leaks a few bytes instead.
            std::mem::forget(payload);
            None
        }
    }
}

thread_local! {
    /// How often this thread was turned away by the latch.
    static TURNED_AWAY: Cell<u32> = const { Cell::new(0) };
    /// Set while this thread is inside a sample, and for ever on the agent's own threads.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Proof that this thread is not already inside the agent. Released on drop.
pub(crate) struct Latch(());

impl Latch {
    /// `None` when the thread is already inside the agent or belongs to it: what it
    /// allocates is then the agent's own and is not charged.
    pub(crate) fn enter() -> Option<Latch> {
        let entered = BUSY.try_with(|busy| !busy.replace(true)).unwrap_or(false);
        if !entered {
            let _ = TURNED_AWAY.try_with(|count| count.set(count.get().wrapping_add(1)));
        }
        // Made only where the thread entered: to drop one opens the thread again.
        entered.then(|| Latch(()))
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        let _ = BUSY.try_with(|busy| busy.set(false));
    }
}

/// How often the calling thread was turned away so far: events of allocations that are the
/// agent's own.
pub(crate) fn turned_away() -> u32 {
    TURNED_AWAY.try_with(Cell::get).unwrap_or(0)
}

/// Marks the calling thread as one of the agent's own for the rest of its life.
pub(crate) fn belongs_to_agent() {
    let _ = BUSY.try_with(|busy| busy.set(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_and_counted() {
        let before = PANICS.load(Ordering::Relaxed);
        assert_eq!(contain(|| -> u32 { panic!("inside a callback") }), None);
        assert!(PANICS.load(Ordering::Relaxed) > before);
        assert_eq!(contain(|| 7), Some(7));
    }

    #[test]
    fn a_thread_inside_the_agent_does_not_enter_again() {
        let outer = Latch::enter().expect("first entry");
        for _ in 0..3 {
            assert!(
                Latch::enter().is_none(),
                "turned away however often it asks"
            );
        }
        drop(outer);
        assert!(Latch::enter().is_some());
    }

    #[test]
    fn a_thread_of_the_agent_never_enters() {
        std::thread::spawn(|| {
            belongs_to_agent();
            for turn in 1..=3 {
                assert!(Latch::enter().is_none());
                assert_eq!(turned_away(), turn);
            }
        })
        .join()
        .expect("no assertion failed");
    }
}
