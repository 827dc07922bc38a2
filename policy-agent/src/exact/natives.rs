//! The requests of the counter to the agent: the native methods of `java.lang.HeapwardenCounter`.
//!
//! They run on allocating threads, but seldom: at the first allocation of a thread, of a class, or since
//! something changed; at the first call of a package, and at the first object of a class that only the object itself
//! tells (a clone, what reflection makes), whose name is read then. The last two take the lock of the numbers for a moment.

use std::cell::RefCell;

use policy_jvm::guard::Latch;
use policy_jvm::kinds::{Anything, Class};
use policy_jvm::{Jni, NativeMethod, Ref};

use crate::allocation::recognizer::Recognizer;
use crate::allocation::stack::JavaThread;
use crate::ground::Ground;
use crate::identity::attribution::{AllocatingThread, Context, attribute};
use crate::ledger::{Exact, PurseId};

use super::hook::loader_of;
use super::numbers::{NOBODY, Numbers};

/// Of [`account`]: nothing that code does changes it.
const FIXED: i32 = 1;

thread_local! {
    /// The sums that the calling thread gathers.
    static SUMS: RefCell<Vec<(i64, Exact)>> = const { RefCell::new(Vec::new()) };
}

/// Binds the methods of the counter, by way of a class that calls [`bind_now`]: its own are bound first.
pub(super) fn bind(jni: &Jni, binder: &Ref<'_, Class>) -> bool {
    let binds = NativeMethod::of0::<bool, _>("bindNow", bind_now);
    let bind = || binder.static_method("bind", "()Z")?.boolean(jni, &[]);
    let binds = [binds, super::contexts::binder()];
    jni.bind(binder, &binds) && bind() == Some(true)
}

fn bind_now(jni: &Jni) -> bool {
    let Some(class) = jni.boot_class(policy_exact::COUNTER) else {
        return false;
    };
    let methods = [
        NativeMethod::of0::<i32, _>("account", account),
        NativeMethod::of1::<i32, i32, _>("owner", owner),
        NativeMethod::of1::<Class, i32, _>("size", size),
        NativeMethod::of1::<Anything, i32, _>("sizeOf", size_of),
        NativeMethod::of3::<i64, i64, i64, (), _>("total", total),
        NativeMethod::of1::<Class, i32, _>("number", number),
    ];
    jni.bind(&class, &methods)
}

/// Returns the sums that `run` had the counter tell, by key ([`purse_and_class`]; -1: what was lost).
pub(super) fn gathered(run: impl FnOnce()) -> Vec<(i64, Exact)> {
    SUMS.with_borrow_mut(Vec::clear);
    run();
    SUMS.take()
}

/// The two parts of a key, as `HeapwardenTable.key` joins them; `None` for what was lost.
pub(super) fn purse_and_class(key: i64) -> Option<(PurseId, u16)> {
    let purse = u16::try_from(key >> 17).ok()?;
    Some((PurseId::new(purse), key as u16))
}

fn account(jni: &Jni) -> i32 {
    let Some(ground) = Ground::get() else {
        return i32::from(PurseId::UNACCOUNTED.get()) | FIXED;
    };
    // A thread of the agent, or one that it works on.
    let Some(_latch) = Latch::enter() else {
        return i32::from(PurseId::UNACCOUNTED.get()) | FIXED;
    };
    let recognizer = Recognizer { ground, jni };
    let (needs, side) = ground.core.identity.view();
    let current = ground.jvmti.current_thread(jni);
    let current = current.as_deref();
    let mut thread = JavaThread::new(recognizer, current, side);
    let is_fixed = thread.scope().is_some()
        || !needs.packages && matches!(thread.context(), Context::Service(_));
    let payer = attribute(needs, &mut thread).payer;
    (2 * i32::from(payer.get())) | if is_fixed { FIXED } else { 0 }
}

fn owner(_: &Jni, number: i32) -> i32 {
    Ground::get().map_or(NOBODY, |ground| {
        Numbers::get().owner(&ground.core.identity, number)
    })
}

fn size(jni: &Jni, class: Option<Ref<'_, Class>>) -> i32 {
    let (Some(ground), Some(class)) = (Ground::get(), class) else {
        return 0;
    };
    // The latch keeps the object from being sampled.
    let _latch = Latch::enter();
    let object = jni.allocate(&class);
    object.map_or(0, |object| bytes_of(ground, &object))
}

fn size_of(_: &Jni, object: Option<Ref<'_>>) -> i32 {
    let (Some(ground), Some(object)) = (Ground::get(), object) else {
        return 0;
    };
    bytes_of(ground, &object)
}

fn bytes_of(ground: &Ground, object: &Ref<'_>) -> i32 {
    let size = ground.jvmti.size_of(object).unwrap_or(0);
    i32::try_from(size).unwrap_or(i32::MAX)
}

fn number(jni: &Jni, class: Option<Ref<'_, Class>>) -> i32 {
    let number = || {
        let (ground, class) = (Ground::get()?, class?);
        // The latch keeps the look-up from being sampled.
        let _latch = Latch::enter();
        let tools = &ground.jvmti;
        let loader = tools.loader_of(jni, &class).ok()?;
        let loader = loader_of(ground, jni, tools, loader.as_deref())?;
        let signature = tools.signature_of(&class).ok()?;
        let name = match signature.strip_prefix('L') {
            Some(name) => name.strip_suffix(';')?,
            None => &signature,
        };
        Numbers::get().class_of_object(loader, name.as_bytes())
    };
    number().unwrap_or(policy_exact::OTHER_CLASSES)
}

fn total(_: &Jni, key: i64, bytes: i64, objects: i64) {
    let sum = Exact {
        bytes: bytes as u64,
        objects: objects as u64,
    };
    SUMS.with_borrow_mut(|sums| sums.push((key, sum)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_an_account_and_a_class() {
        let key = |purse: i64, class: i64| ((2 * purse) << 16) | class;
        for (purse, class) in [(0, 1), (3, 10), (65_535, 65_535)] {
            let expected = (PurseId::new(purse as u16), class as u16);
            assert_eq!(purse_and_class(key(purse, class)), Some(expected));
        }
        assert_eq!(purse_and_class(-1), None);
    }
}
