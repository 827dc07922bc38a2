//! References to Java objects that the core knows by number only.
//!
//! Allocating threads leave weak references here without a lock. The agent's own threads take them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_queue::ArrayQueue;
use policy_jvm::kinds::{Class, Thread};
use policy_jvm::{Frame, HeldMethod, Jni, JvmTi, Weak, WeakSlot};

use crate::enforce::place_counts::PlaceCounts;
use crate::enforce::place_name::Work;
use crate::enforce::refusal_details::RefusalDetails;
use crate::enforce::throw_points::Reason;
use crate::identity::classes::ClassId;
use crate::identity::loaders::LoaderId;
use crate::ledger::Chunks;

/// Classes that wait for a name at the most. A class that comes while the queue is full is queued at its
/// next sample.
const MAX_CLASSES: usize = 16 * 1024;
/// Methods that wait at the most; a stack is up to 1,024 deep.
const MAX_METHODS: usize = 2048;
/// Refusals that wait to be logged; more are only counted.
const MAX_REFUSALS: usize = 16;
/// Frames that barred refusals; the enforcer asks for one at a time.
const MAX_BARRING: usize = 16;
/// Places that wait for a name. One that comes while the queue is full is queued at its next refusal.
const MAX_PLACES: usize = 128;
/// Methods of sites that wait for a name. One that comes while the queue is full is queued when it is met again.
const MAX_SITE_METHODS: usize = 1024;
/// Loaders at the most.
const MAX_LOADERS: u32 = 1 << 18;

/// A class that a sample has met, to be named.
pub(crate) struct NewClass {
    pub(crate) id: ClassId,
    pub(crate) weak: Weak<Class>,
}

/// A method that stacks have, to be named.
pub(crate) struct UnnamedMethod {
    /// Its number among the sites.
    pub(crate) number: u32,
    pub(crate) method: HeldMethod,
}

/// The account's own frame that was refused, kept for the log.
#[derive(Debug)]
pub(crate) struct OwnFrame {
    pub(crate) method: HeldMethod,
    /// The index of its current bytecode; none in native code.
    pub(crate) bci: Option<u32>,
}

impl OwnFrame {
    /// Keeps a frame of the calling thread; `None` if the VM has no memory for that.
    pub(crate) fn keep(jvmti: &JvmTi, frame: Frame<'_>) -> Option<OwnFrame> {
        Some(OwnFrame {
            method: frame.hold(jvmti)?,
            bci: frame.bci(),
        })
    }
}

/// A refusal, for the log.
pub(crate) struct Refused {
    pub(crate) details: Arc<RefusalDetails>,
    /// Thrown, or only counted.
    pub(crate) thrown: bool,
    pub(crate) requested_bytes: u64,
    /// The account's own frame nearest to the allocation.
    pub(crate) frame: Option<OwnFrame>,
    pub(crate) thread: Option<Weak<Thread>>,
}

/// A frame that barred a refusal.
pub(crate) struct Barring {
    /// The number of the account's gate.
    pub(crate) gate: u32,
    pub(crate) reason: Reason,
    pub(crate) frame: Option<OwnFrame>,
}

/// A place at which a thread was refused for the first time, or would have been.
pub(crate) struct UnnamedPlace {
    /// The counts of its account, and its slot in them.
    pub(crate) counts: Arc<PlaceCounts>,
    pub(crate) slot: u32,
    /// The method that gets the error, the one with which the account's code begins, and the unit's.
    pub(crate) frame: HeldMethod,
    pub(crate) entry: HeldMethod,
    pub(crate) unit: Option<HeldMethod>,
    pub(crate) work: Work,
    pub(crate) passes_on: bool,
    pub(crate) is_named_by_policy: bool,
}

