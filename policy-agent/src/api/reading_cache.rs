//! The latest reading, shared by programs and the listener. Threads of the host ask here and wait.
//!
//! # Rules
//! 1. A caller says how old a reading may be. If the latest is young enough, it gets that at once.
//! 2. Otherwise it wakes the notifier and waits for a reading that is young enough, up to a timeout and
//!    without a lock of the agent.
//! 3. The listener's readings are kept here too: there is one latest reading, whoever asked for it.
//! 4. One reading serves all callers that wait. The next begins [`PAUSE`] after the one before, or
//!    later if that took long ([`pause`]). So no program can make the agent read more often, nor for
//!    more than a tenth of the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::ledger::PurseId;
use crate::wakeup::Wakeup;

use super::reading::Reading;

/// The shortest time between two readings.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a reading, as a multiple of the time that it took.
const PAUSE_PER_READING: u32 = 9;
/// The longest time that a program waits for a reading.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The rest of the pause after a reading that took `took` and ended `ago` ago.
pub(crate) fn pause(took: Duration, ago: Duration) -> Duration {
    (took * PAUSE_PER_READING).max(PAUSE).saturating_sub(ago)
}

/// The longest time that a program waits for the name of its scope.
const LONGEST_NAMING: Duration = Duration::from_secs(2);

struct Latest {
    reading: Arc<Reading>,
    ended: Instant,
}

/// The cache of the latest reading. See the module.
#[derive(Default)]
pub(crate) struct ReadingCache {
    /// Wakes the notifier.
    pub(crate) wakeup: Wakeup,
    latest: Mutex<Option<Latest>>,
    /// Held by the thread of the agent that takes a reading: one at a time.
    reading: Mutex<()>,
    /// Signalled at each new reading, and when the cache is closed.
    changed: Condvar,
    /// A program waits for a new reading.
    is_wanted: AtomicBool,
    is_closed: AtomicBool,
}

impl ReadingCache {
    /// A reading that was begun at most `age` ago. `None` if none comes in time.
    pub(crate) fn ask(&self, age: Duration) -> Option<Arc<Reading>> {
        self.ask_within(age, LONGEST_WAIT)
    }

    /// As [`ReadingCache::ask`], with a timeout of `longest`.
    pub(crate) fn ask_within(&self, age: Duration, longest: Duration) -> Option<Arc<Reading>> {
        let asked = Instant::now();
        let mut latest = self.latest();
        loop {
            let young = (latest.as_ref()).filter(|latest| latest.reading.taken + age >= asked);
            if let Some(latest) = young {
                return Some(latest.reading.clone());
            }
            let left = longest.saturating_sub(asked.elapsed());
            if left.is_zero() || self.is_closed.load(Ordering::Acquire) {
                return None;
            }
            self.is_wanted.store(true, Ordering::Release);
            self.wakeup.wake();
            (latest, _) = (self.changed)
                .wait_timeout(latest, left)
                .unwrap_or_else(|e| e.into_inner());
        }
    }

    /// As [`ReadingCache::ask`], of a reading that knows the account of `purse`. Where the thread has just
    /// entered a new scope, the first that is begun afterwards need not: the scope is named by another
    /// thread of the agent. So more are asked for, for [`LONGEST_NAMING`].
    pub(crate) fn ask_knowing(&self, purse: PurseId, age: Duration) -> Option<Arc<Reading>> {
        let asked = Instant::now();
        let mut reading = self.ask(age)?;
        while reading.name_of(purse).is_none() {
            let left = LONGEST_NAMING.saturating_sub(asked.elapsed());
            reading = self.ask_within(Duration::ZERO, left)?;
        }
        Some(reading)
    }

