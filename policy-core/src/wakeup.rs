//! Wakes an agent thread from any thread, even during a collection pause. It costs one atomic exchange
//! and, if the agent thread sleeps, one futex call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// A signal that one thread waits for.
#[derive(Debug, Default)]
pub struct Wakeup {
    listener: OnceLock<Thread>,
    signalled: AtomicBool,
    rescan_wanted: AtomicBool,
}

impl Wakeup {
    /// Makes the calling thread the one that is woken. Once, before it waits.
    pub fn listen(&self) {
        let _ = self.listener.set(std::thread::current());
    }

    /// Wakes the listener. A call before the listener waits is not lost. Any thread; never blocks.
    pub fn wake(&self) {
        if !self.signalled.swap(true, Ordering::AcqRel)
            && let Some(listener) = self.listener.get()
        {
            listener.unpark();
        }
    }

    /// Wakes the listener because a queue was full: it must look for all new entries. Any thread.
    pub fn rescan(&self) {
        self.rescan_wanted.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether [`Wakeup::rescan`] was called since the last call of this. The listener.
    pub fn take_rescan(&self) -> bool {
        self.rescan_wanted.swap(false, Ordering::AcqRel)
    }

    /// Waits for a signal, at most `longest`. The listener only.
    pub fn wait(&self, longest: Duration) {
        if !self.signalled.swap(false, Ordering::AcqRel) {
            std::thread::park_timeout(longest);
            self.signalled.store(false, Ordering::Release);
        }
    }
}
