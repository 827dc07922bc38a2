//! What is counted of charges that are due where nothing may be thrown, and who waits while there is no evidence.

use super::*;
use crate::core::Setup;
use crate::enforce::door::Answer;
use crate::enforce::gate::Word;
use crate::enforce::grace::Grace;
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::enforce::waiting_turns::{FIRST_MS, GO_MS, WAIT_MS as TURN_MS};

const PAYER: PurseId = PurseId::new(1);
const OPEN: Word = Word {
    limited: true,
    over: false,
    enforced: true,
    naive: false,
    shut: false,
};

/// A thread where no error may be thrown: in a static initialiser, where it may not wait either, or at a place where
/// it may.
struct Spared {
    grace: Grace,
    now_ms: u64,
    may_wait: bool,
}

impl Spared {
    fn new(may_wait: bool) -> Spared {
        Spared {
            grace: Grace::default(),
            now_ms: 0,
            may_wait,
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
        false
    }
    fn judge(&mut self, _: Level) -> Result<(), Barred> {
        match self.may_wait {
            true => Ok(()),
            false => Err(Reason::Clinit.into()),
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
    gate.set_door_stop(Some(20));
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
        turn: 1,
    };
    let mut thread = Spared::new(false);
    let mut admission = Admission::begin(&core, charged, &mut thread).expect("due");
    let step = admission.step(&core, &mut thread);
    assert_eq!(step, Step::Done { refused: false });
    let counts = gate.drain();
    assert_eq!(counts.due(), u64::from(admission.deferred()));
    counts.deferred[Reason::Clinit as usize]
}

#[test]
fn a_deferral_is_counted_where_a_refusal_was_due() {
    assert_eq!(deferred(OPEN, 8), 0, "only a wait was due");
    let observed = Word {
        enforced: false,
        ..OPEN
    };
    assert_eq!(deferred(observed, 8), 0);
    assert_eq!(deferred(Word { over: true, ..OPEN }, 8), 1);
    assert_eq!(deferred(OPEN, 2000), 1, "one object above the whole limit");
}

/// How long a thread waits that is charged at this time.
fn waits_ms(core: &Core, thread: &mut Spared, at_ms: u64) -> u64 {
    thread.now_ms = at_ms;
    let charged = Charged {
        payer: PAYER,
        bytes: 30,
        size_bytes: 8,
        turn: 1,
    };
    let mut admission = Admission::begin(core, charged, thread).expect("due");
    while let Step::Sleep(sleep) = admission.step(core, thread) {
        thread.now_ms += sleep.as_millis() as u64;
    }
    thread.now_ms - at_ms
}

#[test]
fn while_there_is_no_evidence_threads_and_requests_wait_in_turns() {
    let core = core(OPEN);
    let mut thread = Spared::new(true);
    let without = waits_ms(&core, &mut thread, 10);
    assert_eq!(without, WAIT_MS, "evidence may come");

    gate(&core).set_starved(true);
    assert_eq!(waits_ms(&core, &mut thread, 10_000), FIRST_MS);
    let turn = 10_000 + FIRST_MS;
    let knock = |at_ms| gate(&core).knock(at_ms, false);
    for round in 0..4 {
        let goes_on = turn + round * (GO_MS + TURN_MS);
        assert_eq!(waits_ms(&core, &mut thread, goes_on + 100), 0);
        assert_eq!(knock(goes_on + 100), Answer::In);
        let waits = goes_on + GO_MS;
        assert_eq!(knock(waits), Answer::Wait);
        assert_eq!(waits_ms(&core, &mut thread, waits), TURN_MS);
    }
    // However long it waited in all: without turns it would be slowed from now on.
    gate(&core).set_starved(false);
    assert_eq!(knock(20_000), Answer::Wait);
}