    /// Whether a program waits for a reading; false from then on. On the notifier.
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::AcqRel)
    }

    /// The latest reading, if it ended less than `age` ago. Otherwise the calling thread of the agent
    /// takes one, which goes to all callers that wait.
    pub(crate) fn latest_or(&self, age: Duration, take: impl FnOnce() -> Reading) -> Arc<Reading> {
        let _one_at_a_time = self.reading.lock().unwrap_or_else(|e| e.into_inner());
        let young = (self.latest().as_ref())
            .filter(|latest| latest.ended.elapsed() < age)
            .map(|latest| latest.reading.clone());
        young.unwrap_or_else(|| {
            let reading = Arc::new(take());
            *self.latest() = Some(Latest {
                reading: reading.clone(),
                ended: Instant::now(),
            });
            self.changed.notify_all();
            reading
        })
    }

    fn latest(&self) -> MutexGuard<'_, Option<Latest>> {
        self.latest.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// No more readings come. Callers that wait return at once.
    pub(crate) fn close(&self) {
        {
            // Under the lock: a caller that found the cache open is waiting by now, and is woken below.
            let _latest = self.latest();
            self.is_closed.store(true, Ordering::Release);
        }
        self.changed.notify_all();
        self.wakeup.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Taken;

    fn reading() -> Reading {
        Reading::new(Instant::now(), Taken::default())
    }

    impl ReadingCache {
        fn publish(&self, reading: Reading) {
            self.latest_or(Duration::ZERO, || reading);
        }
    }

    #[test]
    fn listener_and_programs_share_one_reading() {
        let cache = ReadingCache::default();
        let minute = Duration::from_secs(60);
        let published = cache.latest_or(minute, reading);
        let asked = cache.ask(minute).unwrap();
        assert!(Arc::ptr_eq(&published, &asked));
        assert!(!cache.take_wanted(), "nobody needs another");
        let again = cache.latest_or(minute, || unreachable!("the latest is young"));
        assert!(Arc::ptr_eq(&published, &again));
    }

    #[test]
    fn a_young_reading_is_handed_out_and_an_old_one_is_not() {
        let cache = ReadingCache::default();
        cache.publish(reading());
        assert!(cache.ask(Duration::from_secs(60)).is_some());
        assert!(!cache.take_wanted());
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| cache.ask(Duration::ZERO).map(|r| r.taken));
            while !cache.take_wanted() {
                std::thread::yield_now();
            }
            let before = Instant::now();
            cache.publish(reading());
            assert!(asking.join().unwrap().unwrap() >= before);
        });
    }

    #[test]
    fn who_is_not_named_yet_waits_for_the_reading_that_names_it() {
        let (cache, purse) = (ReadingCache::default(), PurseId::new(7));
        let naming = |name: Option<&str>| {
            let names = name.map(|name| (purse, Arc::from(name)));
            let taken = Taken {
                names: Arc::new(names.into_iter().collect()),
                ..Taken::default()
            };
            Reading::new(Instant::now(), taken)
        };
        cache.publish(naming(None));
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let reading = cache.ask_knowing(purse, Duration::from_secs(60));
                reading.and_then(|found| found.name_of(purse).map(str::to_owned))
            });
            for name in [None, None, Some("shop/acme")] {
                while !cache.take_wanted() {
                    std::thread::yield_now();
                }
                cache.publish(naming(name));
            }
            assert_eq!(asking.join().unwrap().as_deref(), Some("shop/acme"));
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
    fn closing_wakes_every_caller() {
        for _ in 0..2_000 {
            let cache = ReadingCache::default();
            std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    let begun = Instant::now();
                    (cache.ask(Duration::ZERO), begun.elapsed())
                });
                while !cache.take_wanted() {
                    std::hint::spin_loop();
                }
                // The caller is between its look and its wait.
                cache.close();
                let (answer, waited) = asking.join().unwrap();
                assert!(answer.is_none());
                assert!(waited < LONGEST_WAIT / 2, "waited {waited:?}");
            });
        }
    }

    #[test]
    fn nobody_waits_for_a_closed_cache() {
        let cache = ReadingCache::default();
        cache.close();
        assert!(cache.ask(Duration::ZERO).is_none());
    }
}
