//! The allocating thread, for the attribution of a sample: its scope, its context class loader, and its
//! frames, which are fetched in growing batches.

use std::cell::Cell;

use policy_jvm::kinds::Thread;
use policy_jvm::{Frame, Ref};

use crate::identity::attribution::{AllocatingThread, Claim, Context, Scope};
use crate::identity::classes::{ClassId, Side};
use crate::identity::loaders::LoaderOwner;
use crate::jvm::stack_walk::{MAX_IN_A_BATCH, StackWalk};
use crate::ledger::PurseId;

use super::recognizer::Recognizer;

/// Frames fetched in one batch. Each fetch walks from the top again, so a batch is a multiple of the one
/// before. A thread begins with the smaller of the batches that its last two samples needed: a sample
/// that needs one frame fetches one, and a stack that must be walked to its bottom is walked once.
const BATCHES: [usize; 5] = [1, 4, 16, 64, MAX_IN_A_BATCH];

thread_local! {
    /// The batches that the last two samples of this thread needed.
    static NEEDED: Cell<[u8; 2]> = const { Cell::new([0; 2]) };
}

/// The allocating thread, asked through JVM TI.
pub(crate) struct JavaThread<'a> {
    recognizer: Recognizer<'a>,
    thread: Option<&'a Ref<'a, Thread>>,
    side: Side,
    walk: StackWalk<'a>,
    /// The next batch, and the largest that was needed.
    batch: usize,
    needed: usize,
}

impl<'a> JavaThread<'a> {
    pub(crate) fn new(
        recognizer: Recognizer<'a>,
        thread: Option<&'a Ref<'a, Thread>>,
        side: Side,
    ) -> JavaThread<'a> {
        JavaThread {
            recognizer,
            thread,
            side,
            walk: StackWalk::new(recognizer.jni, recognizer.jvmti()),
            batch: NEEDED
                .try_with(|needed| needed.get().into_iter().min().unwrap_or(0))
                .unwrap_or(0)
                .into(),
            needed: 0,
        }
    }

    /// The number of the class that declares the method at a depth below 4. To be asked before the attribution, which
    /// then needs no second fetch for the uppermost frames.
    pub(crate) fn class_near_top(&mut self, depth: usize) -> ClassId {
        self.batch = self.batch.max(1);
        // A walk goes down, and keeps the batch that it has fetched.
        let frame = self.at(0).and_then(|_| self.at(depth));
        frame.map_or(ClassId::UNKNOWN, |frame| class_of(self.recognizer, frame))
    }

    #[inline]
    fn at(&mut self, depth: usize) -> Option<Frame<'a>> {
        let batch = BATCHES[self.batch.min(BATCHES.len() - 1)];
        if !self.walk.has_fetched(depth) {
            self.batch += 1;
        }
        let frame = self.walk.frame(depth, batch)?;
        // The smallest batch that would have reached this frame.
        let reached = BATCHES.iter().position(|&batch| depth < batch);
        self.needed = reached.unwrap_or(BATCHES.len() - 1);
        Some(frame)
    }

    /// Remembers the batch that this sample needed, for the next samples of this thread.
    pub(super) fn remember(&self) {
        let _ = NEEDED.try_with(|needed| {
            let [last, _] = needed.get();
            needed.set([self.needed as u8, last]);
        });
    }
}

impl AllocatingThread for JavaThread<'_> {
    fn scope(&mut self) -> Option<Scope> {
        let identity = &self.recognizer.ground.core.identity;
        let (true, inherited) = identity.scopes.in_use() else {
            return None;
        };
        let thread_scopes = self.recognizer.ground.bridge()?.thread_scopes();
        let purse = thread_scopes.purse(self.thread?, inherited)?;
        identity.scopes.is_live(purse).then(|| Scope {
            purse,
            service: identity.above(purse),
        })
    }

    fn context(&mut self) -> Context {
        let ground = self.recognizer.ground;
        let loader = (ground.context_loader_field()).and_then(|field| self.thread?.get(field));
        let Some(loader) = loader else {
            return Context::Nobody;
        };
        let id = self.recognizer.loader(loader.any());
        Context::of(ground.core.identity.loaders.owner(id))
    }

    #[inline]
    fn frame(&mut self, depth: usize) -> Option<Claim> {
        let frame = self.at(depth)?;
        Some(claim(self.recognizer, self.side, frame))
    }

    fn account_of(&self, purse: PurseId) -> u32 {
        self.recognizer.ground.core.identity.representative(purse)
    }
}

/// Which account, if any, claims the code of a frame of the calling thread.
#[inline]
pub(super) fn claim(recognizer: Recognizer<'_>, side: Side, frame: Frame<'_>) -> Claim {
    claim_on(recognizer, side, class_of(recognizer, frame))
}

/// Which account, if any, claims the code of a class.
#[inline]
pub(crate) fn claim_on(recognizer: Recognizer<'_>, side: Side, class: ClassId) -> Claim {
    let identity = &recognizer.ground.core.identity;
    match identity.classes.claim(class, side) {
        Claim::Nobody => match identity.loaders.owner(identity.classes.loader(class)) {
            LoaderOwner::Pending(purse) | LoaderOwner::Service(purse) => Claim::Account(purse),
            LoaderOwner::Program(purse) => Claim::Program(purse),
            LoaderOwner::Nobody => Claim::Nobody,
        },
        claim => claim,
    }
}

/// The number of the class that declares the method of a frame of the calling thread.
#[inline]
pub(super) fn class_of(recognizer: Recognizer<'_>, frame: Frame<'_>) -> ClassId {
    let identity = &recognizer.ground.core.identity;
    let method = frame.method().key();
    if let Some(class) = identity.methods.get(method, &identity.classes) {
        return class;
    }
    let Some(class) = frame.declaring_class(recognizer.jvmti()) else {
        return ClassId::UNKNOWN;
    };
    let id = recognizer.class(&class);
    if id != ClassId::UNKNOWN {
        identity.methods.put(method, id, &identity.classes);
    }
    id
}
