//! Who delivers refunds, and whether a delivery is under way.
//!
//! The VM reports the deaths of a collection one after the other, on one thread, and tells
//! nobody which is the last; its own barrier must not be used (see
//! [`super::warden`]). A pause in the stream of reports proves little: a busy machine, or a
//! container that has used up its share of the processor, sets the thread aside for longer
//! than any wait that a verdict could afford, in the middle of a batch.
//!
//! # The rule
//! Between two reports of a batch the VM's thread does nothing but to call the agent again: it
//! takes no lock and waits for nothing. So once a report of the batch has been seen, a courier
//! that the kernel shows *asleep* outside the agent's callback has delivered the whole batch.
//! One that is set aside is shown runnable, one that waits for a page of memory in a sleep of
//! another kind, one that is stopped by a signal or a debugger as stopped: none of them counts.
//!
//! This needs the kernel's view of the threads, `/proc/self/task`, at each look; where that
//! cannot be read, a quiet time has to do.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Threads that have reported deaths: HotSpot's service thread, and whoever walks the heap for
/// another agent.
const SEATS: usize = 4;

/// Whether refunds are being delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Every batch of which a report has been seen is in.
    Complete,
    /// A courier is at work, or may be.
    UnderWay,
    /// The kernel does not tell.
    Unknown,
}

/// The couriers. [`Couriers::report`] is for `ObjectFree`: some stores, and at a thread's
/// first report a system call; it neither waits nor allocates.
#[derive(Debug, Default)]
pub(crate) struct Couriers {
    seats: [Seat; SEATS],
    /// More threads than seats have come.
    is_crowded: AtomicBool,
}

#[derive(Debug, Default)]
struct Seat {
    /// The kernel's number of the thread; 0 while the seat is free.
    thread: AtomicU32,
    /// Inside the callback.
    is_inside: AtomicBool,
}

thread_local! {
    /// This thread's seat; `SEATS` where it found none, more before it has looked.
    static SEAT: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Couriers {
    /// Does `work`, which takes in one report, on the thread that delivers it.
    pub(crate) fn report(&self, work: impl FnOnce()) {
        let seat = SEAT
            .try_with(|seat| {
                if seat.get() > SEATS {
                    seat.set(self.take_seat());
                }
                seat.get()
            })
            .ok()
            .and_then(|seat| self.seats.get(seat));
        let Some(seat) = seat else {
            self.is_crowded.store(true, Ordering::Release);
            return work();
        };
        seat.is_inside.store(true, Ordering::Release);
        work();
        seat.is_inside.store(false, Ordering::Release);
    }

    fn take_seat(&self) -> usize {
        let thread = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        self.seats
            .iter()
            .position(|seat| {
                let taken =
                    (seat.thread).compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
                // The number of a thread that has ended may come again.
                taken.map_or_else(|there| there == thread, |_| true)
            })
            .unwrap_or(SEATS)
    }

    /// Where those stand who have reported anything so far. Reads files; for the agent's own
    /// threads.
    pub(crate) fn delivery(&self) -> Delivery {
        if self.is_crowded.load(Ordering::Acquire) {
            return Delivery::Unknown;
        }
        let own = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        let mut delivery = Delivery::Complete;
        for seat in &self.seats {
            let thread = seat.thread.load(Ordering::Acquire);
            if thread == 0 || thread == own {
                continue;
            }
            // In this order: asleep, and then still not inside. A report that began before
            // the look is seen as such, one that begins later belongs to a later batch or to
            // one of which nothing had been seen.
            let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
            let is_inside = seat.is_inside.load(Ordering::Acquire);
            match stat.as_deref().map(state) {
                Ok(Some('S')) if !is_inside => {}
                Ok(Some(_)) => delivery = Delivery::UnderWay,
                Ok(None) => return Delivery::Unknown,
                // It has ended, with all it had to deliver.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && proc_is_there() => {}
                Err(_) => return Delivery::Unknown,
            }
        }
        delivery
    }
}

/// Whether the kernel tells of threads at all.
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

    fn eventually(couriers: &Couriers, wanted: Delivery) {
        let end = Instant::now() + Duration::from_secs(60);
        while couriers.delivery() != wanted {
            assert!(Instant::now() < end, "never {wanted:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A thread that does what it is told.
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
        assert_eq!(Couriers::default().delivery(), Delivery::Complete);
    }

    #[test]
    fn who_sleeps_has_delivered_and_who_runs_or_sleeps_inside_has_not() {
        static COURIERS: LazyLock<Couriers> = LazyLock::new(Couriers::default);
        static GO_ON: AtomicBool = AtomicBool::new(true);
        let hand = Hand::new();
        // Asleep, for the next order.
        hand.give(|| COURIERS.report(|| {}));
        eventually(&COURIERS, Delivery::Complete);
        // Between two reports, running or set aside.
        hand.give(|| {
            COURIERS.report(|| {});
            while GO_ON.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        eventually(&COURIERS, Delivery::UnderWay);
        for _ in 0..100 {
            assert_eq!(COURIERS.delivery(), Delivery::UnderWay);
        }
        GO_ON.store(false, Ordering::Relaxed);
        eventually(&COURIERS, Delivery::Complete);
        // Asleep in the middle of a report.
        let (wake, sleep) = mpsc::channel::<()>();
        hand.give(move || {
            COURIERS.report(|| {
                let _ = sleep.recv();
            });
        });
        eventually(&COURIERS, Delivery::UnderWay);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(COURIERS.delivery(), Delivery::UnderWay);
        drop(wake);
        eventually(&COURIERS, Delivery::Complete);
        // Gone.
        let Hand { orders, thread } = hand;
        drop(orders);
        thread.join().expect("no panic");
        eventually(&COURIERS, Delivery::Complete);
    }

    #[test]
    fn more_couriers_than_seats_are_not_known() {
        static COURIERS: LazyLock<Couriers> = LazyLock::new(Couriers::default);
        let hands: Vec<Hand> = (0..=SEATS).map(|_| Hand::new()).collect();
        for hand in &hands {
            hand.give(|| COURIERS.report(|| {}));
        }
        eventually(&COURIERS, Delivery::Unknown);
    }
}
