//! Whether a throw is safe where a thread is now, as a pure function of its stack.
//!
//! The rules, over the frames from the top (the allocation) to the bottom:
//!
//! 1. *Anywhere*: no frame of the whole stack may be in code that an error damages for others or
//!    for ever: a static initialiser, class loading, linkage, locks, a timer's thread…
//! 2. *Own frame*: one of the account's own frames must be on the stack to receive the error.
//! 3. *Above it*: between the allocation and that frame there may only be libraries whose callers
//!    pay, and methods that keep their invariants when an allocation in them fails.
//! 4. *Handlers*: no frame may be running a catch or finally block for an earlier error,
//!    which a refusal would hide.
//! 5. *The object* must be one that the top instruction asks for, not one that the VM
//!    allocates for itself while it links or loads.

use crate::identity::classes::Kind;

use super::bytecode::Site;
use super::reason::Reason;

/// What the rules and the policy say about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodRule {
    /// Keeps its invariants when an allocation inside it fails.
    Transparent,
    /// Part of the JDK, and not known to keep its invariants.
    Jdk,
    /// Code of no account: the container's, or unmatched code.
    Outside,
    /// Known not to keep its invariants: no refusal may pass through it, even if the frame is the
    /// account's own.
    Above(Reason),
    /// No refusal while it is anywhere on the stack.
    Anywhere(Reason),
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
    /// What its current instruction allocates.
    pub site: Site,
}

/// The object allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// What kind of object it is.
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

/// Returns the depth of the frame that would receive the error (0 is the top).
///
/// # Errors
/// Why no error may be thrown here. If there are several reasons, one for the whole stack comes first,
/// then one between the allocation and the own frame, the nearest to the allocation first.
pub fn judge(frames: impl IntoIterator<Item = Frame>, object: Object) -> Result<usize, Reason> {
    let mut own = None;
    let mut obstacle = None;
    let mut handling = false;
    let mut top = None;
    for (depth, frame) in frames.into_iter().enumerate() {
        if let MethodRule::Anywhere(reason) = frame.rule {
            return Err(reason);
        }
        top.get_or_insert(frame.site);
        handling |= frame.in_handler;
        if own.is_none() {
            match passes(frame) {
                Ok(true) => own = Some(depth),
                Ok(false) => {}
                Err(reason) => {
                    obstacle.get_or_insert(reason);
                    // Such a frame may still be the account's own frame.
                    own = (frame.owner == FrameOwner::Own).then_some(depth);
                }
            }
        }
    }
    let own = own.ok_or(Reason::NoOwnFrame)?;
    if let Some(reason) = obstacle {
        return Err(reason);
    }
    if handling {
        return Err(Reason::Handler);
    }
    match object.kind {
        Kind::Unknown => Err(Reason::Unresolved),
        _ if asked_for(top.unwrap_or(Site::Other), object) => Ok(own),
        _ => Err(Reason::Linkage),
    }
}

/// Whether this frame is the own frame (`true`), may be passed (`false`), or bars the refusal.
fn passes(frame: Frame) -> Result<bool, Reason> {
    match (frame.owner, frame.rule) {
        (_, MethodRule::Above(reason)) => Err(reason),
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
