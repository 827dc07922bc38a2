//! Contains panics at the boundary to the VM, and keeps events of a thread from nesting.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics caught at a callback boundary since the agent was loaded.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// How many panics were caught since the agent was loaded. Any thread, one load.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Runs `work`; a panic is counted and turned into `None`.
///
/// Unwinding into the VM's frames is undefined behaviour, and aborting would kill the
/// host, so every entry from the VM goes through here.
pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
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
    /// How many events of this thread were rejected by the latch.
    static TURNED_AWAY: Cell<u32> = const { Cell::new(0) };
    /// Set while this thread is inside an event, and permanently on the agent's own threads.
    static BUSY: Cell<bool> = const { Cell::new(false) };
    /// Set permanently on the agent's own threads.
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is a thread of the host inside an event. No names are looked up there.
pub(crate) fn is_hosts_event() -> bool {
    let is = |flag: &Cell<bool>| flag.get();
    BUSY.try_with(is).unwrap_or(true) && !OURS.try_with(is).unwrap_or(false)
}

/// Whether the calling thread is one of the agent's own. Any thread.
pub(crate) fn is_agents() -> bool {
    OURS.try_with(Cell::get).unwrap_or(false)
}

/// Proof that this thread is not already inside the agent. Released on drop.
pub struct Latch(());

impl Latch {
    /// `None` when the thread is already inside the agent or belongs to it: what it
    /// allocates is then the agent's own and is not charged.
    pub fn enter() -> Option<Latch> {
        let entered = BUSY.try_with(|busy| !busy.replace(true)).unwrap_or(false);
        if !entered {
            let _ = TURNED_AWAY.try_with(|count| count.set(count.get().wrapping_add(1)));
        }
        // Made only if the thread entered: dropping it releases the latch.
        entered.then(|| Latch(()))
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        let _ = BUSY.try_with(|busy| busy.set(false));
    }
}

/// How many events of the calling thread were rejected so far: those of the agent's own allocations.
pub fn turned_away() -> u32 {
    TURNED_AWAY.try_with(Cell::get).unwrap_or(0)
}

/// Marks the calling thread as one of the agent's own for the rest of its life.
pub fn belongs_to_agent() {
    let _ = BUSY.try_with(|busy| busy.set(true));
    let _ = OURS.try_with(|ours| ours.set(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_and_counted() {
        let before = panics();
        assert_eq!(contain(|| -> u32 { panic!("inside a callback") }), None);
        assert!(panics() > before);
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
    fn a_thread_of_the_host_is_in_an_event_while_it_holds_the_latch() {
        assert!(!is_hosts_event());
        let latch = Latch::enter().expect("first entry");
        assert!(is_hosts_event());
        drop(latch);
        assert!(!is_hosts_event());
    }

    #[test]
    fn a_thread_of_the_agent_never_enters() {
        std::thread::spawn(|| {
            belongs_to_agent();
            assert!(!is_hosts_event());
            for turn in 1..=3 {
                assert!(Latch::enter().is_none());
                assert_eq!(turned_away(), turn);
            }
        })
        .join()
        .expect("no assertion failed");
    }
}
