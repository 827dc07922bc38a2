//! Doors that the policy has put at methods: what the loader thread tells of them, and whom they turn away.
//!
//! A call knocks at the account whose door it is: of the open scope, of the packages, or of the service by its
//! context class loader, else by the loader of the class that has the door. A call that a door of the same account
//! has let in further down its stack is inside: it is not asked again, whatever the account is now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use crossbeam_queue::ArrayQueue;
use policy_config::{DoorMethod, Throw};
use policy_jvm::guard::Latch;
use policy_jvm::kinds::{Class, JavaString};
use policy_jvm::{FrameBuffer, Global, Jni, MethodId, Ref, Weak};

use crate::allocation::recognizer::Recognizer;
use crate::allocation::stack::JavaThread;
use crate::enforce::door::{Answer, Request};
use crate::enforce::routes::Found;
use crate::enforce::throw_points::methods::MethodKey;
use crate::ground::Ground;
use crate::identity::attribution::{AllocatingThread, Context};
use crate::identity::loaders::LoaderId;
use crate::jvm::error_figures::Figures;
use crate::ledger::PurseId;

/// Classes that wait for the loader thread. If there is no room, it looks through all classes.
const MAX_PREPARED: usize = 64;
/// Frames that are searched for an outer door, and how many are fetched at a time.
const MAX_FRAMES: usize = 1_024;
const BATCH: usize = 128;

/// A door at the methods of one name in one class.
#[derive(Debug, Clone)]
pub(crate) struct MethodDoor {
    /// Its number in the inserted code.
    pub(super) number: i32,
    /// As policies name it.
    pub(super) method: Arc<DoorMethod>,
    /// The class's loader.
    pub(super) loader: LoaderId,
    /// The accounts of packages that name it.
    pub(super) packages: Vec<PurseId>,
}

/// The doors that are in place. Read without a lock.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By number.
    pub(super) doors: Vec<Arc<MethodDoor>>,
    /// The methods that have them, by id, with the place in `doors`.
    pub(super) methods: Vec<(usize, usize)>,
}

impl Table {
    /// The door that a method has.
    fn at(&self, method: MethodId) -> Option<&MethodDoor> {
        let place = (self.methods).binary_search_by_key(&method.key(), |(id, _)| *id);
        let (_, door) = self.methods[place.ok()?];
        self.doors.get(door).map(Arc::as_ref)
    }
}

/// The state that threads of the program and the loader thread share. See the module.
pub(crate) struct MethodDoors {
    /// The signatures of the classes that the policy names, sorted.
    wanted: ArcSwap<Vec<String>>,
    is_any_wanted: AtomicBool,
    /// Classes of these signatures that were prepared.
    prepared: ArrayQueue<Weak<Class>>,
    /// One found no room.
    missed: AtomicBool,
    table: ArcSwap<Table>,
    /// The methods with which requests come through the doors of servers, by id.
    of_servers: ArcSwap<Vec<usize>>,
}

impl MethodDoors {
    /// None.
    pub(crate) fn new() -> MethodDoors {
        MethodDoors {
            wanted: ArcSwap::default(),
            is_any_wanted: AtomicBool::new(false),
            prepared: ArrayQueue::new(MAX_PREPARED),
            missed: AtomicBool::new(false),
            table: ArcSwap::default(),
            of_servers: ArcSwap::default(),
        }
    }

    // ---- the loader thread -----------------------------------------------------------

    /// Classes of these signatures are to be told from now on.
    pub(super) fn want(&self, mut signatures: Vec<String>) {
        signatures.sort();
        self.is_any_wanted
            .store(!signatures.is_empty(), Ordering::Release);
        self.wanted.store(Arc::new(signatures));
    }

    /// A class that was prepared since.
    pub(super) fn take_prepared(&self) -> Option<Weak<Class>> {
        self.prepared.pop()
    }

