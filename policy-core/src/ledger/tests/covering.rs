//! The boundary that convicts, against simulated collectors with young and old memory.

use proptest::prelude::*;

use crate::ledger::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum What {
    #[default]
    Sampled,
    Canary,
    OldCanary,
}

/// An object of the simulated heap.
#[derive(Debug, Clone, Default)]
struct Object {
    what: What,
    /// Read by the callback, at some time after the allocation.
    birth: Option<Epoch>,
    dropped: bool,
    /// In old memory.
    old: bool,
    /// Found dead by a marking that has not ended.
    condemned: bool,
    /// Found dead by a collection whose frees are not all delivered.
    dying: bool,
    freed: bool,
    /// Was reachable when a collection of all memory took its snapshot.
    survived_all: bool,
}

/// The events of a history, which come in any order.
#[derive(Debug, Clone)]
enum Event {
    Allocate,
    ReadEpoch(usize),
    Drop(usize),
    Canary,
    /// A class, young at first, or arrays outside young memory.
    OldCanary {
        old: bool,
    },
    /// A young collection, after which the survivors chosen by this number are old.
    Young(u64),
    /// One that evacuates the old objects chosen by this number as well.
    Mixed(u64),
    /// The pause that begins a marking of all memory: a young collection and a snapshot.
    MarkStart(u64),
    /// The pause that ends it.
    MarkEnd,
    /// A collection of everything in one pause.
    Full,
    OtherPause,
    Deliver(usize),
    Confirm,
}

fn event() -> impl Strategy<Value = Event> {
    let (index, chosen) = (any::<usize>, any::<u64>);
    prop_oneof![
        4 => Just(Event::Allocate),
        4 => index().prop_map(Event::ReadEpoch),
        3 => index().prop_map(Event::Drop),
        2 => Just(Event::Canary),
        2 => any::<bool>().prop_map(|old| Event::OldCanary { old }),
        3 => chosen().prop_map(Event::Young),
        1 => chosen().prop_map(Event::Mixed),
        2 => chosen().prop_map(Event::MarkStart),
        2 => Just(Event::MarkEnd),
        1 => Just(Event::Full),
        1 => Just(Event::OtherPause),
        6 => index().prop_map(Event::Deliver),
        3 => Just(Event::Confirm),
    ]
}

/// The deaths that are taken for a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    OldCanary,
    /// Any death.
    AnyDeath,
    /// The death of any object that was in old memory.
    OldObject,
}

#[derive(Default)]
struct Heap {
    epochs: Epochs,
    objects: Vec<Object>,
    marking: bool,
}

impl Heap {
    fn choose(&mut self, index: usize, of: fn(&Object) -> bool) -> Option<&mut Object> {
        let mut places: Vec<&mut Object> = self.objects.iter_mut().filter(|o| of(o)).collect();
        let count = places.len();
        (count > 0).then(|| places.swap_remove(index % count))
    }

    fn plant(&mut self, what: What, old: bool) {
        self.objects.push(Object {
            what,
            birth: Some(self.epochs.current()),
            dropped: true,
            old,
            ..Object::default()
        });
    }

    /// Young memory is collected, but for classes, and some of what is left becomes old.
    fn young(&mut self, chosen: u64) {
        for (at, object) in self.objects.iter_mut().enumerate() {
            let mortal = object.what != What::OldCanary;
            object.dying |= mortal && !object.old && object.dropped && !object.freed;
            object.old |= chosen >> (at % 64) & 1 != 0;
        }
    }

