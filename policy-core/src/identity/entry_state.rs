//! The state of an entry that stands for an object of the VM: a class, a class loader, or the object of
//! a scope.
//!
//! ```text
//! free ──open──▶ live ──end──▶ ending ──▶ dead ──recycle──▶ free, generation + 1
//! ```
//!
//! The object's tag holds the index and the generation of the entry. So the tag of an earlier owner
//! matches no entry. An object that was sampled at its allocation carried a record's tag before. The
//! entry keeps that tag as *displaced*; the thread that ends the entry refunds it.
//!
//! # Rules
//! 1. The first thread that learns that the object is gone ends the entry: `ObjectFree`, which has its
//!    tag, or the enforcer, which finds its weak reference cleared ([`super::cleaning`]). State and
//!    generation are one word, and one exchange of it decides. The later thread changes nothing.
//! 2. The thread that wins takes the displaced tag *before* it makes the entry dead, and does not touch
//!    it afterwards. So a late end of an earlier owner never takes the displaced tag of the next owner,
//!    and no displaced tag is left behind.
//! 3. Only the enforcer's thread recycles entries, and only dead ones.
//! 4. Two threads may number one object at once. Both entries then keep the same displaced tag,
//!    because each thread has read it before either wrote. The object carries one of the two tags, and
//!    its `ObjectFree` ends that entry. The other entry, the *twin*, ends when its weak reference is
//!    cleared. Both refund the displaced tag, after the object is gone. The record accepts one refund,
//!    because its tag has a generation too.

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
pub struct EntryState {
    /// Generation and state.
    word: AtomicU64,
    /// The bits of a tag; 0 is none.
    displaced: AtomicU64,
}

impl EntryState {
    /// Makes a free entry stand for an object that carries the tag `displaced` (0: no tag). The
    /// owner of the free entry calls this after it has stored everything else in the entry.
    pub fn open(&self, displaced: i64) {
        self.displaced.store(displaced as u64, Ordering::Relaxed);
        self.word
            .store(word(self.generation(), LIVE), Ordering::Release);
    }

    /// Which of the successive owners of the entry this is. One load; any thread.
    #[inline]
    pub fn generation(&self) -> u32 {
        generation_of(self.word.load(Ordering::Relaxed))
    }

    /// Whether the entry stands for an object now. One load; any thread.
    #[inline]
    pub fn is_live(&self) -> bool {
        state_of(self.word.load(Ordering::Acquire)) == LIVE
    }

    /// Whether the object is gone and the entry is not recycled yet. One load; any thread.
    pub fn is_dead(&self) -> bool {
        state_of(self.word.load(Ordering::Acquire)) == DEAD
    }

    /// Ends the entry, if it is live and of this generation. The first caller gets the displaced tag
    /// (0: none) and must refund it; later ones get `None`. Atomics only: called in `ObjectFree`.
    pub fn end(&self, generation: u32) -> Option<i64> {
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

    /// Makes a dead entry free under the next generation; false if it was not dead. The enforcer's
    /// thread.
    pub fn recycle(&self) -> bool {
        let before = self.word.load(Ordering::Acquire);
        let next = word(generation_of(before).wrapping_add(1), FREE);
        state_of(before) == DEAD
            && self
                .word
                .compare_exchange(before, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displaced_tag_is_given_once() {
        let entry = EntryState::default();
        entry.open(42);
        assert!(entry.is_live());
        assert_eq!(entry.end(0), Some(42));
        assert_eq!(entry.end(0), None);
        assert!(entry.is_dead() && !entry.is_live());
    }

    #[test]
    fn only_the_dead_are_recycled_and_the_next_owner_has_another_generation() {
        let entry = EntryState::default();
        entry.open(7);
        assert!(!entry.recycle(), "alive");
        assert!(entry.is_live(), "and it stays so");
        assert_eq!(entry.end(0), Some(7));
        assert!(entry.recycle());
        assert!(!entry.recycle(), "free already");
        assert_eq!(entry.generation(), 1);
        entry.open(8);
        assert_eq!(entry.end(0), None, "a tag of the owner before");
        assert!(entry.is_live());
        assert_eq!(entry.end(1), Some(8));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// `ObjectFree` and the enforcer end one entry, which is recycled and opened again at once.
    #[test]
    fn no_displaced_tag_is_lost_or_given_twice_to_any_owner() {
        loom::model(|| {
            let entry = Arc::new(EntryState::default());
            entry.open(42);
            let freeing = {
                let entry = entry.clone();
                thread::spawn(move || entry.end(0))
            };
            let by_enforcer = entry.end(0);
            let reopened = entry.recycle();
            if reopened {
                entry.open(43);
            }
            let by_free = freeing.join().expect("the freeing thread failed");
            let given: Vec<i64> = [by_enforcer, by_free].into_iter().flatten().collect();
            assert_eq!(given, [42], "by one of the two");
            if reopened {
                assert!(
                    entry.is_live(),
                    "the late end of the first owner does not end the second"
                );
                assert_eq!(entry.end(1), Some(43));
            } else {
                assert!(entry.is_dead());
            }
        });
    }
}
