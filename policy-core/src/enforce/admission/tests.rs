//! Tests of the counts of charges that are due where nothing may be thrown, of who waits, and of who has an allowance.

use super::*;
use crate::core::Setup;
use crate::enforce::door::{Answer, MARK, Request};
use crate::enforce::gate::Word;
use crate::enforce::grace::Grace;
use crate::enforce::grace::{WAIT_MS, allowance_bytes};
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::enforce::refusal_details::MethodDoors;
use crate::ledger::{ObjectTag, Sample};

const PAYER: PurseId = PurseId::new(1);
const OPEN: Word = Word::OPEN;

const DURESS: Word = Word {
    duress: true,
    ..OPEN
};

/// A thread where no error may be thrown: in a static initialiser, where it may not wait either, or at a place where
/// it may.
struct Spared {
    grace: Grace,
    now_ms: u64,
    may_wait: bool,
    is_virtual: bool,
    is_event_loop: bool,
    let_in: LetIn,
    reason: Reason,
    /// Whether only what came through a door was asked for, each time that its stack was judged.
    asked_for_entrance: Vec<bool>,
    record: Option<ObjectTag>,
}

impl Spared {
    fn new(may_wait: bool) -> Spared {
        Spared {
            grace: Grace::default(),
            now_ms: 0,
            may_wait,
            is_virtual: false,
            is_event_loop: false,
            let_in: LetIn::No,
            reason: Reason::Clinit,
            asked_for_entrance: Vec::new(),
            record: None,
        }
    }
}

impl CallingThread for Spared {
    type Place = ();

    fn uptime_ms(&self) -> u64 {
        self.now_ms
    }
    fn is_stopping(&self) -> bool {
        false
    }
    fn cpu_time(&mut self) -> Duration {
        Duration::ZERO
    }
    fn is_virtual(&mut self) -> bool {
        self.is_virtual
    }
    fn is_event_loop(&mut self) -> bool {
        self.is_event_loop
    }
    fn record(&self) -> Option<ObjectTag> {
        self.record
    }
    fn let_in(&mut self) -> LetIn {
        self.let_in
    }
    fn judge(&mut self, _: Level, needs_entrance: bool) -> Result<(), Barred> {
        self.asked_for_entrance.push(needs_entrance);
        match self.may_wait {
            true => Ok(()),
            false => Err(self.reason.into()),
        }
    }
    fn is_masked(&mut self) -> bool {
        false
    }
    fn grace(&mut self) -> Grace {
        self.grace
    }
    fn remember(&mut self, grace: Grace) {
        self.grace = grace;
    }
    fn note_refusal(&mut self, _: &Arc<RefusalDetails>, (): ()) {
        panic!("nothing may be thrown here");
    }
    fn place_key(&self, (): ()) -> PlaceKey {
        panic!("nothing may be thrown here");
    }
    fn name_place(&mut self, _: &Arc<PlaceCounts>, _: u32, (): ()) -> bool {
        panic!("nothing may be thrown here");
    }
    fn throw(&mut self, _: &RefusalDetails) -> bool {
        panic!("nothing may be thrown here");
    }
    fn log_refusal(&mut self, _: bool) {}
}

/// An account with this word and a stop at 20 bytes.
fn core(word: Word) -> Core {
    let core = Core::new(Setup::of_test(4));
    let gates = &core.enforcement.gates;
    let gate = gates.make(u32::from(PAYER.get())).expect("memory");
    gate.set_word(word);
    gate.set_marks(1000, 10, 20);
    core.identity.set_representative(PAYER, PAYER);
    core
}

fn gate(core: &Core) -> &Gate {
    let gate = core.enforcement.gates.get(u32::from(PAYER.get()));
    gate.expect("it was made")
}

/// Charges 30 bytes beyond the stop under this word; returns what was counted as deferred.
fn deferred(word: Word, size_bytes: u64) -> u64 {
    let core = core(word);
    let gate = gate(&core);
    let charged = Charged {
        payer: PAYER,
        bytes: 30,
        size_bytes,
    };
    let mut thread = Spared::new(false);
    let Some(mut admission) = Admission::begin(&core, charged) else {
        return u64::MAX;
    };
    let step = admission.step(&core, &mut thread);
    assert_eq!(step, Step::Done { refused: false });
    let counts = gate.drain();
    assert_eq!(counts.due(), u64::from(admission.deferred()));
    counts.deferred[Reason::Clinit as usize]
}

#[test]
fn a_deferral_is_counted_where_a_refusal_was_due() {
    assert_eq!(
        deferred(OPEN, 8),
        u64::MAX,
        "nothing is due below the limit"
    );
    assert_eq!(deferred(DURESS, 8), 0, "only a wait was due");
    assert_eq!(deferred(Word { over: true, ..OPEN }, 8), 1);
    assert_eq!(deferred(OPEN, 2000), 1, "one object above the whole limit");
}

