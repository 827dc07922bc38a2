//! The boundary rule against simulated collectors, and the quiet window.

use proptest::prelude::*;

use crate::ledger::*;

/// An object of the simulated heap.
#[derive(Debug, Clone, Default)]
struct Object {
    /// Read by the callback, at some time after the allocation.
    birth: Option<Epoch>,
    canary: bool,
    dropped: bool,
    /// Found dead by a collection whose frees are not all delivered.
    dying: bool,
    freed: bool,
    /// Was found alive by a collection.
    survived: bool,
}

/// The events of a history, which come in any order: any collector is some such history.
#[derive(Debug, Clone)]
enum Event {
    /// A thread allocates; its callback is still running and holds the object.
    Allocate,
    /// A callback reads the epoch, and may be stopped before it returns.
    ReadEpoch(usize),
    /// The program lets go of an object whose callback has returned.
    Drop(usize),
    /// The agent allocates, tags and drops a canary.
    Canary,
    /// A pause that takes a snapshot: what it finds dead will be freed.
    Snapshot,
    /// Any other pause of a cycle.
    OtherPause,
    /// One pending free is reported; no order within a batch.
    Deliver(usize),
    /// The enforcer confirms, once the frees are quiet.
    Confirm,
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<usize>;
    prop_oneof![
        4 => Just(Event::Allocate),
        4 => index().prop_map(Event::ReadEpoch),
        3 => index().prop_map(Event::Drop),
        2 => Just(Event::Canary),
        1 => Just(Event::Snapshot),
        2 => Just(Event::OtherPause),
        6 => index().prop_map(Event::Deliver),
        3 => Just(Event::Confirm),
    ]
}