    /// Whether some class was not told, since the last call of this.
    pub(super) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// A server's door was fitted to this method. Its services' requests are inside behind it.
    pub(super) fn server_has_door(&self, method: MethodId) {
        let mut methods = self.of_servers.load_full().to_vec();
        methods.push(method.key());
        self.of_servers.store(Arc::new(methods));
    }

    /// Which doors are in place.
    pub(super) fn publish(&self, mut table: Table) {
        table.methods.sort_unstable();
        self.table.store(Arc::new(table));
    }

    // ---- any thread ------------------------------------------------------------------

    /// A class was prepared. One load while the policy names no method; no lock. On the thread that needs the class.
    pub(crate) fn class_prepared(&self, ground: &Ground, jni: &Jni, class: &Ref<'_, Class>) {
        if !self.is_any_wanted.load(Ordering::Acquire) {
            return;
        }
        let Ok(signature) = ground.jvmti.signature_of(class) else {
            return;
        };
        if self.wanted.load().binary_search(&signature).is_err() {
            return;
        }
        let refused = match class.weak() {
            Some(weak) => self.prepared.push(weak).err(),
            None => None,
        };
        if let Some(weak) = refused {
            jni.release(weak);
            self.missed.store(true, Ordering::Release);
        }
        ground.loader_thread.wake();
    }

    /// The door of this number; `None` if it is gone.
    pub(crate) fn door(&self, number: i32) -> Option<Arc<MethodDoor>> {
        let table = self.table.load();
        let place = (table.doors).binary_search_by_key(&number, |door| door.number);
        table.doors.get(place.ok()?).cloned()
    }
}

impl MethodDoor {
    /// The account that is over its limit and has a door here, as a purse of it. No lock. On the calling thread.
    pub(crate) fn refuser(&self, ground: &Ground, jni: &Jni) -> Option<PurseId> {
        let refuses = |purse: &PurseId| ground.core.refuses_at(*purse, &self.method);
        let (_, side) = ground.core.identity.view();
        let current = ground.jvmti.current_thread(jni);
        let mut thread = JavaThread::new(Recognizer { ground, jni }, current.as_deref(), side);
        let scope = thread.scope().map(|scope| scope.purse);
        (scope.filter(refuses))
            .or_else(|| self.packages.iter().copied().find(refuses))
            .or_else(|| self.service(ground, thread.context()).filter(refuses))
    }

    /// Whose service the calling thread works for. The program's own loader is the context of most threads, and
    /// says nothing of code that another loader has brought.
    fn service(&self, ground: &Ground, context: Context) -> Option<PurseId> {
        let of_class = || ground.core.identity.loaders.owner(self.loader).any_purse();
        match context {
            Context::Service(purse) => Some(purse),
            Context::Program(purse) => of_class().or(Some(purse)),
            Context::Nobody => of_class(),
        }
    }

    /// The route of calls that come through this door: of the first account of packages that names the method. None
    /// where the VM may name the carrier of a virtual thread: its samples would not find the call. Waits for nobody;
    /// on the calling thread.
    pub(crate) fn route(&self, ground: &Ground) -> Found {
        match self.packages.first() {
            Some(&packages) if !ground.shows_carriers() => {
                (ground.core.enforcement.routes).find_method(packages, &self.method)
            }
            _ => Found::None,
        }
    }