/// How long a thread waits that is charged at this time; `None` if its charge was not due.
fn waits_ms(core: &Core, thread: &mut Spared, bytes: u64) -> Option<u64> {
    let at_ms = thread.now_ms;
    let charged = Charged {
        payer: PAYER,
        bytes,
        size_bytes: 8,
    };
    let mut admission = Admission::begin(core, charged)?;
    while let Step::Sleep(sleep) = admission.step(core, thread) {
        thread.now_ms += sleep.as_millis() as u64;
    }
    Some(thread.now_ms - at_ms)
}

#[test]
fn threads_wait_for_a_verdict_in_duress_alone_and_never_on_a_carrier_or_an_event_loop() {
    let core = core(OPEN);
    let mut thread = Spared::new(true);
    assert_eq!(waits_ms(&core, &mut thread, 30), None, "the heap has room");
    gate(&core).set_word(DURESS);
    assert_eq!(waits_ms(&core, &mut thread, 30), Some(WAIT_MS));
    let mut thread = Spared::new(true);
    thread.is_virtual = true;
    assert_eq!(waits_ms(&core, &mut thread, 30), Some(0));
    let mut thread = Spared::new(true);
    thread.is_event_loop = true;
    assert_eq!(waits_ms(&core, &mut thread, 30), Some(0));
}

#[test]
fn a_thread_without_a_unit_of_work_is_slowed_in_duress_alone() {
    let over = Word { over: true, ..OPEN };
    let core = core(over);
    let mut thread = Spared::new(false);
    thread.reason = Reason::NoUnit;
    assert_eq!(
        waits_ms(&core, &mut thread, 1 << 20),
        Some(0),
        "the heap has room"
    );
    gate(&core).set_word(Word {
        duress: true,
        ..over
    });
    assert_eq!(waits_ms(&core, &mut thread, 1 << 16), Some(16));
    thread.is_event_loop = true;
    assert_eq!(waits_ms(&core, &mut thread, 1 << 16), Some(0));
    thread.is_event_loop = false;
    thread.is_virtual = true;
    assert_eq!(waits_ms(&core, &mut thread, 1 << 16), Some(0));
    let deferred = gate(&core).drain().deferred;
    assert_eq!(deferred[Reason::NoUnit as usize], 4, "each is counted");
}

/// A thread's loop that makes garbage, or keeps what it makes, in duress.
#[test]
fn a_thread_without_a_unit_of_work_that_keeps_nothing_is_not_slowed() {
    for (keeps, expected) in [(false, Some(0)), (true, Some(16))] {
        let core = core(Word {
            over: true,
            ..DURESS
        });
        let payer = core.ledger.open_purse().expect("there is one");
        assert_eq!(payer, PAYER);
        let mut thread = Spared::new(false);
        thread.reason = Reason::NoUnit;
        let mut made = Vec::new();
        for _ in 0..4 {
            let sample = Sample::of(payer, 16, core.ledger.intervals().current());
            thread.record = core.ledger.charge(&sample).ok();
            made.extend(thread.record);
            assert_eq!(waits_ms(&core, &mut thread, 1 << 16), Some(16), "not known");
        }
        let epochs = core.ledger.epochs();
        let born = epochs.current();
        epochs.gc_finished();
        if !keeps {
            for record in made {
                assert!(core.ledger.refund(record));
            }
        }
        epochs.confirm(born);
        assert_eq!(waits_ms(&core, &mut thread, 1 << 16), expected);
    }
}

#[test]
fn what_a_shut_door_has_let_in_has_an_allowance() {
    let core = core(Word { over: true, ..OPEN });
    let mut thread = Spared::new(false);
    thread.let_in = LetIn::OnThread;
    let most = allowance_bytes(1000);
    let graced = |thread: &mut Spared, bytes| {
        waits_ms(&core, thread, bytes);
        gate(&core).drain().deferred[Reason::Grace as usize] == 1
    };
    assert!(
        !graced(&mut thread, 24),
        "no collection has shown room for any"
    );
    gate(&core).set_allowances(3 * most);
    for _ in 0..2 {
        thread.grace.let_in();
        assert!(graced(&mut thread, 24));
        assert!(graced(&mut thread, most - 24));
        assert!(!graced(&mut thread, 1), "this request has used its own up");
    }
    thread.grace.let_in();
    assert!(graced(&mut thread, most));
    thread.grace.let_in();
    assert!(!graced(&mut thread, 24), "all together have used up theirs");
    gate(&core).set_allowances(most);
    assert!(graced(&mut thread, 24), "another collection has shown room");
    thread.let_in = LetIn::No;
    assert!(!graced(&mut thread, 24), "no door has let this one in");
}