/// See the module.
pub(crate) struct References {
    pub(crate) new_classes: ArrayQueue<NewClass>,
    /// Methods that a due thread has met, to be inspected.
    pub(crate) new_methods: ArrayQueue<HeldMethod>,
    pub(crate) refused: ArrayQueue<Refused>,
    /// Frames that the enforcer has asked for.
    pub(crate) barring: ArrayQueue<Barring>,
    /// Places to be named.
    pub(crate) new_places: ArrayQueue<UnnamedPlace>,
    /// Methods on the stacks of sites, to be named.
    pub(crate) site_methods: ArrayQueue<UnnamedMethod>,
    pub(crate) loaders: LoaderReferences,
}

impl References {
    pub(crate) fn new() -> References {
        References {
            new_classes: ArrayQueue::new(MAX_CLASSES),
            new_methods: ArrayQueue::new(MAX_METHODS),
            refused: ArrayQueue::new(MAX_REFUSALS),
            barring: ArrayQueue::new(MAX_BARRING),
            new_places: ArrayQueue::new(MAX_PLACES),
            site_methods: ArrayQueue::new(MAX_SITE_METHODS),
            loaders: LoaderReferences {
                unmet: Chunks::new(MAX_LOADERS),
                met: Mutex::default(),
            },
        }
    }

    /// Native bytes held by the queues.
    pub(crate) fn committed_bytes(&self) -> u64 {
        let queues = MAX_CLASSES * size_of::<NewClass>()
            + MAX_METHODS * size_of::<HeldMethod>()
            + MAX_SITE_METHODS * size_of::<UnnamedMethod>();
        queues as u64 + self.loaders.unmet.committed_bytes()
    }
}

/// Weak references to class loaders. Each numbered loader has one before any other thread can know its
/// number.
pub(crate) struct LoaderReferences {
    /// Of loaders that are not entered in the directory yet.
    unmet: Chunks<WeakSlot, 1024>,
    /// Of loaders that are.
    met: Mutex<HashMap<LoaderId, Weak>>,
}

impl LoaderReferences {
    fn met(&self) -> MutexGuard<'_, HashMap<LoaderId, Weak>> {
        self.met.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Leaves the reference to a loader that was just numbered. Lock-free; by the thread that numbered it.
    ///
    /// # Errors
    /// The reference, if there is no memory for it.
    pub(crate) fn introduce(&self, id: LoaderId, weak: Weak) -> Result<(), Weak> {
        match self.unmet.get_or_grow(id.0) {
            Some(slot) => {
                slot.put(weak);
                Ok(())
            }
            None => Err(weak),
        }
    }

    /// Notes that a loader is being entered in the directory. True for the first caller only.
    pub(crate) fn meet(&self, id: LoaderId) -> bool {
        let weak = self.unmet.get(id.0).and_then(WeakSlot::take);
        let is_new = weak.is_some();
        if let Some(weak) = weak {
            self.met().insert(id, weak);
        }
        is_new
    }

    /// The loaders below `high_water` that are not entered yet.
    pub(crate) fn unmet(&self, high_water: u32) -> Vec<LoaderId> {
        (1..high_water)
            .filter(|&id| self.unmet.get(id).is_some_and(|slot| !slot.is_empty()))
            .map(LoaderId)
            .collect()
    }

    /// The loaders whose reference is cleared. Keeps no loader alive.
    pub(crate) fn cleared(&self, jni: &Jni) -> Vec<LoaderId> {
        let met = self.met();
        let cleared = met.iter().filter(|(_, weak)| jni.is_cleared(weak));
        cleared.map(|(&id, _)| id).collect()
    }

    /// Runs `work` with the reference to a loader that was entered.
    pub(crate) fn with<T>(&self, id: LoaderId, work: impl FnOnce(&Weak) -> T) -> Option<T> {
        self.met().get(&id).map(work)
    }

    /// Drops the reference to a loader that is gone. True if the loader had not been entered.
    pub(crate) fn forget(&self, id: LoaderId) -> bool {
        let is_unmet = self.meet(id);
        self.met().remove(&id);
        is_unmet
    }
}
