//! Whether a throw is safe where a thread is now, as a pure function of its stack.
//!
//! The rules, over the frames from the top (the allocation) to the bottom:
//!
//! 1. *Anywhere*: no frame of the whole stack may be in code that an error damages for others or
//!    for ever: a static initialiser, class loading, linkage, locks, a timer's thread… A timer does
//!    not count if a unit of work between it and the own frame keeps every error from it.
//! 2. *Own frame*: one of the account's own frames must be on the stack to receive the error. Frames
//!    of a framework are nobody's business code: they do not count.
//! 3. *Above it*: between the allocation and that frame there may only be libraries whose callers
//!    pay, and methods that keep their invariants when an allocation in them fails.
//! 4. *Handlers*: no frame may be running a catch or finally block for an earlier error,
//!    which a refusal would hide.
//! 5. *The object* must be one that the top instruction asks for, not one that the VM
//!    allocates for itself while it links or loads.
//! 6. *Unit of work*: a unit of work must begin at the own frame or below it (a request, a job, a
//!    task), which the error ends. A thread that is its own loop (an acceptor, a selector, a sync
//!    thread) would end itself.
//! 7. *Door*: of an account whose only doors are methods, what has not come through one of them is left
//!    alone while the heap has room: it may be what lets go. An entrance must be somewhere on the stack.

use crate::identity::classes::Kind;

use super::bytecode::Site;
use super::reason::Reason;

/// The verdict of the rules and the policy on a method: whether a refusal may be thrown in it, or pass through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodRule {
    /// Keeps its invariants when an allocation inside it fails.
    Transparent,
    /// Part of the JDK, and not known to keep its invariants.
    Jdk,
    /// Code of no account: the container's, or unmatched code.
    Outside,
    /// Code of a framework, perhaps inside the account: no refusal passes through it, and none is
    /// thrown in it. Code that it calls may be refused.
    Framework,
    /// Known not to keep its invariants: no refusal may pass through it, even if the frame is the
    /// account's own.
    Above(Reason),
    /// No refusal while it is anywhere on the stack.
    Anywhere(Reason),
}

/// Whether a unit of work begins with a method: a request, a job, a task. An error ends the unit, and
/// the thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Unit {
    /// None begins.
    #[default]
    None,
    /// One begins.
    Begins,
    /// One begins, and the method catches every error of it: a timer below sees none.
    Shields,
}

/// Who owns a frame, as seen by the account that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameOwner {
    /// The account's own.
    Own,
    /// A library's: its callers pay.
    Library,
    /// Another account's.
    Foreign,
    /// Nobody's.
    Nobody,
}

/// One frame of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Who owns it.
    pub owner: FrameOwner,
    /// The rule of its method.
    pub rule: MethodRule,
    /// Its current instruction runs only because of an exception.
    pub in_handler: bool,
    /// The kind of allocation that its current instruction makes.
    pub site: Site,
    /// Whether a unit of work begins with it.
    pub unit: Unit,
    /// Whether the policy has a door of the account there, or names it as the beginning of its work.
    pub is_entrance: bool,
}

/// The circumstances of the allocation that the rules need beside the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Around {
    /// The program has delimited a unit of work by other means than a frame.
    pub in_unit: bool,
    /// Only what has come through an entrance may be refused (rule 7).
    pub needs_entrance: bool,
}

/// The object allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// The sort of object: a string, an array, one of the VM's own, or another.
    pub kind: Kind,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// The VM allocates an `int[0]` as the lock of a class that it initialises. So an array of at most
/// this size is not taken for an inlined callee's.
const LOCK_BYTES: u64 = 24;
/// The VM's array of resolved references has at most as many entries as a constant pool (JVM
/// specification, 4.1), of at most 8 bytes each: a larger `Object[]` is not such an array.
const RESOLVED_REFERENCES_BYTES: u64 = 65_536 * 8 + LOCK_BYTES;

/// Why no error may be thrown, and the frame that bars it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// Why.
    pub reason: Reason,
    /// The depth of the frame; for [`Reason::NoUnit`] and [`Reason::NoDoor`], of the one that would receive the error. `None` if no
    /// frame bars it.
    pub depth: Option<usize>,
}

/// As [`judge_frames`], without the frame that bars.
///
/// # Errors
/// Why no error may be thrown here.
#[cfg(test)]
pub fn judge(
    frames: impl IntoIterator<Item = Frame>,
    object: Object,
    in_unit: bool,
) -> Result<usize, Reason> {
    let around = Around {
        in_unit,
        needs_entrance: false,
    };
    judge_frames(frames, object, around).map_err(|barrier| barrier.reason)
}