#[test]
fn beside_doors_at_methods_errors_are_for_duress_and_for_what_is_larger_than_the_limit() {
    let over = Word { over: true, ..OPEN };
    let core = core(over);
    let asked = |are_the_only_ones, word, size_bytes| {
        let details = RefusalDetails {
            method_doors: Arc::new(MethodDoors {
                are_the_only_ones,
                ..MethodDoors::default()
            }),
            ..RefusalDetails::sample("b")
        };
        let number = u32::from(PAYER.get());
        core.enforcement
            .details
            .set(number, Some(Arc::new(details)));
        gate(&core).set_word(word);
        let charged = Charged {
            payer: PAYER,
            bytes: 30,
            size_bytes,
        };
        let mut thread = Spared::new(false);
        let mut admission = Admission::begin(&core, charged).expect("it is due");
        admission.step(&core, &mut thread);
        thread.asked_for_entrance
    };
    let in_duress = Word {
        duress: true,
        ..over
    };
    assert_eq!(asked(true, over, 8), [true]);
    assert_eq!(
        asked(false, over, 8),
        [false],
        "a server has a door, or nobody"
    );
    assert_eq!(asked(true, in_duress, 8), [false]);
    assert_eq!(asked(true, OPEN, 2000), [false], "larger than the limit");
}

/// The work that a program was let in with, on two threads at once, has one allowance in total until it ends.
#[test]
fn the_threads_of_one_probe_share_its_allowance() {
    let core = core(Word { over: true, ..OPEN });
    let most = allowance_bytes(1000);
    gate(&core).set_allowances(100 * most);
    let ask = |now_ms| {
        let request = Request {
            method: "POST",
            path: "/",
            route: 0,
        };
        let Answer::Probe(ticket) = core.ask(PAYER, request, now_ms) else {
            panic!("it is no probe");
        };
        let mut threads = [Spared::new(false), Spared::new(false)];
        for thread in &mut threads {
            thread.let_in = LetIn::Work((ticket & MARK) as u32);
        }
        (ticket, threads)
    };
    let graced = |thread: &mut Spared, bytes| {
        waits_ms(&core, thread, bytes);
        gate(&core).drain().deferred[Reason::Grace as usize] == 1
    };
    let (ticket, [mut one, mut other]) = ask(1);
    assert!(graced(&mut one, most / 2));
    assert!(!graced(&mut other, most), "half of it is used up");
    assert!(graced(&mut other, most / 2));
    assert!(!graced(&mut one, 1) && !graced(&mut other, 1));
    core.probe_ended(PAYER, ticket, 2);
    let (ticket, [mut one_later, _]) = ask(1_000);
    assert!(!graced(&mut one, 24), "its probe has ended");
    assert!(graced(&mut one_later, most));
    core.probe_ended(PAYER, ticket, 1_001);
    assert!(!graced(&mut one_later, 24));
}

/// Charges of other threads while a probe was inside, and later ones of its own thread, are not the probe's.
#[test]
fn only_a_probes_own_charges_make_it_heavy() {
    let core = core(Word { over: true, ..OPEN });
    let knock = |now_ms| {
        let request = Request {
            method: "POST",
            path: "/",
            route: 0,
        };
        core.ask(PAYER, request, now_ms)
    };
    let mut now_ms = 0;
    let mut mark = 0;
    // The limit is 1000 bytes.
    for (own_bytes, pause_ms) in [(0, 100), (500, 6_400), (62, 3_174), (31, 800)] {
        core.charge_probe(PAYER, mark, 1000);
        let Answer::Probe(ticket) = knock(now_ms) else {
            panic!("it is no probe");
        };
        core.charge_probe(PAYER, mark, 1000);
        mark = (ticket & MARK) as u32;
        gate(&core).pass(1000, 8);
        core.charge_probe(PAYER, mark, own_bytes);
        core.probe_ended(PAYER, ticket, now_ms);
        let retry_after_ms = pause_ms;
        assert_eq!(knock(now_ms), Answer::Away { retry_after_ms });
        now_ms += pause_ms;
    }
}

/// A scope's work that the service around it has let in is spared at both levels.
#[test]
fn a_scopes_work_has_the_allowance_of_the_service_that_let_it_in() {
    const SCOPE: PurseId = PurseId::new(2);
    let core = core(Word { over: true, ..OPEN });
    gate(&core).set_allowances(1 << 30);
    let own = core.enforcement.gates.make(u32::from(SCOPE.get()));
    let own = own.expect("memory");
    own.set_word(Word { over: true, ..OPEN });
    own.set_marks(1000, 10, 20);
    own.set_allowances(1 << 30);
    core.identity.set_representative(SCOPE, SCOPE);
    core.identity.set_above(SCOPE, Some(PAYER));
    let ticket = gate(&core).door().knock(1, false).expect("free");
    let mut thread = Spared::new(false);
    let mut deferred = |mark| {
        thread.let_in = LetIn::Work(mark);
        let charged = Charged {
            payer: SCOPE,
            bytes: 24,
            size_bytes: 24,
        };
        let mut admission = Admission::begin(&core, charged).expect("it is due");
        let step = admission.step(&core, &mut thread);
        assert_eq!(step, Step::Done { refused: false });
        let graced = |gate: &Gate| gate.drain().deferred[Reason::Grace as usize];
        [graced(own), graced(gate(&core))]
    };
    let mark = (ticket & MARK) as u32;
    assert_eq!(deferred(mark), [1, 1]);
    assert_eq!(deferred(mark + 1), [0, 0], "another's");
}
