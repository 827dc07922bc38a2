//! Whether a refusal is safe where a thread stands, as a pure function of its stack.
//!
//! The rules, over the frames from the top (the allocation) to the bottom:
//!
//! 1. *Anywhere*: no frame of the whole stack may be one that an error damages for others,
//!    or for ever: a static initialiser, class loading, linkage, locks, a timer's thread…
//! 2. *Own frame*: one of the account's own frames must be there to take the error.
//! 3. *Above it*, between the allocation and that frame, may be only libraries whose callers
//!    pay, and methods that keep their invariants when an allocation in them fails.
//! 4. *Handlers*: no frame may be running a catch or finally block for an earlier error,
//!    which a refusal would hide.
//! 5. *The object* must be one that the instruction at the top asks for, not one that the VM
//!    makes for itself while it links or loads.

use crate::identity::classes::Kind;

use super::bytecode::Site;
use super::reason::Reason;

/// What the rules and the policy say of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// Keeps its invariants when an allocation inside it fails.
    Transparent,
    /// Of the JDK, and not known to.
    Jdk,
    /// Of nobody: the container's, or unmatched code.
    Outside,
    /// Known not to: no refusal passes through it. Own code of the same class is no better.
    Above(Reason),
    /// Not while it is anywhere on the stack.
    Anywhere(Reason),
}

/// Whose a frame is, seen by the account that is to be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
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
pub(crate) struct Frame {
    pub(crate) standing: Standing,
    pub(crate) verdict: Verdict,
    /// It runs only because of an exception.
    pub(crate) in_handler: bool,
    /// What its current instruction allocates.
    pub(crate) site: Site,
}

/// The object allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) size_bytes: u64,
}

/// The lock of a class that is being made is an `int[0]`: no array of this size or less is
/// taken for a callee's.
const LOCK_BYTES: u64 = 24;
/// Resolved references are at most as many as a constant pool has entries (JVM
/// specification, 4.1), of 8 bytes at the most: a larger `Object[]` is none.
const RESOLVED_REFERENCES_BYTES: u64 = 65_536 * 8 + LOCK_BYTES;

/// Gives the depth of the frame that would be refused (0 is the top), or why not here.
///
/// Of several reasons, the one that holds for the whole stack comes first, then those of the
/// way to the own frame, nearest to the allocation first.
pub(crate) fn judge(
    frames: impl IntoIterator<Item = Frame>,
    object: Object,
) -> Result<usize, Reason> {
    let mut own = None;
    let mut obstacle = None;
    let mut handling = false;
    let mut top = None;
    for (depth, frame) in frames.into_iter().enumerate() {
        if let Verdict::Anywhere(reason) = frame.verdict {
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
                    // It still is one of the account's own, if it is.
                    own = (frame.standing == Standing::Own).then_some(depth);
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

/// Whether the way from the allocation to the own frame ends at this one, goes on through it,
/// or is barred by it.
fn passes(frame: Frame) -> Result<bool, Reason> {
    match (frame.standing, frame.verdict) {
        (_, Verdict::Above(reason)) => Err(reason),
        (Standing::Foreign, _) => Err(Reason::Foreign),
        (_, verdict) if frame.site == Site::Native && verdict != Verdict::Transparent => {
            Err(Reason::Native)
        }
        (Standing::Own, _) => Ok(true),
        (Standing::Library, _) | (_, Verdict::Transparent) => Ok(false),
        (Standing::Nobody, Verdict::Outside) => Err(Reason::Container),
        (Standing::Nobody, _) => Err(Reason::Jdk),
    }
}

/// Whether such an object is what the instruction at the top asks for.
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
