//! The calling thread's stack, judged: a safe place to refuse, or why not.
//!
//! Runs on the allocating thread, when a charge is due. It looks up no name: what the clerk
//! has not told yet of a method or a class it asks the clerk for, all of one stack at once;
//! the caller may look again in a moment.

use std::sync::Arc;

use crate::enforce::points::Reason;
use crate::enforce::points::bytecode::Site;
use crate::enforce::points::exceptions::Payer;
use crate::enforce::points::judge::{Frame, Object, Standing, Verdict, judge as rule};
use crate::enforce::points::methods::{NewMethod, Table};
use crate::identity::bill::{Claim, MOST_FRAMES};
use crate::identity::classes::{ClassId, Kind, Side};
use crate::ledger::PurseId;

use super::sample::Event;
use super::sight::Sight;
use super::stack;
use super::tools::{FrameBuffer, MethodId};

/// Frames fetched at once. Each fetch walks from the top again, and most stacks are shorter.
const BITE: usize = 256;

/// The account's own frame that is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnFrame {
    pub(crate) method: MethodId,
    /// The index of the bytecode that it stands at; none in native code.
    pub(crate) bci: Option<u32>,
}

/// Why no error may be thrown here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Barred {
    pub(super) reason: Reason,
    /// Something is not known *yet*: the clerk was asked, and another look may tell otherwise.
    pub(super) passing: bool,
}

impl From<Reason> for Barred {
    fn from(reason: Reason) -> Barred {
        Barred {
            reason,
            passing: false,
        }
    }
}

/// Judges the stack of the calling thread, whose allocation `payer` is charged for; `above` tells
/// that it is to be refused for the service around the payer, a scope.
///
/// # Errors
/// The reason why no error may be thrown here. What is not known the clerk is asked for, so that
/// the same place is known soon.
///
/// # Safety
/// `event` must be the event that is being delivered on this thread.
pub(super) unsafe fn judge(
    sight: Sight<'_>,
    side: Side,
    payer: PurseId,
    above: bool,
    event: &Event,
) -> Result<OwnFrame, Barred> {
    let agent = sight.agent;
    let service = agent.identity.above(payer);
    let payer = service.filter(|_| above).unwrap_or(payer);
    if agent.stopping()
        || agent
            .java()
            .is_some_and(|java| java.is_shutting_down(sight.jni))
    {
        return Err(Reason::Shutdown.into());
    }
    // SAFETY: the event's class reference is valid on this thread.
    let class = unsafe { sight.class(event.class) };
    let object = Object {
        kind: agent.identity.classes.kind(class),
        size_bytes: event.size_bytes,
    };
    let table = agent.points.methods.table();
    let mut walk = Walk {
        sight,
        side,
        account: agent.identity.representative(payer),
        service: service.map(|service| u32::from(service.get())),
        hosted: agent.identity.scopes.is_live(payer) && service.is_none(),
        payer: agent.points.exceptions.load().payer(payer),
        table: &table,
        frames: FrameBuffer::new(),
        base: 0,
        filled: 0,
        depth: 0,
        own: None,
        failed: false,
        unknown: false,
        asked: false,
    };
    let ruled = rule(&mut walk, object);
    if walk.asked {
        agent.clerk.wake();
    }
    if walk.failed {
        return Err(Reason::Stack.into());
    }
    // A class without a number has no kind and never gets one.
    let unseen = object.kind == Kind::Unknown && class != ClassId::UNKNOWN;
    if walk.unknown || unseen && ruled == Err(Reason::Unresolved) {
        return Err(Barred {
            reason: Reason::Unresolved,
            passing: true,
        });
    }
    Ok(ruled.and(walk.own.ok_or(Reason::NoOwnFrame))?)
}

