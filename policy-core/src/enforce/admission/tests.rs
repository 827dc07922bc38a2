//! What is counted of charges that are due where nothing may be thrown.

use super::*;
use crate::core::Setup;
use crate::enforce::gate::Word;
use crate::enforce::grace::Grace;
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};

const PAYER: PurseId = PurseId::new(1);
const OPEN: Word = Word {
    limited: true,
    over: false,
    enforced: true,
    naive: false,
    shut: false,
};

/// A thread in a static initialiser, where no error may be thrown and no thread may wait.
struct Initialiser(Grace);

impl CallingThread for Initialiser {
    type Place = ();

    fn uptime_ms(&self) -> u64 {
        0
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
        Err(Reason::Clinit.into())
    }
    fn is_masked(&mut self) -> bool {
        false
    }
    fn grace(&mut self) -> Grace {
        self.0
    }
    fn remember(&mut self, grace: Grace) {
        self.0 = grace;
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

/// Charges 30 bytes beyond a stop of 20 under this word; returns what was counted as deferred.
fn deferred(word: Word, size_bytes: u64) -> u64 {
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
    let charged = Charged {
        payer: PAYER,
        bytes: 30,
        size_bytes,
        turn: 1,
    };
    let mut thread = Initialiser(Grace::default());
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
