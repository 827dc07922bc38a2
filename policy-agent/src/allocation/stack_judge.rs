//! Judges the calling thread's stack: whether a throw is safe there, and if not, why.
//!
//! Runs on the allocating thread when a refusal is due. It looks up no name. For methods and classes that
//! the metadata thread has not inspected yet it queues a request, for all of one stack at once; the
//! caller may judge again a moment later.

use std::sync::Arc;

use policy_jvm::{Frame as StackFrame, SampledAllocation};

use crate::enforce::place_name::Work;
use crate::enforce::ports::Barred;
use crate::enforce::throw_points::Reason;
use crate::enforce::throw_points::bytecode::Site;
use crate::enforce::throw_points::exceptions::Payer;
use crate::enforce::throw_points::judge::{
    Around, Barrier, Frame, FrameOwner, MethodRule, Object, Unit, judge_frames,
};
use crate::enforce::throw_points::methods::{Judged, MethodKey, Table};
use crate::identity::attribution::{Claim, MAX_FRAMES};
use crate::identity::classes::{ClassId, Kind, Side};
use crate::jvm::stack_walk::{MAX_IN_A_BATCH, StackWalk};
use crate::ledger::PurseId;

use super::recognizer::Recognizer;
use super::stack;

/// Where an error may be thrown.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The account's own frame that gets it, the nearest to the allocation.
    pub(super) frame: StackFrame<'a>,
    /// The account's own frame with which its code begins: the last above the unit of work that does not only
    /// pass calls on, if there is one.
    pub(super) entry: StackFrame<'a>,
    /// There is none.
    pub(super) passes_on: bool,
    /// With which the unit of work begins, the nearest; `None` if the program has delimited it by a scope.
    pub(super) unit: Option<StackFrame<'a>>,
    /// The kind of work that the thread does.
    pub(super) work: Work,
    /// The policy alone says that a unit begins there.
    pub(super) is_named_by_policy: bool,
}

/// Why no error may be thrown at a place.
pub(super) struct Blocked<'a> {
    pub(super) barred: Barred,
    /// The frame that bars it, if one does.
    pub(super) frame: Option<StackFrame<'a>>,
}

impl From<Barred> for Blocked<'_> {
    fn from(barred: Barred) -> Self {
        let frame = None;
        Blocked { barred, frame }
    }
}

impl From<Reason> for Blocked<'_> {
    fn from(reason: Reason) -> Self {
        Barred::from(reason).into()
    }
}

/// Judges the stack of the calling thread, whose allocation is charged to `payer`. `above`: the refusal
/// is for the service around the payer, which is a scope. `needs_entrance`: only what has come through a door at a
/// method may be refused. Also returns whether the stack has an event loop in it, as
/// far as it was looked at and its methods are known.
///
/// # Errors
/// The reason why no error may be thrown here. If something is not known yet, the metadata thread is asked
/// for it, so that a later judgement of the same place knows it.
pub(super) fn judge<'a>(
    recognizer: Recognizer<'a>,
    side: Side,
    payer: PurseId,
    above: bool,
    needs_entrance: bool,
    event: &SampledAllocation<'_>,
) -> (Result<Place<'a>, Blocked<'a>>, bool) {
    let mut is_event_loop = false;
    let asked = Asked {
        payer,
        above,
        needs_entrance,
    };
    let judged = judge_stack(recognizer, side, asked, event, &mut is_event_loop);
    (judged, is_event_loop)
}

/// For whom a stack is judged, as [`judge`] says.
struct Asked {
    payer: PurseId,
    above: bool,
    needs_entrance: bool,
}

