//! Loom models of the admission: an allocating thread passes its gates while the enforcer moves them.

use super::*;
use crate::core::Setup;
use crate::enforce::gate::Word;
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::ledger::ObjectTag;
use loom::thread;

/// In duress, so that a thread waits at the stop.
const OPEN: Word = Word {
    duress: true,
    ..Word::OPEN
};
const OVER: Word = Word { over: true, ..OPEN };
const PLACE: PlaceKey = PlaceKey {
    frame: 1,
    entry: 1,
    unit: None,
    is_request: false,
};
const OWN: PurseId = PurseId::new(1);
const OTHER: PurseId = PurseId::new(2);

/// A thread at a safe place, whose clock stands still; every sleep lets another thread run.
struct Caller {
    grace: Grace,
    now_ms: u64,
    thrown: Option<Arc<str>>,
}

impl CallingThread for Caller {
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
    fn is_event_loop(&mut self) -> bool {
        false
    }
    fn record(&self) -> Option<ObjectTag> {
        None
    }
    fn let_in(&mut self) -> LetIn {
        LetIn::No
    }
    fn judge(&mut self, _: Level, _: bool) -> Result<(), Barred> {
        Ok(())
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
    fn note_refusal(&mut self, _: &Arc<RefusalDetails>, (): ()) {}
    fn place_key(&self, (): ()) -> PlaceKey {
        PLACE
    }
    fn name_place(&mut self, _: &Arc<PlaceCounts>, _: u32, (): ()) -> bool {
        true
    }
    fn throw(&mut self, details: &RefusalDetails) -> bool {
        self.thrown = Some(details.account.clone());
        true
    }
    fn log_refusal(&mut self, _: bool) {}
}

/// Takes a charge of 30 bytes past the gates of `payer`. Returns the account it was refused for.
fn admit(core: &Core, payer: PurseId) -> Option<Arc<str>> {
    let mut caller = Caller {
        grace: Grace::default(),
        now_ms: 0,
        thrown: None,
    };
    let charged = Charged {
        payer,
        bytes: 30,
        size_bytes: 8,
    };
    if let Some(mut admission) = Admission::begin(core, charged) {
        while let Step::Sleep(_) = admission.step(core, &mut caller) {
            thread::yield_now();
        }
    }
    caller.thrown
}

/// At most two preemptions: more take hours, because the threads share a whole core.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn core() -> Core {
    Core::with_purses(Setup::of_test(4), 4)
}

fn publish(core: &Core, purse: PurseId, account: &str) {
    let details = RefusalDetails::sample(account);
    let number = u32::from(purse.get());
    core.enforcement
        .details
        .set(number, Some(Arc::new(details)));
}

/// Rule 2: the gate of an account that is over goes to one that is not, while a thread of the
/// latter is in its admission. The thread is refused only by a verdict on its own account.
#[test]
fn a_thread_is_refused_for_its_own_account_alone() {
    explore(|| {
        let core = loom::sync::Arc::new(core());
        let gates = &core.enforcement.gates;
        for purse in [OWN, OTHER] {
            let gate = gates.make(u32::from(purse.get())).expect("memory");
            gate.set_word(OPEN);
            gate.set_marks(1000, 500, 500);
        }
        let other = gates.get(u32::from(OTHER.get())).expect("a gate");
        other.set_word(OVER);
        publish(&core, OWN, "innocent");
        publish(&core, OTHER, "over");
        core.identity.set_representative(OWN, OTHER);
        // The purse joins an account that is over, and leaves it again.
        let admitted = {
            let core = core.clone();
            thread::spawn(move || admit(&core, OWN))
        };
        let own = gates.get(u32::from(OWN.get())).expect("a gate");
        own.close();
        other.close();
        core.identity.set_representative(OWN, OWN);
        own.renew_word(OPEN);
        other.renew_word(OVER);
        let refused = admitted.join().expect("no panic");
        assert_ne!(refused.as_deref(), Some("innocent"));
    });
}

/// A thread that waits at the stop ends its wait with the verdict, whatever the word is before.
#[test]
fn a_thread_that_waits_is_refused_by_the_verdict_and_let_go_without() {
    for verdict in [OVER, Word::default()] {
        explore(move || {
            let core = loom::sync::Arc::new(core());
            let number = u32::from(OWN.get());
            core.identity.set_representative(OWN, OWN);
            let gate = core.enforcement.gates.make(number).expect("memory");
            gate.set_word(OPEN);
            gate.set_marks(1000, 10, 20);
            publish(&core, OWN, "own");
            let admitted = {
                let core = core.clone();
                thread::spawn(move || admit(&core, OWN))
            };
            gate.set_marks(1000, 10, 20);
            gate.renew_word(verdict);
            let refused = admitted.join().expect("no panic");
            assert!(refused.is_none() || verdict == OVER);
            if verdict == OVER {
                // The charge was due from the start, and stays due.
                assert_eq!(refused.as_deref(), Some("own"));
            }
            let counts = gate.drain();
            assert_eq!(counts.due(), u64::from(refused.is_some()));
        });
    }
}