/// Returns the depth of the frame that would receive the error (0 is the top).
///
/// # Errors
/// Why no error may be thrown here, and which frame bars it. If there are several reasons, one for the whole stack comes first,
/// then one between the allocation and the own frame, the nearest to the allocation first. `Timer`,
/// `NoUnit` and `NoDoor` come last: the place itself is safe, but an error would end more than a unit of work,
/// or one that may let go.
pub fn judge_frames(
    frames: impl IntoIterator<Item = Frame>,
    object: Object,
    around: Around,
) -> Result<usize, Barrier> {
    let barred = |reason, depth| Err(Barrier { reason, depth });
    let mut own = None;
    let mut obstacle = None;
    let mut handling = None;
    let mut top = None;
    let mut unit = Unit::None;
    let mut timed = None;
    let mut has_entrance = false;
    for (depth, frame) in frames.into_iter().enumerate() {
        match frame.rule {
            MethodRule::Anywhere(Reason::Timer) if unit < Unit::Shields => {
                timed.get_or_insert(depth);
            }
            MethodRule::Anywhere(Reason::Timer) => {}
            MethodRule::Anywhere(reason) => return barred(reason, Some(depth)),
            _ => {}
        }
        top.get_or_insert(frame.site);
        has_entrance |= frame.is_entrance;
        if frame.in_handler {
            handling.get_or_insert(depth);
        }
        if own.is_none() {
            match passes(frame) {
                Ok(true) => own = Some(depth),
                Ok(false) => {}
                Err(reason) => {
                    obstacle.get_or_insert((reason, depth));
                    // Such a frame may still be the account's own frame.
                    own = may_be_own(frame).then_some(depth);
                }
            }
        }
        if own.is_some() {
            unit = unit.max(frame.unit);
        }
    }
    let Some(own) = own else {
        return barred(Reason::NoOwnFrame, None);
    };
    if let Some((reason, depth)) = obstacle {
        return barred(reason, Some(depth));
    }
    if handling.is_some() {
        return barred(Reason::Handler, handling);
    }
    match object.kind {
        Kind::Unknown => return barred(Reason::Unresolved, Some(0)),
        _ if asked_for(top.unwrap_or(Site::Other), object) => {}
        _ => return barred(Reason::Linkage, Some(0)),
    }
    if timed.is_some() {
        return barred(Reason::Timer, timed);
    }
    if unit == Unit::None && !around.in_unit {
        return barred(Reason::NoUnit, Some(own));
    }
    if around.needs_entrance && !has_entrance {
        return barred(Reason::NoDoor, Some(own));
    }
    Ok(own)
}

/// Whether this frame may be the own frame: the account's code, and not that of a framework in it.
fn may_be_own(frame: Frame) -> bool {
    frame.owner == FrameOwner::Own && frame.rule != MethodRule::Framework
}

/// Whether this frame is the own frame (`true`), may be passed (`false`), or bars the refusal.
fn passes(frame: Frame) -> Result<bool, Reason> {
    match (frame.owner, frame.rule) {
        (_, MethodRule::Above(reason) | MethodRule::Anywhere(reason)) => Err(reason),
        (FrameOwner::Own | FrameOwner::Library | FrameOwner::Nobody, MethodRule::Framework) => {
            Err(Reason::Container)
        }
        (FrameOwner::Foreign, _) => Err(Reason::Foreign),
        (_, rule) if frame.site == Site::Native && rule != MethodRule::Transparent => {
            Err(Reason::Native)
        }
        (FrameOwner::Own, _) => Ok(true),
        (FrameOwner::Library, _) | (_, MethodRule::Transparent) => Ok(false),
        (FrameOwner::Nobody, MethodRule::Outside) => Err(Reason::Container),
        (FrameOwner::Nobody, _) => Err(Reason::Jdk),
    }
}

/// Whether the instruction at the top asks for such an object.
fn asked_for(site: Site, object: Object) -> bool {
    match (site, object.kind) {
        (_, Kind::OfVm | Kind::Unknown) | (Site::Other, _) => false,
        (Site::Native, _) => true,
        (Site::Instance, kind) => matches!(kind, Kind::Instance | Kind::Text),
        (Site::PrimitiveArray, kind) => kind == Kind::Primitives,
        (Site::ReferenceArray, kind) => matches!(kind, Kind::References | Kind::Objects),
        (Site::ArrayOfArrays, kind) => !matches!(kind, Kind::Instance | Kind::Text),
        (Site::Call, Kind::Text | Kind::References) => true,
        (Site::Call, Kind::Primitives) => object.size_bytes > LOCK_BYTES,
        (Site::Call, Kind::Objects) => object.size_bytes > RESOLVED_REFERENCES_BYTES,
        (Site::Call, Kind::Instance) => false,
    }
}

#[cfg(test)]
mod tests;