fn judge_stack<'a>(
    recognizer: Recognizer<'a>,
    side: Side,
    asked: Asked,
    event: &SampledAllocation<'_>,
    is_event_loop: &mut bool,
) -> Result<Place<'a>, Blocked<'a>> {
    let ground = recognizer.ground;
    let Asked {
        payer,
        above,
        needs_entrance,
    } = asked;
    let service = ground.core.identity.above(payer);
    let payer = service.filter(|_| above).unwrap_or(payer);
    if ground.stopping()
        || ground
            .java()
            .is_some_and(|java| java.is_shutting_down(recognizer.jni))
    {
        return Err(Reason::Shutdown.into());
    }
    let class = (event.class.as_ref()).map_or(ClassId::UNKNOWN, |class| recognizer.class(class));
    let object = Object {
        kind: ground.core.identity.classes.kind(class),
        size_bytes: event.size_bytes,
    };
    // The program has delimited the work of an open scope.
    let in_unit = !above && ground.core.identity.scopes.is_live(payer);
    let table = ground.core.throw_points.methods.table();
    let account = ground.core.identity.representative(payer);
    let exceptions = ground.core.throw_points.exceptions.load();
    let mut walk = Walk {
        recognizer,
        side,
        account,
        service: service.map(|service| u32::from(service.get())),
        hosted: ground.core.identity.scopes.is_live(payer) && service.is_none(),
        payer: exceptions.payer(PurseId::new(account as u16)),
        table: &table,
        stack: StackWalk::new(recognizer.jni, recognizer.jvmti()),
        depth: 0,
        own: None,
        passes_on: false,
        unit: None,
        work: Work::Background,
        is_named_by_policy: false,
        is_event_loop: false,
        too_deep: false,
        unknown: false,
        asked: false,
    };
    let around = Around {
        in_unit,
        needs_entrance,
    };
    let ruled = judge_frames(&mut walk, object, around);
    *is_event_loop = walk.is_event_loop;
    if walk.asked {
        ground.metadata_thread.wake();
    }
    if walk.too_deep || walk.stack.has_failed() {
        return Err(Reason::Stack.into());
    }
    // A class without a number never gets a kind, so there is nothing to wait for.
    let unseen = object.kind == Kind::Unknown && class != ClassId::UNKNOWN;
    let is_unresolved = |barrier: Barrier| barrier.reason == Reason::Unresolved;
    if walk.unknown || unseen && ruled.is_err_and(is_unresolved) {
        return Err(Barred {
            reason: Reason::Unresolved,
            passing: true,
        }
        .into());
    }
    match ruled {
        Ok(_) => Ok(walk.place().ok_or(Reason::NoOwnFrame)?),
        Err(Barrier { reason, depth }) => Err(Blocked {
            barred: reason.into(),
            frame: depth.and_then(|depth| walk.stack.fetched(depth)),
        }),
    }
}

/// The frames of the calling thread, from the top.
struct Walk<'a, 't> {
    recognizer: Recognizer<'a>,
    side: Side,
    account: u32,
    /// The service around the payer, if that is a scope: its code counts as the scope's own.
    service: Option<u32>,
    /// The payer is a scope outside any service: code that belongs to no account counts as its own.
    hosted: bool,
    payer: Payer,
    table: &'t Arc<Table>,
    stack: StackWalk<'a>,
    depth: usize,
    /// The account's own frame nearest to the allocation, and the last one above the unit of work.
    own: Option<[StackFrame<'a>; 2]>,
    /// That last one only passes calls on.
    passes_on: bool,
    /// The nearest unit of work below it.
    unit: Option<StackFrame<'a>>,
    work: Work,
    is_named_by_policy: bool,
    /// A frame is the loop of a thread that serves many.
    is_event_loop: bool,
    /// There are more frames than are looked at.
    too_deep: bool,
    /// Some method is not inspected yet.
    unknown: bool,
    /// The metadata thread has new requests.
    asked: bool,
}

impl Iterator for Walk<'_, '_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.depth >= MAX_FRAMES {
            self.too_deep = true;
            return None;
        }
        let frame = self.stack.frame(self.depth, MAX_IN_A_BATCH)?;
        let frame = self.frame(frame);
        self.depth += 1;
        Some(frame)
    }
}