    /// Asks whether a call may come in that the account of `payer` pays for: from [`MethodDoor::refuser`]. The ticket of a
    /// probe; `None` if it just goes in, or leaves an error pending. On the calling thread, which does nothing
    /// more with the VM. `doors` are all that there are, `route` is the call's, 0 for none.
    pub(crate) fn enter(
        &self,
        ground: &Ground,
        doors: &MethodDoors,
        jni: &Jni,
        payer: PurseId,
        route: u32,
    ) -> Option<u64> {
        let account = ground.core.identity.representative(payer);
        let details = ground.core.enforcement.details.get(account)?.clone()?;
        let refuse_with = details.method_doors.refuse_with;
        if ground.stopping()
            || self.is_inside(ground, doors, jni, payer)
            || !is_error_ready(ground, jni, refuse_with)
        {
            return None;
        }
        let request = Request {
            method: "",
            path: "",
            route,
        };
        match ground.core.ask(payer, request, ground.uptime_ms()) {
            Answer::Probe(ticket) | Answer::Free(ticket) => return Some(ticket),
            Answer::Away { .. } => {}
            Answer::In => return None,
        }
        let account = details.name.downcast_ref::<Global<JavaString>>();
        let (Some(errors), Some(account)) = (ground.errors(), account) else {
            return None;
        };
        let figures = Figures {
            account,
            live_bytes: details.live_bytes,
            limit_bytes: details.limit_bytes,
            standard_error_bytes: details.standard_error_bytes,
            // No object was asked for.
            requested_bytes: 0,
        };
        // The memory that the error takes is charged to nobody.
        let _latch = Latch::enter();
        let methods = &ground.core.throw_points.methods;
        errors.throw(jni, &ground.jvmti, refuse_with, methods, &figures);
        None
    }

    /// Whether a door of this account, further down the calling thread's stack, has let the thread in already:
    /// one at a method, or for a service that of its server. The nearest frame with a door is the one that asks.
    fn is_inside(&self, ground: &Ground, doors: &MethodDoors, jni: &Jni, payer: PurseId) -> bool {
        let table = doors.table.load();
        let of_servers = doors.of_servers.load();
        let is_service =
            !self.packages.contains(&payer) && !ground.core.identity.scopes.is_live(payer);
        let mut frames = FrameBuffer::<BATCH>::new(jni);
        let mut is_asking = true;
        for start in (0..MAX_FRAMES).step_by(BATCH) {
            let fetched = frames.fetch(&ground.jvmti, start, BATCH).unwrap_or(0);
            for frame in (0..fetched).filter_map(|index| frames.frame(index)) {
                let method = frame.method();
                if is_service && of_servers.contains(&method.key()) {
                    return true;
                }
                let Some(door) = table.at(method) else {
                    continue;
                };
                if !std::mem::take(&mut is_asking) && ground.core.has_door_at(payer, &door.method) {
                    return true;
                }
            }
            if fetched < BATCH {
                break;
            }
        }
        false
    }
}

/// Whether an error can be made of the class that the code on the stack means. If not, the metadata thread
/// prepares it, and this call goes in. A method that it has not inspected yet counts as one that means no copy:
/// otherwise each new way to the door would let a call in.
fn is_error_ready(ground: &Ground, jni: &Jni, kind: Throw) -> bool {
    ask_for_methods(ground, jni);
    let methods = &ground.core.throw_points.methods;
    let is_ready = ground
        .errors()
        .is_none_or(|errors| errors.is_ready(jni, &ground.jvmti, kind, methods));
    if !is_ready {
        ground.metadata_thread.wake();
    }
    is_ready
}

/// Has the metadata thread inspect the methods on the stack that it does not know: which class they mean by the
/// error's name.
fn ask_for_methods(ground: &Ground, jni: &Jni) {
    /// Frames in which a handler of the error is expected.
    const NEAREST: usize = 32;
    let methods = &ground.core.throw_points.methods;
    let mut frames = FrameBuffer::<NEAREST>::new(jni);
    let fetched = frames.fetch(&ground.jvmti, 0, NEAREST).unwrap_or(0);
    let table = methods.table();
    let mut is_any_new = false;
    for frame in (0..fetched).filter_map(|index| frames.frame(index)) {
        let key = MethodKey(frame.method().key());
        if table.get(key).is_some() || !methods.ask(key) {
            continue;
        }
        let held = frame.hold(&ground.jvmti);
        if held.is_some_and(|held| ground.references.new_methods.push(held).is_ok()) {
            is_any_new = true;
        } else {
            methods.forget_asking(key);
        }
    }
    if is_any_new {
        ground.metadata_thread.wake();
    }
}
