//! Who may touch the tables of stacks: allocating threads together, or the one thread that clears them.
//!
//! # Rules
//! 1. An allocating thread enters, works and leaves. It never waits: while the entrance is closed it is
//!    turned away, and its sample gets no stack.
//! 2. The clearing thread closes the entrance. Once nobody is inside it has the tables to itself, until it
//!    opens the entrance again. If threads stay inside for long (a thread may be preempted there), it gives
//!    up and opens.
//! 3. Number inside and closed bit are one word, so a thread that entered is seen by the clearing thread, or
//!    has seen that it is closed. Leaving releases what the thread has written, and `is_empty` acquires it;
//!    opening releases what was cleared, and entering acquires that (model:
//!    `nobody_is_inside_while_the_tables_are_cleared`).

use crate::sync::{AtomicU32, Ordering};

const CLOSED: u32 = 1 << 31;

/// The entrance. See the module.
#[derive(Debug)]
pub(super) struct Entrance {
    /// The closed bit, and the number of threads inside.
    word: AtomicU32,
}

/// A thread is inside. It leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Inside<'a>(&'a Entrance);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.word.fetch_sub(1, Ordering::Release);
    }
}

impl Entrance {
    pub(super) fn new() -> Entrance {
        Entrance {
            word: AtomicU32::new(0),
        }
    }

    /// Enters; `None` while it is closed. Allocating threads.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let before = self.word.fetch_add(1, Ordering::Acquire);
        let inside = Inside(self);
        (before & CLOSED == 0).then_some(inside)
    }

    /// Turns away whoever comes from now on. The clearing thread.
    pub(super) fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Whether nobody is inside any more. After [`Entrance::close`].
    pub(super) fn is_empty(&self) -> bool {
        self.word.load(Ordering::Acquire) & !CLOSED == 0
    }

    /// Lets threads in again. The clearing thread.
    pub(super) fn open(&self) {
        self.word.fetch_and(!CLOSED, Ordering::Release);
    }
}