/// Plays a history and returns whether every record that counts as live had survived a
/// collection, at each confirmation. `by_pause` takes the end of any pause for a proof.
fn live_has_survived(history: &[Event], by_pause: bool) -> bool {
    let epochs = Epochs::default();
    let mut heap: Vec<Object> = Vec::new();
    let choose = |heap: &[Object], index: &usize, of: fn(&Object) -> bool| {
        let places: Vec<usize> = (0..heap.len()).filter(|&at| of(&heap[at])).collect();
        (!places.is_empty()).then(|| places[index % places.len()])
    };
    for event in history {
        match event {
            Event::Allocate => heap.push(Object::default()),
            Event::ReadEpoch(index) => {
                if let Some(at) = choose(&heap, index, |o| o.birth.is_none()) {
                    heap[at].birth = Some(epochs.current());
                }
            }
            Event::Drop(index) => {
                if let Some(at) = choose(&heap, index, |o| o.birth.is_some() && !o.dropped) {
                    heap[at].dropped = true;
                }
            }
            Event::Canary => heap.push(Object {
                birth: Some(epochs.current()),
                canary: true,
                dropped: true,
                ..Object::default()
            }),
            Event::Snapshot => {
                for object in &mut heap {
                    object.dying |= object.dropped && !object.freed;
                    object.survived |= !object.dropped;
                }
                if by_pause {
                    epochs.died(epochs.current());
                }
                epochs.gc_finished();
            }
            Event::OtherPause => {
                if by_pause {
                    epochs.died(epochs.current());
                }
                epochs.gc_finished();
            }
            Event::Deliver(index) => {
                if let Some(at) = choose(&heap, index, |o| o.dying && !o.freed) {
                    heap[at].freed = true;
                    if let (true, Some(epoch)) = (heap[at].canary, heap[at].birth) {
                        epochs.died(epoch);
                    }
                }
            }
            Event::Confirm => {
                let Some(pending) = epochs.pending() else {
                    continue;
                };
                // Quiet: the whole batch has been delivered.
                for object in &mut heap {
                    object.freed |= object.dying;
                }
                let boundary = epochs.confirm(pending);
                let live = heap.iter().filter(|object| {
                    let counted = object.birth.is_some_and(|birth| birth <= boundary);
                    counted && !object.freed && !object.canary
                });
                if live.into_iter().any(|object| !object.survived) {
                    return false;
                }
            }
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn what_counts_as_live_has_survived_a_collection(
        history in prop::collection::vec(event(), 1..120),
    ) {
        prop_assert!(live_has_survived(&history, false));
    }
}

#[test]
fn the_end_of_a_pause_would_not_do() {
    // Garbage, then a pause of a cycle whose snapshot was taken before it was made.
    let history = [
        Event::Snapshot,
        Event::Allocate,
        Event::ReadEpoch(0),
        Event::Drop(0),
        Event::OtherPause,
        Event::Confirm,
    ];
    assert!(!live_has_survived(&history, true));
    assert!(live_has_survived(&history, false));
}

#[test]
fn boundaries_never_go_back() {
    let epochs = Epochs::default();
    assert_eq!(
        (epochs.pending(), epochs.boundary(), epochs.current().get()),
        (None, None, 0)
    );
    epochs.died(Epoch::new(0));
    assert_eq!(epochs.pending(), Some(Epoch::new(0)));
    assert_eq!(epochs.confirm(Epoch::new(0)), Epoch::new(0));
    assert_eq!(epochs.pending(), None);
    epochs.died(Epoch::new(5));
    epochs.died(Epoch::new(3));
    assert_eq!(epochs.pending(), Some(Epoch::new(5)));
    assert_eq!(epochs.confirm(Epoch::new(5)), Epoch::new(5));
    assert_eq!(epochs.confirm(Epoch::new(3)), Epoch::new(5));
    assert_eq!(epochs.boundary(), Some(Epoch::new(5)));
    assert_eq!(epochs.pending(), None);
    epochs.died(Epoch::new(u32::MAX));
    assert_eq!(epochs.pending(), Some(Epoch::new(u32::MAX)));
    epochs.gc_finished();
    assert_eq!(epochs.current(), Epoch::new(1));
}

#[test]
fn a_window_settles_when_frees_stop() {
    let mut window = QuietWindow::new(1000, 5);
    assert_eq!(window.observe(1001, 5), Quiet::Wait);
    assert_eq!(window.observe(1002, 9), Quiet::Wait);
    assert_eq!(window.observe(1004, 9), Quiet::Wait);
    assert_eq!(window.observe(1005, 9), Quiet::Settled);
}

#[test]
fn a_window_without_frees_settles_after_the_quiet_time() {
    let mut window = QuietWindow::with_bounds(0, 0, 10, 100);
    assert_eq!(window.observe(9, 0), Quiet::Wait);
    assert_eq!(window.observe(10, 0), Quiet::Settled);
}

#[test]
fn a_window_gives_up_when_frees_never_stop() {
    let mut window = QuietWindow::new(0, 0);
    for now_ms in 1..100 {
        assert_eq!(window.observe(now_ms, now_ms), Quiet::Wait, "{now_ms}");
    }
    assert_eq!(window.observe(100, 100), Quiet::TimedOut);
}

proptest! {
    #[test]
    fn a_window_never_waits_beyond_its_bound(
        looks in prop::collection::vec((0u64..20, 0u64..3), 1..100),
    ) {
        let mut window = QuietWindow::new(0, 0);
        let (mut now_ms, mut frees, mut changed_ms) = (0, 0, 0);
        for (step_ms, freed) in looks {
            now_ms += step_ms;
            frees += freed;
            if freed > 0 {
                changed_ms = now_ms;
            }
            let quiet = now_ms - changed_ms >= QuietWindow::DEFAULT_QUIET_MS;
            let answer = window.observe(now_ms, frees);
            prop_assert_eq!(answer == Quiet::Settled, quiet);
            prop_assert!(answer != Quiet::Wait || now_ms < QuietWindow::DEFAULT_LONGEST_MS);
        }
    }
}

#[test]
fn a_sampled_object_that_dies_bears_witness_like_a_canary() {
    let ledger = super::ledger(4, 2);
    let purse = ledger.open_purse().expect("room");
    ledger.epochs().gc_finished();
    let garbage = ledger
        .charge(&super::sample(&ledger, purse, 16))
        .expect("room");
    let kept = ledger
        .charge(&super::sample(&ledger, purse, 16))
        .expect("room");
    let never_tagged = ledger
        .charge(&super::sample(&ledger, purse, 16))
        .expect("room");
    assert!(ledger.cancel(never_tagged));
    assert_eq!(
        ledger.epochs().pending(),
        None,
        "a cancelled charge is no death"
    );
    ledger.epochs().gc_finished();
    assert!(ledger.refund(garbage));
    let pending = ledger.epochs().pending().expect("a witness");
    ledger.epochs().confirm(pending);
    let mut survived = Vec::new();
    ledger.scan(|record| survived.push((record.tag, record.survived)));
    assert_eq!(survived, [(kept, true)]);
}

/// An array whose sample was thinned stands for others, of which nobody knows yet whether they live.
#[test]
fn a_thinned_array_counts_among_the_live_for_itself_until_it_is_decided_on() {
    let ledger = super::ledger(4, 2);
    let purse = ledger.open_purse().expect("room");
    let wide = ledger.intervals().thinned(1 << 24).expect("room");
    let same = ledger.intervals().set(1 << 24).expect("room");
    assert_ne!(wide, same);
    assert_eq!(ledger.intervals().bytes(wide), 1 << 24);
    let charge = |interval| {
        let sample = Sample {
            interval,
            ..super::sample(&ledger, purse, 1 << 20)
        };
        ledger.charge(&sample).expect("room")
    };
    let (thinned, other) = (charge(wide), charge(same));
    let live = || {
        let mut found = Vec::new();
        ledger.scan(|record| found.push((record.tag, record.live.bytes)));
        found
    };
    let stands_for = crate::sampling::charge(1 << 20, 1 << 24).bytes;
    let birth = ledger.epochs().current();
    ledger.epochs().gc_finished();
    ledger.epochs().confirm(birth);
    assert_eq!(live(), [(thinned, 1 << 20), (other, stands_for)]);
    ledger.epochs().decide_large(birth);
    assert_eq!(live(), [(thinned, stands_for), (other, stands_for)]);

    let latest = charge(wide);
    assert_eq!(live().last(), Some(&(latest, 1 << 20)), "it came later");
    // A proof that covers old memory decides on large arrays too.
    ledger.epochs().confirm_cover(ledger.epochs().current());
    assert_eq!(live().last(), Some(&(latest, stands_for)));
}

#[test]
fn the_time_is_that_of_the_latest_move_of_the_boundary() {
    let epochs = Epochs::default();
    epochs.note_time(5);
    assert_eq!(epochs.confirmed_ms(), None, "no collection is known yet");
    let first = epochs.current();
    epochs.died(first);
    epochs.confirm(first);
    epochs.note_time(10);
    epochs.note_time(20);
    assert_eq!(epochs.confirmed_ms(), Some(10));
    let second = epochs.gc_finished();
    epochs.old_died(second);
    epochs.confirm_cover(second);
    epochs.note_time(30);
    assert_eq!(epochs.confirmed_ms(), Some(30));
}