impl<'a> Walk<'a, '_> {
    fn frame(&mut self, frame: StackFrame<'a>) -> Frame {
        // Below the account's own frame the owner of a frame makes no difference.
        let bci = frame.bci();
        let judged = self.table.get(MethodKey(frame.method().key()));
        let rule = judged.and_then(|judged| judged.rule_for(self.payer));
        let owner = match self.own {
            Some(_) => {
                self.follow_entry(frame, rule, judged.is_some_and(|judged| judged.passes_on));
                FrameOwner::Nobody
            }
            None => {
                self.passes_on = judged.is_some_and(|judged| judged.passes_on);
                self.owner(frame, rule)
            }
        };
        if let Some(judged) = judged {
            self.is_event_loop |= judged.is_event_loop;
            self.follow_unit(frame, judged);
        }
        let (Some(judged), Some(rule)) = (judged, rule) else {
            self.unknown = true;
            if judged.is_none() {
                self.ask(frame);
            }
            return Frame {
                owner,
                rule: MethodRule::Transparent,
                in_handler: false,
                site: Site::Call,
                unit: Unit::None,
                is_entrance: false,
            };
        };
        let site = match bci {
            Some(bci) if self.depth == 0 => judged.code.site(bci),
            Some(_) => Site::Call,
            None => Site::Native,
        };
        Frame {
            owner,
            rule,
            in_handler: bci.is_some_and(|bci| judged.code.in_handler(bci)),
            site,
            unit: judged.unit_for(self.payer),
            is_entrance: judged.is_entrance_for(self.payer),
        }
    }

    /// Follows where the account's own code begins. Only an account's code is asked for whose it is.
    fn follow_entry(&mut self, frame: StackFrame<'a>, rule: Option<MethodRule>, passes_on: bool) {
        let may_be_own = (self.passes_on || !passes_on)
            && matches!(rule, Some(MethodRule::Outside | MethodRule::Transparent));
        if let (Some([own, _]), true, None) = (self.own, may_be_own, self.unit)
            && self.owner_of(frame, rule) == FrameOwner::Own
        {
            self.own = Some([own, frame]);
            self.passes_on = passes_on;
        }
    }

    /// Follows which unit of work the account's frame is in, and what its thread does.
    fn follow_unit(&mut self, frame: StackFrame<'a>, judged: &Judged) {
        if self.own.is_none() || judged.unit_for(self.payer) == Unit::None {
            return;
        }
        if self.unit.is_none() {
            self.unit = Some(frame);
            self.is_named_by_policy = judged.is_unit_by_policy(self.payer);
        }
        if judged.begun.work == Work::Request {
            self.work = Work::Request;
        }
    }

    fn place(&self) -> Option<Place<'a>> {
        let [frame, entry] = self.own?;
        Some(Place {
            frame,
            entry,
            passes_on: self.passes_on,
            unit: self.unit,
            work: self.work,
            is_named_by_policy: self.is_named_by_policy,
        })
    }

    fn owner(&mut self, frame: StackFrame<'a>, rule: Option<MethodRule>) -> FrameOwner {
        let owner = self.owner_of(frame, rule);
        // As the judge does: the frames of a framework receive no error.
        if owner == FrameOwner::Own && rule != Some(MethodRule::Framework) {
            self.own = Some([frame; 2]);
        }
        owner
    }

    fn owner_of(&self, frame: StackFrame<'a>, rule: Option<MethodRule>) -> FrameOwner {
        let hosted = self.hosted && rule == Some(MethodRule::Outside);
        let is_own = match stack::claim(self.recognizer, self.side, frame) {
            // The program gives way: to another account its code is nobody's.
            Claim::Program(purse)
                if self.recognizer.ground.core.identity.representative(purse) == self.account =>
            {
                true
            }
            Claim::Nobody | Claim::Program(_) if hosted => true,
            Claim::Nobody | Claim::Program(_) => return FrameOwner::Nobody,
            Claim::Library(_) => return FrameOwner::Library,
            Claim::Account(purse) => {
                let account = self.recognizer.ground.core.identity.representative(purse);
                // A loader without a name belongs to no account either.
                let is_nobodys = account == u32::from(PurseId::UNACCOUNTED.get());
                account == self.account || Some(account) == self.service || hosted && is_nobodys
            }
        };
        match is_own {
            true => FrameOwner::Own,
            false => FrameOwner::Foreign,
        }
    }

    /// Asks the metadata thread to inspect a method.
    fn ask(&mut self, frame: StackFrame<'_>) {
        self.asked |= ask(self.recognizer, frame);
    }
}

