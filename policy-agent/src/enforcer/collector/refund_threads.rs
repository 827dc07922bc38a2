//! The VM's threads that report freed objects (the refunds), and whether a report is under way.
//!
//! After a collection the VM reports the freed objects one after the other, on one thread, and does not
//! say which is the last. The agent must not use the VM's own barrier (see
//! [`crate::enforce::enforcer`]). A pause between reports proves little: on a busy machine, or in a
//! container that has used up its share of the processor, the thread is off the processor in the middle
//! of a batch for longer than a verdict can wait.
//!
//! # The rule
//! Between two reports of a batch the VM's thread only calls the agent again: it takes no lock and waits
//! for nothing. So once a report of the batch has been seen, a refund thread that the kernel shows
//! *asleep* outside the agent's callback has delivered the whole batch. The kernel shows a preempted
//! thread as runnable, one that waits for a page of memory in another kind of sleep, and one that a
//! signal or a debugger stopped as stopped: none of these counts.
//!
//! Each check reads the kernel's view of the threads, `/proc/self/task`. If that cannot be read, the
//! enforcer waits for a quiet time instead.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ports::Delivery;

/// Threads that may report freed objects: HotSpot's service thread, and those that walk the heap for
/// another agent.
const SLOTS: usize = 4;

/// The refund threads. `ObjectFree` calls [`RefundThreads::report`], which costs a few stores and, at a
/// thread's first report, a system call. It neither waits nor allocates.
#[derive(Debug, Default)]
pub(crate) struct RefundThreads {
    slots: [Slot; SLOTS],
    /// More threads than [`SLOTS`] have reported.
    is_crowded: AtomicBool,
}

#[derive(Debug, Default)]
struct Slot {
    /// The kernel's number of the thread; 0 while the slot is free.
    thread: AtomicU32,
    /// The thread is inside the callback.
    is_inside: AtomicBool,
}

thread_local! {
    /// This thread's slot; `SLOTS` if there was none left, more before its first report.
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl RefundThreads {
    /// Does `work`, which handles one report, on the thread that delivers it.
    pub(crate) fn report(&self, work: impl FnOnce()) {
        let slot = SLOT
            .try_with(|slot| {
                if slot.get() > SLOTS {
                    slot.set(self.take_slot());
                }
                slot.get()
            })
            .ok()
            .and_then(|slot| self.slots.get(slot));
        let Some(slot) = slot else {
            self.is_crowded.store(true, Ordering::Release);
            return work();
        };
        slot.is_inside.store(true, Ordering::Release);
        work();
        slot.is_inside.store(false, Ordering::Release);
    }

    fn take_slot(&self) -> usize {
        let thread = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        self.slots
            .iter()
            .position(|slot| {
                let taken =
                    (slot.thread).compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
                // The kernel may use the number of an ended thread again.
                taken.map_or_else(|there| there == thread, |_| true)
            })
            .unwrap_or(SLOTS)
    }

    /// Whether all threads that ever reported have delivered what they had. Reads files; for the agent's
    /// own threads.
    pub(crate) fn delivery(&self) -> Delivery {
        if self.is_crowded.load(Ordering::Acquire) {
            return Delivery::Unknown;
        }
        let own = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        let mut delivery = Delivery::Complete;
        for slot in &self.slots {
            let thread = slot.thread.load(Ordering::Acquire);
            if thread == 0 || thread == own {
                continue;
            }
            // In this order: asleep, then still not inside. A report that began before this check is
            // seen as under way. One that begins later is of a later batch, or of a batch of which no
            // report had been seen.
            let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
            let is_inside = slot.is_inside.load(Ordering::Acquire);
            match stat.as_deref().map(state) {
                Ok(Some('S')) if !is_inside => {}
                Ok(Some(_)) => delivery = Delivery::UnderWay,
                Ok(None) => return Delivery::Unknown,
                // It has ended, so it has delivered everything.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && proc_is_there() => {}
                Err(_) => return Delivery::Unknown,
            }
        }
        delivery
    }
}

/// Whether the kernel shows threads at all.
fn proc_is_there() -> bool {
    fs::exists("/proc/self/task").unwrap_or(false)
}

/// The state in a `stat` file: the letter after the name, which stands in parentheses and may
/// hold any character (`proc_pid_stat(5)`).
fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

#[cfg(test)]
mod tests {
    use std::sync::{LazyLock, mpsc};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_state_stands_behind_any_name() {
        assert_eq!(state("12 (Service Thread) S 1 2 3"), Some('S'));
        assert_eq!(state("12 (a) R (b) D 1 2"), Some('D'));
        assert_eq!(state("12 (a"), None);
        assert_eq!(state(""), None);
    }

    fn eventually(refund_threads: &RefundThreads, wanted: Delivery) {
        let end = Instant::now() + Duration::from_secs(60);
        while refund_threads.delivery() != wanted {
            assert!(Instant::now() < end, "never {wanted:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A thread that runs the orders it gets.
    struct Hand {
        orders: mpsc::Sender<Box<dyn FnOnce() + Send>>,
        thread: std::thread::JoinHandle<()>,
    }

    impl Hand {
        fn new() -> Hand {
            let (orders, inbox) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
            let thread = std::thread::spawn(move || inbox.into_iter().for_each(|order| order()));
            Hand { orders, thread }
        }

        fn give(&self, order: impl FnOnce() + Send + 'static) {
            self.orders.send(Box::new(order)).expect("it listens");
        }
    }

    #[test]
    fn nothing_is_under_way_before_the_first_report() {
        assert_eq!(RefundThreads::default().delivery(), Delivery::Complete);
    }

    #[test]
    fn a_sleeping_thread_has_delivered_unless_it_sleeps_inside_a_report() {
        static THREADS: LazyLock<RefundThreads> = LazyLock::new(RefundThreads::default);
        static GO_ON: AtomicBool = AtomicBool::new(true);
        let hand = Hand::new();
        // Asleep, for the next order.
        hand.give(|| THREADS.report(|| {}));
        eventually(&THREADS, Delivery::Complete);
        // Between two reports, running or preempted.
        hand.give(|| {
            THREADS.report(|| {});
            while GO_ON.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        eventually(&THREADS, Delivery::UnderWay);
        for _ in 0..100 {
            assert_eq!(THREADS.delivery(), Delivery::UnderWay);
        }
        GO_ON.store(false, Ordering::Relaxed);
        eventually(&THREADS, Delivery::Complete);
        // Asleep in the middle of a report.
        let (wake, sleep) = mpsc::channel::<()>();
        hand.give(move || {
            THREADS.report(|| {
                let _ = sleep.recv();
            });
        });
        eventually(&THREADS, Delivery::UnderWay);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(THREADS.delivery(), Delivery::UnderWay);
        drop(wake);
        eventually(&THREADS, Delivery::Complete);
        // Gone.
        let Hand { orders, thread } = hand;
        drop(orders);
        thread.join().expect("no panic");
        eventually(&THREADS, Delivery::Complete);
    }

    #[test]
    fn the_state_of_more_threads_than_slots_is_unknown() {
        static THREADS: LazyLock<RefundThreads> = LazyLock::new(RefundThreads::default);
        let hands: Vec<Hand> = (0..=SLOTS).map(|_| Hand::new()).collect();
        for hand in &hands {
            hand.give(|| THREADS.report(|| {}));
        }
        eventually(&THREADS, Delivery::Unknown);
    }
}
