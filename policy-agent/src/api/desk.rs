//! Where threads of the host ask for readings, and wait for them.
//!
//! # Rules
//! 1. Who asks says how old a reading may be. One that is young enough is handed out at once.
//! 2. Otherwise the herald is rung, and who asked waits, for a bounded time and with no lock of
//!    the agent held, for a reading that was begun after the oldest moment that it allows.
//! 3. A reading serves all who wait. The next begins [`PAUSE`] after the one before, and later
//!    where that took long ([`pause`]). So no program can make the agent read more often than
//!    that, nor for more than a tenth of the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::bell::Bell;

use super::reading::Reading;

/// Between the beginnings of two readings, at the least.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// How many times as long as the last reading took is waited before the next.
const PAUSES_PER_READING: u32 = 9;
/// How long a program waits for a reading, at the most.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// What is left of the pause after a reading that took so long and ended so long ago.
pub(crate) fn pause(took: Duration, ago: Duration) -> Duration {
    (took * PAUSES_PER_READING).max(PAUSE).saturating_sub(ago)
}

/// The desk. See the module.
#[derive(Default)]
pub(crate) struct Desk {
    /// The herald's.
    pub(crate) bell: Bell,
    latest: Mutex<Option<Arc<Reading>>>,
    came: Condvar,
    wanted: AtomicBool,
    closed: AtomicBool,
}

impl Desk {
    /// A reading that was begun at most `age` ago. `None` where none comes in time.
    pub(crate) fn ask(&self, age: Duration) -> Option<Arc<Reading>> {
        let asked = Instant::now();
        let is_young = |reading: &Arc<Reading>| reading.taken + age >= asked;
        let mut latest = self.latest.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(reading) = latest.as_ref().filter(|reading| is_young(reading)) {
                return Some(reading.clone());
            }
            let left = LONGEST_WAIT.saturating_sub(asked.elapsed());
            if left.is_zero() || self.closed.load(Ordering::Acquire) {
                return None;
            }
            self.wanted.store(true, Ordering::Release);
            self.bell.wake();
            (latest, _) = (self.came)
                .wait_timeout(latest, left)
                .unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Whether somebody waits for a reading. The herald alone asks.
    pub(crate) fn take_wanted(&self) -> bool {
        self.wanted.swap(false, Ordering::AcqRel)
    }

    /// Hands out a reading to all who wait; the herald alone.
    pub(crate) fn publish(&self, reading: Reading) {
        *self.latest.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(reading));
        self.came.notify_all();
    }

    /// There will be no more readings.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.came.notify_all();
        self.bell.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn reading() -> Reading {
        Reading::new(Instant::now(), Arc::default(), HashMap::new())
    }

    #[test]
    fn a_young_reading_is_handed_out_and_an_old_one_is_not() {
        let desk = Desk::default();
        desk.publish(reading());
        assert!(desk.ask(Duration::from_secs(60)).is_some());
        assert!(!desk.take_wanted());
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| desk.ask(Duration::ZERO).map(|r| r.taken));
            while !desk.take_wanted() {
                std::thread::yield_now();
            }
            let before = Instant::now();
            desk.publish(reading());
            assert!(asking.join().unwrap().unwrap() >= before);
        });
    }

    #[test]
    fn readings_take_a_tenth_of_the_time_at_the_most() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(1), ms(0)), PAUSE);
        assert_eq!(pause(ms(1), ms(60)), ms(40));
        assert_eq!(pause(ms(50), ms(0)), ms(450));
        assert_eq!(pause(ms(50), ms(500)), ms(0));
    }

    #[test]
    fn nobody_waits_at_a_closed_desk() {
        let desk = Desk::default();
        desk.close();
        assert!(desk.ask(Duration::ZERO).is_none());
    }
}