/// Asks the metadata thread to inspect a method. True: it is to be woken.
fn ask(recognizer: Recognizer<'_>, frame: StackFrame<'_>) -> bool {
    let methods = &recognizer.ground.core.throw_points.methods;
    let key = MethodKey(frame.method().key());
    if !methods.ask(key) {
        return false;
    }
    let held = frame.hold(recognizer.jvmti());
    let new = &recognizer.ground.references.new_methods;
    let is_asked = held.is_some_and(|held| new.push(held).is_ok());
    if !is_asked {
        methods.forget_asking(key);
    }
    is_asked
}

/// The place where the calling thread asks for a block of native memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockPlace {
    /// The JDK asks for a buffer of its own.
    pub(crate) is_jdks_own: bool,
    /// An `OutOfMemoryError` does no harm here: nothing on the stack is barred from refusals wherever it is
    /// ([`MethodRule::Anywhere`]).
    pub(crate) may_be_refused: bool,
    /// A platform thread may be held here for a moment: in addition, no method is the loop of a thread that serves many.
    pub(crate) may_wait: bool,
}

impl BlockPlace {
    const LEFT_ALONE: BlockPlace = BlockPlace {
        is_jdks_own: false,
        may_be_refused: false,
        may_wait: false,
    };
}

/// Judges the stack of the calling thread, which asks for a block of native memory for `payer`. `asking`: the depth of the
/// frame that asks for a buffer, if that may be the JDK. Where a method is not known yet the thread is neither refused nor
/// held, and the method is inspected, so that it is known a moment later.
pub(crate) fn block_place(
    recognizer: Recognizer<'_>,
    payer: PurseId,
    asking: Option<usize>,
) -> BlockPlace {
    let Recognizer { ground, jni } = recognizer;
    let shuts_down = ground.java().is_some_and(|java| java.is_shutting_down(jni));
    if ground.stopping() || shuts_down {
        return BlockPlace::LEFT_ALONE;
    }
    let core = &ground.core;
    let account = core.identity.representative(payer);
    let payer = (core.throw_points.exceptions.load()).payer(PurseId::new(account as u16));
    let table = core.throw_points.methods.table();
    let mut stack = StackWalk::new(jni, recognizer.jvmti());
    let (mut is_barred, mut is_event_loop, mut is_jdks_own) = (false, false, false);
    let (mut is_unknown, mut is_asked) = (false, false);
    let mut depth = 0;
    while let Some(frame) = stack.frame(depth, MAX_IN_A_BATCH) {
        let judged = table.get(MethodKey(frame.method().key()));
        match judged.and_then(|judged| Some((judged, judged.rule_for(payer)?))) {
            Some((judged, rule)) => {
                is_event_loop |= judged.is_event_loop;
                is_barred |= matches!(rule, MethodRule::Anywhere(_));
                let is_jdks = matches!(rule, MethodRule::Jdk | MethodRule::Transparent);
                is_jdks_own |= asking == Some(depth) && is_jdks;
            }
            None => {
                is_unknown = true;
                is_asked |= judged.is_none() && ask(recognizer, frame);
            }
        }
        depth += 1;
        if depth >= MAX_FRAMES {
            is_unknown = true;
            break;
        }
    }
    if is_asked {
        ground.metadata_thread.wake();
    }
    let may_be_refused = !is_jdks_own && !is_barred && !is_unknown && !stack.has_failed();
    BlockPlace {
        is_jdks_own,
        may_be_refused,
        may_wait: may_be_refused && !is_event_loop,
    }
}
