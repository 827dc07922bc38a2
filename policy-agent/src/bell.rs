//! Waking an agent thread from anywhere, a collection pause included: one atomic exchange
//! and, for a sleeper, one futex call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// A bell that one thread listens to.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    listener: OnceLock<Thread>,
    rung: AtomicBool,
    missed: AtomicBool,
}

impl Bell {
    /// Makes the calling thread the listener.
    pub(crate) fn listen(&self) {
        let _ = self.listener.set(std::thread::current());
    }

    /// Wakes the listener; a ring before it waits is not lost. Never blocks.
    pub(crate) fn wake(&self) {
        if !self.rung.swap(true, Ordering::AcqRel)
            && let Some(listener) = self.listener.get()
        {
            listener.unpark();
        }
    }

    /// Something could not be handed over: the listener must look for itself.
    pub(crate) fn rescan(&self) {
        self.missed.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether [`Bell::rescan`] was called since the last time this was asked.
    pub(crate) fn take_rescan(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Waits for a ring, at most `longest`. Only the listener calls this.
    pub(crate) fn wait(&self, longest: Duration) {
        if !self.rung.swap(false, Ordering::AcqRel) {
            std::thread::park_timeout(longest);
            self.rung.store(false, Ordering::Release);
        }
    }
}
