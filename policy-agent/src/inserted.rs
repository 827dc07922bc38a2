//! Calls that the agent has inserted into loaded classes, looked after.
//!
//! If another agent transforms such a class afresh (`retransformClasses`, a debugger's redefinition), the JVM
//! begins with the class file that was loaded, and our call is gone without a word. The event that would tell
//! is on for all classes or for none, and costs each class that is loaded. So the code is looked at now and
//! then: [`Inserted::state`] finds the call in it, and its owner inserts it again.
//!
//! While exact accounts are on or are switched, the event is on anyway. Then nothing is lost for a moment: the
//! agent's hook makes each edit of [`KeptEdits`] again whenever the JVM loads the code of its class anew.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use policy_jvm::kinds::Class;
use policy_jvm::{HeldMethod, Jni, JvmTi, MethodId, Ref, Weak};

/// How often the code is looked at while it matters.
const EVERY: Duration = Duration::from_secs(1);
/// And how often at other times. Longer than a concurrent marking takes: looking keeps the class alive.
const AT_REST: Duration = Duration::from_secs(60);
/// How often a call is inserted again. Another agent may take it out each time.
const MAX_RENEWALS: u32 = 8;

const ALOAD_0: u8 = 0x2a;
const ALOAD: u8 = 0x19;
const INVOKESTATIC: u8 = 0xb8;
/// Instructions `aload_0` to `aload_3`.
const SHORT_FORMS: u8 = 4;

/// The most edits that are kept: more than classes that are given doors.
const MAX_KEPT: usize = 400;

/// Makes an edit of a class file; `None` if that is not possible.
type Edit = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

/// Edits of loaded classes that are to be made again whenever the JVM loads their code anew.
#[derive(Default)]
pub(crate) struct KeptEdits {
    edits: Mutex<Vec<(Weak<Class>, Arc<Edit>)>>,
}

impl fmt::Debug for KeptEdits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptEdits").finish_non_exhaustive()
    }
}

impl KeptEdits {
    /// Makes `edit` whenever the code of this class is loaded anew, from now on: to be called before the first
    /// time, so that no load comes in between. What was kept for the class is replaced. Agent threads.
    pub(crate) fn keep(
        &self,
        jni: &Jni,
        class: &Ref<'_, Class>,
        edit: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) {
        let Some(weak) = class.weak() else { return };
        let mut edits = self.edits();
        edits.retain(|(kept, _)| !jni.is_cleared(kept) && !kept.refers_to(jni, class));
        if edits.len() < MAX_KEPT {
            edits.push((weak, Arc::new(edit)));
        }
    }

    /// The edit could not be made, or is not wanted any more. Agent threads.
    pub(crate) fn forget(&self, jni: &Jni, class: &Ref<'_, Class>) {
        self.edits().retain(|(kept, _)| !kept.refers_to(jni, class));
    }

    /// The class file with what is kept for the class. On a thread that has code loaded anew.
    pub(crate) fn make(&self, jni: &Jni, class: &Ref<'_, Class>, file: &[u8]) -> Option<Vec<u8>> {
        let edit = (self.edits().iter())
            .find(|(kept, _)| kept.refers_to(jni, class))
            .map(|(_, edit)| Arc::clone(edit))?;
        edit(file)
    }

    fn edits(&self) -> MutexGuard<'_, Vec<(Weak<Class>, Arc<Edit>)>> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an inserted call is where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    There,
    /// Somebody took it out.
    Lost,
    /// The class was unloaded.
    Gone,
}

/// A call at the entry of a method: references of it are loaded, and a static method gets them.
#[derive(Debug)]
pub(crate) struct Inserted {
    method: HeldMethod,
    loads: &'static [u8],
    renewals: u32,
}

impl Inserted {
    /// The call that was just inserted into the method of this name, which loads these locals. `None`
    /// if it cannot be found in the code that the JVM shows: then nothing would tell that it is lost.
    pub(crate) fn find(
        jvmti: &JvmTi,
        jni: &Jni,
        class: &Ref<'_, Class>,
        (name, descriptors): (&str, &[&str]),
        loads: &'static [u8],
    ) -> Option<Inserted> {
        let method = jvmti.held_method(class, name, descriptors)?;
        let inserted = Inserted {
            method,
            loads,
            renewals: 0,
        };
        (inserted.state(jvmti, jni) == State::There).then_some(inserted)
    }

