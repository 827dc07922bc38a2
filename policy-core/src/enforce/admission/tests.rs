//! What is counted of charges that are due where nothing may be thrown, who waits, and who has an allowance.

use super::*;
use crate::core::Setup;
use crate::enforce::gate::Word;
use crate::enforce::grace::Grace;
use crate::enforce::grace::{WAIT_MS, allowance_bytes};
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};

const PAYER: PurseId = PurseId::new(1);
const OPEN: Word = Word {
    limited: true,
    over: false,
    enforced: true,
    naive: false,
    shut: false,
    duress: false,
};

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
    is_let_in: bool,
    reason: Reason,
}

impl Spared {
    fn new(may_wait: bool) -> Spared {
        Spared {
            grace: Grace::default(),
            now_ms: 0,
            may_wait,
            is_virtual: false,
            is_event_loop: false,
            is_let_in: false,
            reason: Reason::Clinit,
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
    fn is_let_in(&mut self) -> bool {
        self.is_let_in
    }
    fn judge(&mut self, _: Level) -> Result<(), Barred> {
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
    let core = Core::new(Setup {
        max_tracked: 4,
        samples_are_taken: true,
        test_refuse: None,
    });
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

#[test]
fn what_a_shut_door_has_let_in_has_an_allowance() {
    let core = core(Word { over: true, ..OPEN });
    let mut thread = Spared::new(false);
    thread.is_let_in = true;
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
    thread.is_let_in = false;
    assert!(!graced(&mut thread, 24), "no door has let this one in");
}