    fn play(&mut self, event: &Event, proof: Proof) {
        match event {
            Event::Allocate => self.objects.push(Object::default()),
            Event::ReadEpoch(index) => {
                let now = self.epochs.current();
                if let Some(object) = self.choose(*index, |o| o.birth.is_none()) {
                    object.birth = Some(now);
                }
            }
            Event::Drop(index) => {
                if let Some(object) = self.choose(*index, |o| o.birth.is_some() && !o.dropped) {
                    object.dropped = true;
                }
            }
            Event::Canary => self.plant(What::Canary, false),
            Event::OldCanary { old } => self.plant(What::OldCanary, *old),
            Event::Young(chosen) => {
                self.young(*chosen);
                self.epochs.gc_finished();
            }
            Event::Mixed(chosen) => {
                for (at, object) in self.objects.iter_mut().enumerate() {
                    let evacuated = object.old && chosen >> (at % 64) & 1 != 0;
                    let mortal = object.what != What::OldCanary;
                    object.dying |= evacuated && mortal && object.dropped && !object.freed;
                }
                self.young(0);
                self.epochs.gc_finished();
            }
            Event::MarkStart(chosen) if !self.marking => {
                self.marking = true;
                for object in &mut self.objects {
                    // Young objects survive into the marking, a class among them.
                    object.condemned = object.old && object.dropped && !object.freed;
                    object.survived_all |= !object.dropped;
                }
                self.young(*chosen);
                self.epochs.gc_finished();
            }
            Event::MarkEnd if self.marking => {
                self.marking = false;
                for object in &mut self.objects {
                    object.dying |= object.condemned && !object.freed;
                }
                self.epochs.gc_finished();
            }
            Event::Full => {
                self.marking = false;
                for object in &mut self.objects {
                    object.dying |= object.dropped && !object.freed;
                    object.survived_all |= !object.dropped;
                    object.old = true;
                }
                self.epochs.gc_finished();
            }
            Event::OtherPause => {
                self.epochs.gc_finished();
            }
            Event::Deliver(index) => {
                let Some(object) = self.choose(*index, |o| o.dying && !o.freed) else {
                    return;
                };
                object.freed = true;
                let (what, old) = (object.what, object.old);
                if let Some(epoch) = object.birth {
                    let proves = match proof {
                        Proof::OldCanary | Proof::AnyDeath => what == What::OldCanary,
                        Proof::OldObject => old,
                    };
                    if proves {
                        self.epochs.old_died(epoch);
                    } else {
                        self.epochs.died(epoch);
                    }
                }
            }
            Event::MarkStart(_) | Event::MarkEnd | Event::Confirm => {}
        }
    }

    /// Whether all that counts as held was reachable at a snapshot of all memory.
    fn confirm(&mut self) -> bool {
        let Some(pending) = self.epochs.pending_cover() else {
            return true;
        };
        for object in &mut self.objects {
            object.freed |= object.dying;
        }
        let covered = self.epochs.confirm_cover(pending);
        assert!(self.epochs.boundary() >= Some(covered));
        self.objects.iter().all(|object| {
            object.what != What::Sampled
                || object.freed
                || object.survived_all
                || object.birth.is_none_or(|birth| birth > covered)
        })
    }
}

fn held_was_reachable(history: &[Event], proof: Proof) -> bool {
    let mut heap = Heap::default();
    if proof == Proof::AnyDeath {
        heap.epochs.deaths_cover_all();
    }
    history.iter().all(|event| {
        heap.play(event, proof);
        !matches!(event, Event::Confirm) || heap.confirm()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn what_convicts_was_reachable_at_a_snapshot_of_all_memory(
        history in prop::collection::vec(event(), 1..120),
    ) {
        prop_assert!(held_was_reachable(&history, Proof::OldCanary));
    }

    #[test]
    fn where_all_memory_is_collected_at_once_every_death_convicts(
        history in prop::collection::vec(event(), 1..120),
    ) {
        let whole: Vec<Event> = history
            .into_iter()
            .map(|event| match event {
                Event::Young(_) | Event::Mixed(_) | Event::MarkStart(_) => Event::Full,
                event => event,
            })
            .collect();
        prop_assert!(held_was_reachable(&whole, Proof::AnyDeath));
    }
}

#[test]
fn a_young_canary_would_not_do() {
    let history = [
        Event::Allocate,
        Event::ReadEpoch(0),
        Event::Young(u64::MAX),
        Event::Drop(0),
        Event::Canary,
        Event::Young(0),
        Event::Deliver(0),
        Event::Confirm,
    ];
    assert!(!held_was_reachable(&history, Proof::AnyDeath));
    assert!(held_was_reachable(&history, Proof::OldCanary));
}

#[test]
fn an_old_object_would_not_do() {
    // Two dead old objects, of which a mixed collection evacuates one.
    let history = [
        Event::Allocate,
        Event::ReadEpoch(0),
        Event::Allocate,
        Event::ReadEpoch(0),
        Event::Young(u64::MAX),
        Event::Drop(0),
        Event::Drop(0),
        Event::Mixed(1),
        Event::Deliver(0),
        Event::Confirm,
    ];
    assert!(!held_was_reachable(&history, Proof::OldObject));
    assert!(held_was_reachable(&history, Proof::OldCanary));
}

#[test]
fn a_class_that_was_young_at_the_snapshot_proves_the_next() {
    let mut heap = Heap::default();
    let cycle = [Event::MarkStart(u64::MAX), Event::MarkEnd];
    heap.play(&Event::OldCanary { old: false }, Proof::OldCanary);
    for (played, proved) in [(&cycle, false), (&cycle, true)] {
        for event in played {
            heap.play(event, Proof::OldCanary);
        }
        heap.play(&Event::Deliver(0), Proof::OldCanary);
        assert_eq!(heap.epochs.pending_cover().is_some(), proved);
    }
    assert!(heap.confirm());
    assert_eq!(heap.epochs.covered(), Some(Epoch::new(0)));
}
