//! The life of an entry that stands for an object of the VM: a class or a class loader.
//!
//! ```text
//! free ──open──▶ live ──end──▶ ending ──▶ dead ──recycle──▶ free, generation + 1
//! ```
//!
//! The object's tag carries index and generation, so a tag of an earlier life names nobody.
//! An object that was itself sampled when it was allocated carried a record's tag before; the
//! entry keeps it as *displaced*, and whoever ends the entry refunds it.
//!
//! # Rules
//! 1. An entry is ended by whoever learns first that its object is gone: `ObjectFree`, which
//!    names it by its tag, or the janitor, which finds its weak reference cleared. The state
//!    and the generation are one word, and one exchange of it decides: the other of the two
//!    changes nothing, however late it comes.
//! 2. Who has won takes the displaced tag *before* it makes the entry dead, and touches it no
//!    more after that. So the next owner of a recycled entry never loses its displaced tag to
//!    the end of an earlier one, and none is left behind.
//! 3. Only the janitor recycles, and only what is dead.
//! 4. Two threads may number one object at once. Each entry then keeps the same displaced tag,
//!    because each thread has read it before either wrote. The object carries one of the two
//!    tags and its `ObjectFree` ends that entry; the other, the *twin*, ends by its weak
//!    reference. Both refund the displaced tag, which a record takes once (its tag has a
//!    generation too), and neither does so before the object is gone.

use crate::sync::{AtomicU64, Ordering};

const FREE: u64 = 0;
const LIVE: u64 = 1;
const ENDING: u64 = 2;
const DEAD: u64 = 3;

const STATE_BITS: u32 = 2;

const fn word(generation: u32, state: u64) -> u64 {
    (generation as u64) << STATE_BITS | state
}

const fn state_of(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1)
}

const fn generation_of(word: u64) -> u32 {
    (word >> STATE_BITS) as u32
}

/// State, generation and displaced tag of one entry.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Generation and state.
    word: AtomicU64,
    /// The bits of a tag; 0 is none.
    displaced: AtomicU64,
}

impl Life {
    /// The entry stands for an object now, which carried `displaced` (0: no tag). Everything
    /// else of the entry must be stored before. By the owner of the free entry.
    pub(crate) fn open(&self, displaced: i64) {
        self.displaced.store(displaced as u64, Ordering::Relaxed);
        self.word
            .store(word(self.generation(), LIVE), Ordering::Release);
    }

    /// Which of the successive owners of the entry.
    pub(crate) fn generation(&self) -> u32 {
        generation_of(self.word.load(Ordering::Relaxed))
    }

    pub(crate) fn is_live(&self) -> bool {
        state_of(self.word.load(Ordering::Acquire)) == LIVE
    }

    pub(crate) fn is_dead(&self) -> bool {
        state_of(self.word.load(Ordering::Acquire)) == DEAD
    }

    /// The object of this generation is gone. `Some` for the one who comes first, with the
    /// displaced tag (0: none), which is theirs to refund. Atomics only: for `ObjectFree`.
    pub(crate) fn end(&self, generation: u32) -> Option<i64> {
        self.word
            .compare_exchange(
                word(generation, LIVE),
                word(generation, ENDING),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .ok()?;
        let displaced = self.displaced.load(Ordering::Relaxed);
        self.word.store(word(generation, DEAD), Ordering::Release);
        Some(displaced as i64)
    }

    /// Ends a dead entry's life; true if it was dead and may be opened again.
    pub(crate) fn recycle(&self) -> bool {
        let before = self.word.load(Ordering::Acquire);
        let next = word(generation_of(before).wrapping_add(1), FREE);
        state_of(before) == DEAD
            && self
                .word
                .compare_exchange(before, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_displaced_tag_is_given_once() {
        let life = Life::default();
        life.open(42);
        assert!(life.is_live());
        assert_eq!(life.end(0), Some(42));
        assert_eq!(life.end(0), None);
        assert!(life.is_dead() && !life.is_live());
    }

    #[test]
    fn only_the_dead_are_recycled_and_the_next_life_has_another_generation() {
        let life = Life::default();
        life.open(7);
        assert!(!life.recycle(), "alive");
        assert!(life.is_live(), "and it stays so");
        assert_eq!(life.end(0), Some(7));
        assert!(life.recycle());
        assert!(!life.recycle(), "free already");
        assert_eq!(life.generation(), 1);
        life.open(8);
        assert_eq!(life.end(0), None, "a tag of the life before");
        assert!(life.is_live());
        assert_eq!(life.end(1), Some(8));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// `ObjectFree` and the janitor end one entry, which is recycled and opened again at once.
    #[test]
    fn no_displaced_tag_is_lost_or_given_twice_to_any_life() {
        loom::model(|| {
            let life = Arc::new(Life::default());
            life.open(42);
            let freeing = {
                let life = life.clone();
                thread::spawn(move || life.end(0))
            };
            let by_janitor = life.end(0);
            let reopened = life.recycle();
            if reopened {
                life.open(43);
            }
            let by_free = freeing.join().expect("the freeing thread failed");
            let given: Vec<i64> = [by_janitor, by_free].into_iter().flatten().collect();
            assert_eq!(given, [42], "by one of the two");
            if reopened {
                assert!(
                    life.is_live(),
                    "the late end of the first life is not its own"
                );
                assert_eq!(life.end(1), Some(43));
            } else {
                assert!(life.is_dead());
            }
        });
    }
}