/// The frames of the calling thread, from the top.
struct Walk<'a> {
    sight: Sight<'a>,
    side: Side,
    account: u32,
    /// The service around the payer, where that is a scope: its code is the scope's own.
    service: Option<u32>,
    /// The payer is a scope outside any service: code that is nobody's is its own.
    hosted: bool,
    payer: Payer,
    table: &'a Arc<Table>,
    frames: FrameBuffer<BITE>,
    /// The depth of the first frame fetched, and how many there are.
    base: usize,
    filled: usize,
    depth: usize,
    /// The account's own frame nearest to the allocation.
    own: Option<OwnFrame>,
    /// The VM did not give all frames, or there are too many.
    failed: bool,
    /// Some method is not judged yet.
    unknown: bool,
    /// The clerk has something to do.
    asked: bool,
}

impl Iterator for Walk<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.depth == self.base + self.filled {
            let bottom = self.depth > 0 && self.filled < BITE;
            if bottom || !self.fetch() {
                return None;
            }
        }
        let (method, bci) = self.frames.place(self.depth - self.base)?;
        let frame = self.frame(method, bci);
        self.depth += 1;
        Some(frame)
    }
}

impl Walk<'_> {
    fn fetch(&mut self) -> bool {
        if self.depth >= MOST_FRAMES {
            self.failed = true;
            return false;
        }
        self.base = self.depth;
        let fetched = self.sight.tools().stack(self.depth, BITE, &mut self.frames);
        self.failed = fetched.is_err();
        self.filled = fetched.unwrap_or(0);
        self.filled > 0
    }

    fn frame(&mut self, method: MethodId, bci: Option<u32>) -> Frame {
        // Whose a frame below the own one is makes no difference.
        let judged = self.table.get(method);
        let verdict = judged.and_then(|judged| judged.verdict_for(self.payer));
        let standing = if self.own.is_some() {
            Standing::Nobody
        } else {
            self.standing(method, bci, verdict)
        };
        let (Some(judged), Some(verdict)) = (judged, verdict) else {
            self.unknown = true;
            if judged.is_none() {
                self.ask(method);
            }
            return Frame {
                standing,
                verdict: Verdict::Transparent,
                in_handler: false,
                site: Site::Call,
            };
        };
        let site = match bci {
            Some(bci) if self.depth == 0 => judged.code.site(bci),
            Some(_) => Site::Call,
            None => Site::Native,
        };
        Frame {
            standing,
            verdict,
            in_handler: bci.is_some_and(|bci| judged.code.in_handler(bci)),
            site,
        }
    }

    fn standing(
        &mut self,
        method: MethodId,
        bci: Option<u32>,
        verdict: Option<Verdict>,
    ) -> Standing {
        let hosted = self.hosted && verdict == Some(Verdict::Outside);
        let is_own = match stack::claim(self.sight, self.side, method) {
            Claim::Nobody if hosted => true,
            Claim::Nobody => return Standing::Nobody,
            Claim::Library(_) => return Standing::Library,
            Claim::Account(purse) => {
                let account = self.sight.agent.identity.representative(purse);
                // A loader that has no name, yet or ever, is nobody's too.
                let is_nobodys = account == u32::from(PurseId::UNACCOUNTED.get());
                account == self.account || Some(account) == self.service || hosted && is_nobodys
            }
        };
        if !is_own {
            return Standing::Foreign;
        }
        self.own = Some(OwnFrame { method, bci });
        Standing::Own
    }

    /// Leaves a method to the clerk.
    fn ask(&mut self, method: MethodId) {
        let (jni, methods) = (self.sight.jni, &self.sight.agent.points.methods);
        if !methods.ask(method) {
            return;
        }
        // SAFETY: the method is on this thread's own stack, which keeps its class loaded.
        let class = unsafe { self.sight.tools().declaring_class(jni, method) };
        let queued = class
            .ok()
            .flatten()
            .and_then(|class| class.weak())
            .is_some_and(
                |class| match methods.new.push(NewMethod { method, class }) {
                    Ok(()) => true,
                    Err(refused) => {
                        jni.release(refused.class);
                        false
                    }
                },
            );
        if queued {
            self.asked = true;
        } else {
            methods.forget_asking(method);
        }
    }
}