    /// The method that calls.
    pub(crate) fn method(&self) -> MethodId {
        self.method.id()
    }

    /// See [`State`]. A code that the JVM does not show counts as changed by nobody.
    pub(crate) fn state(&self, jvmti: &JvmTi, jni: &Jni) -> State {
        let Some(method) = self.method.upgrade(jvmti, jni) else {
            return State::Gone;
        };
        match method.bytecodes() {
            Some(code) if !calls_with(&code, self.loads) => State::Lost,
            _ => State::There,
        }
    }

    /// Runs `renew` on the class to insert the call again; false if that fails, or was done too often.
    pub(crate) fn renew(
        &mut self,
        jvmti: &JvmTi,
        jni: &Jni,
        renew: impl FnOnce(&Ref<'_, Class>) -> bool,
    ) -> bool {
        if self.renewals >= MAX_RENEWALS {
            return false;
        }
        self.renewals += 1;
        let method = self.method.upgrade(jvmti, jni);
        method.is_some_and(|method| renew(method.class())) && self.state(jvmti, jni) == State::There
    }
}

/// When inserted calls are looked at.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last: Option<Instant>,
}

impl Watch {
    /// Whether to look now. `matters`: the calls decide something at present.
    pub(crate) fn take(&mut self, now: Instant, matters: bool) -> bool {
        if !self.wait(now, matters).is_zero() {
            return false;
        }
        self.last = Some(now);
        true
    }

    /// How long until the next look.
    pub(crate) fn wait(&self, now: Instant, matters: bool) -> Duration {
        let pause = if matters { EVERY } else { AT_REST };
        (self.last).map_or(Duration::ZERO, |last| {
            (last + pause).saturating_duration_since(now)
        })
    }
}

/// Whether code has a static call that gets the references in these locals. Another agent may have
/// written the instructions anew, in their short forms. Pure.
fn calls_with(code: &[u8], loads: &[u8]) -> bool {
    (0..code.len()).any(|start| {
        let mut rest = &code[start..];
        for &local in loads {
            rest = match rest {
                [ALOAD, index, rest @ ..] if *index == local => rest,
                [short, rest @ ..] if local < SHORT_FORMS && *short == ALOAD_0 + local => rest,
                _ => return false,
            };
        }
        rest.first() == Some(&INVOKESTATIC)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_is_found_in_either_form_and_anywhere() {
        let long = [ALOAD, 0, ALOAD, 1, ALOAD, 2, INVOKESTATIC, 0, 9, 0x99, 0, 4];
        assert!(calls_with(&long, &[0, 1, 2]));
        let short = [0x2a, 0x2b, 0x2c, INVOKESTATIC, 0, 9];
        assert!(calls_with(&short, &[0, 1, 2]));
        let five = [0x2a, 0x2b, 0x2c, 0x2d, ALOAD, 4, INVOKESTATIC, 0, 9];
        assert!(calls_with(&five, &[0, 1, 2, 3, 4]));
        let turned = [ALOAD, 4, 0x2b, INVOKESTATIC, 0, 9];
        assert!(calls_with(&turned, &[4, 1]) && !calls_with(&turned, &[1, 4]));
        // Behind what somebody else has inserted.
        let behind = [&[0xb8, 0, 7, 0x57][..], &long].concat();
        assert!(calls_with(&behind, &[0, 1, 2]));
    }

    #[test]
    fn other_calls_are_not_it() {
        let virtual_call = [0x2a, 0x2b, 0x2c, 0xb6, 0, 9];
        assert!(!calls_with(&virtual_call, &[0, 1, 2]));
        let fewer = [0x2a, 0x2b, INVOKESTATIC, 0, 9];
        assert!(!calls_with(&fewer, &[0, 1, 2]));
        assert!(!calls_with(&[], &[0, 1]));
        assert!(!calls_with(&[ALOAD], &[0]));
    }

    #[test]
    fn it_is_looked_at_each_second_while_it_matters() {
        let start = Instant::now();
        let mut watch = Watch::default();
        let mut looks = Vec::new();
        for ms in (0..200_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            let matters = (100_000..103_000).contains(&ms);
            if watch.take(now, matters) {
                looks.push(ms);
            }
        }
        assert_eq!(looks, [0, 60_000, 100_000, 101_000, 102_000, 162_000]);
    }
}
