//! The allocating thread, as far as the rule asks about it: its context class loader, and its
//! frames in growing bites.

use std::cell::Cell;

use jvmti_bindings::sys::jni;

use crate::identity::bill::{AllocatingThread, Claim, Scope};
use crate::identity::classes::{ClassId, Side};
use crate::ledger::PurseId;

use super::java::{FieldId, Jni, Local};
use super::sight::Sight;
use super::tools::{FrameBuffer, MethodId};

/// Frames fetched in one bite. Each fetch walks from the top again, so a bite is a multiple
/// of the one before, and a thread begins with the smaller of the bites that its last two
/// samples needed: what needs one frame fetches one, and a stack that must be walked to its
/// bottom is walked once.
const BITES: [usize; 5] = [1, 4, 16, 64, 256];
const MOST_FRAMES: usize = BITES[4];

thread_local! {
    /// The bites that the last two samples of this thread needed.
    static NEEDED: Cell<[u8; 2]> = const { Cell::new([0; 2]) };
}

/// The allocating thread, asked through JVM TI.
pub(super) struct JavaThread<'a> {
    sight: Sight<'a>,
    thread: jni::jthread,
    side: Side,
    frames: FrameBuffer<MOST_FRAMES>,
    /// The depth of the first frame fetched, and how many there are.
    base: usize,
    filled: usize,
    /// The next bite, and the largest that was needed.
    bite: usize,
    needed: usize,
    bottom: bool,
}

impl<'a> JavaThread<'a> {
    pub(super) fn new(sight: Sight<'a>, thread: jni::jthread, side: Side) -> JavaThread<'a> {
        JavaThread {
            sight,
            thread,
            side,
            frames: FrameBuffer::new(),
            base: 0,
            filled: 0,
            bite: NEEDED
                .try_with(|needed| needed.get().into_iter().min().unwrap_or(0))
                .unwrap_or(0)
                .into(),
            needed: 0,
            bottom: false,
        }
    }

    fn method(&mut self, depth: usize) -> Option<MethodId> {
        if depth >= self.base + self.filled {
            if self.bottom {
                return None;
            }
            let wanted = BITES[self.bite.min(BITES.len() - 1)];
            self.bite += 1;
            self.base = depth;
            self.filled = self
                .sight
                .tools()
                .stack(depth, wanted, &mut self.frames)
                .unwrap_or(0);
            self.bottom = self.filled < wanted;
        }
        // The smallest bite that would have reached this frame.
        let reached = BITES.iter().position(|&bite| depth < bite);
        self.needed = reached.unwrap_or(BITES.len() - 1);
        self.frames.method(depth.checked_sub(self.base)?)
    }

    /// Lets the next sample of this thread begin where this one had to.
    pub(super) fn remember(&self) {
        let _ = NEEDED.try_with(|needed| {
            let [last, _] = needed.get();
            needed.set([self.needed as u8, last]);
        });
    }
}

impl AllocatingThread for JavaThread<'_> {
    fn scope(&mut self) -> Option<Scope> {
        let identity = &self.sight.agent.identity;
        let (true, inherited) = identity.scopes.in_use() else {
            return None;
        };
        let cells = self.sight.agent.bridge()?.cells();
        // SAFETY: the event's thread reference is the calling thread's.
        let purse = unsafe { cells.purse(self.sight.jni, self.thread, inherited) }?;
        identity.scopes.is_live(purse).then(|| Scope {
            purse,
            service: identity.above(purse),
        })
    }

    fn context_service(&mut self) -> Option<PurseId> {
        let field = self.sight.agent.context_loader_field()?;
        // SAFETY: the event's thread reference is valid here and is a java.lang.Thread.
        let loader = unsafe { context_loader(self.sight.jni, self.thread, field) }?;
        let id = self.sight.loader(&loader);
        self.sight.agent.identity.loaders.verdict(id).purse()
    }

    fn frame(&mut self, depth: usize) -> Option<Claim> {
        let method = self.method(depth)?;
        Some(claim(self.sight, self.side, method))
    }

    fn account_of(&self, purse: PurseId) -> u32 {
        self.sight.agent.identity.representative(purse)
    }
}

/// Whose code a method on the calling thread's own stack is.
pub(super) fn claim(sight: Sight<'_>, side: Side, method: MethodId) -> Claim {
    let class = class_of(sight, method);
    let identity = &sight.agent.identity;
    match identity.classes.claim(class, side) {
        Claim::Nobody => identity
            .loaders
            .verdict(identity.classes.loader(class))
            .purse()
            .map_or(Claim::Nobody, Claim::Account),
        claim => claim,
    }
}

fn class_of(sight: Sight<'_>, method: MethodId) -> ClassId {
    let identity = &sight.agent.identity;
    if let Some(class) = identity.methods.get(method.0, &identity.classes) {
        return class;
    }
    // SAFETY: the method is on this thread's own stack, which keeps its class loaded.
    let found = unsafe { sight.tools().declaring_class(sight.jni, method) };
    let Ok(Some(class)) = found else {
        return ClassId::UNKNOWN;
    };
    // SAFETY: a `Local` is a valid reference of this thread.
    let id = unsafe { sight.class(class.raw()) };
    if id != ClassId::UNKNOWN {
        identity.methods.put(method.0, id, &identity.classes);
    }
    id
}

/// The context class loader as the thread's field has it: what `Thread`'s own getter
/// returns, for platform and virtual threads.
///
/// # Safety
/// `thread` must be null or a valid `java.lang.Thread` reference on this thread.
unsafe fn context_loader(jni: &Jni, thread: jni::jthread, field: FieldId) -> Option<Local<'_>> {
    if thread.is_null() {
        return None;
    }
    // SAFETY: by this function's own contract.
    unsafe { jni.object_field(thread, field) }
}
