//! What the Java half of the API asks of the agent: the native methods of
//! `dev.heapwarden.agent.Natives`.
//!
//! They run on threads of the host, outside of any event: they may wait, for a bounded time, but
//! take no lock of the directory and throw nothing. Where the agent cannot answer they give what
//! the Java half takes for no answer. What is allocated here is the caller's and charged to it.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni;

use crate::agent::Agent;
use crate::api::reading::Reading;
use crate::identity::loaders::LoaderId;
use crate::identity::scopes::{Misuse, NewScope};
use crate::ledger::{PurseId, Tag};
use crate::report::UNACCOUNTED;
use crate::sampling::{standard_error_bytes, weight::OBJECT_UNIT};

use super::bridge::Bridge;
use super::guard;
use super::java::{Jni, Local, call};
use super::sight::Sight;

/// How old a reading may be that a program gets.
const READING_AGE: Duration = Duration::from_millis(250);
/// Between two looks of a thread that waits.
const LOOK: Duration = Duration::from_millis(1);
/// Between two collections that a test asks for, while it waits for one to be told complete.
const COLLECTION_PATIENCE: Duration = Duration::from_millis(500);
/// How long the definition of the bridge's classes is waited for.
const LONGEST_DEFINING: Duration = Duration::from_secs(1);
/// The longest wait for refunds.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);
/// Classes given at the most.
const MOST_CLASSES: usize = 1_000;

type Env = *mut jni::JNIEnv;

/// Binds the methods to their class.
pub(super) fn bind(jni: &Jni, class: &Local<'_>) -> Result<(), String> {
    fn method(
        name: &'static CStr,
        signature: &'static CStr,
        function: *mut c_void,
    ) -> jni::JNINativeMethod {
        jni::JNINativeMethod {
            name: name.as_ptr(),
            signature: signature.as_ptr(),
            fnPtr: function,
        }
    }
    let methods = [
        method(c"probe", c"(II)Z", probe as *mut c_void),
        method(
            c"open",
            c"(Ljava/lang/Object;Ljava/lang/String;Ljava/lang/ClassLoader;)I",
            open as *mut c_void,
        ),
        method(c"idle", c"(I)Z", idle as *mut c_void),
        method(c"use", c"(Z)V", use_scopes as *mut c_void),
        method(c"misuse", c"(I)V", misuse as *mut c_void),
        method(c"read", c"(Ljava/lang/String;I)[J", read as *mut c_void),
        method(c"current", c"(I)Ljava/lang/String;", current as *mut c_void),
        method(c"listen", c"(Z)V", listen as *mut c_void),
        method(c"figures", c"(I)[J", figures as *mut c_void),
        method(c"watch", c"(IZ)V", watch as *mut c_void),
        method(
            c"classes",
            c"(II)[Ljava/lang/Object;",
            classes as *mut c_void,
        ),
        method(c"settle", c"(J)Z", settle as *mut c_void),
    ];
    let bound = call!(
        jni,
        RegisterNatives,
        class.raw(),
        methods.as_ptr(),
        methods.len() as i32
    );
    if jni.clear_exception() || bound != 0 {
        return Err("its native methods cannot be bound".to_owned());
    }
    Ok(())
}

/// Runs a native method; `otherwise` where there is no agent or it fails.
fn serve<T>(env: Env, otherwise: T, work: impl FnOnce(&'static Agent, &Jni) -> T) -> T {
    guard::contain(|| {
        let agent = Agent::get()?;
        // SAFETY: the VM passes a native method its thread's environment.
        Some(work(agent, &unsafe { Jni::from_raw(env) }))
    })
    .flatten()
    .unwrap_or(otherwise)
}

/// A purse as the Java half numbers it; 0 is none.
fn purse_of(number: jni::jint) -> Option<PurseId> {
    (u16::try_from(number).ok())
        .filter(|&number| number != PurseId::UNACCOUNTED.get())
        .map(PurseId::new)
}

unsafe extern "system" fn probe(
    env: Env,
    _: jni::jclass,
    expected: jni::jint,
    inherited: jni::jint,
) -> jni::jboolean {
    let seen = serve(env, false, |agent, jni| {
        let Some(bridge) = bridge_soon(agent) else {
            return false;
        };
        let seen = (agent.tools.current_thread(jni)).is_some_and(|thread| {
            // SAFETY: it is the calling thread's own.
            let seen = unsafe { bridge.cells().probe(jni, thread.raw()) };
            seen == (expected, inherited)
        });
        // Attached late the VM may show a virtual thread's carrier instead; that thread has no
        // scopes then, and others do.
        if !seen && !agent.shows_carriers() {
            bridge.is_blind();
            return false;
        }
        true
    });
    seen.into()
}

/// The bridge, waited for a little: where the agent is attached, a program may find its classes a moment
/// before they are all looked up, and what this answers is kept.
fn bridge_soon(agent: &Agent) -> Option<&Bridge> {
    let begun = Instant::now();
    while agent.bridge().is_none() && begun.elapsed() < LONGEST_DEFINING && !agent.stopping() {
        std::thread::sleep(LOOK);
    }
    agent.bridge()
}

unsafe extern "system" fn open(
    env: Env,
    _: jni::jclass,
    token: jni::jobject,
    name: jni::jstring,
    loader: jni::jobject,
) -> jni::jint {
    serve(env, 0, |agent, jni| {
        // SAFETY: the VM passes valid references, or null.
        let (token, name, loader) =
            unsafe { (jni.borrow(token), jni.borrow(name), jni.borrow(loader)) };
        let (Some(token), Some(name)) = (token, name.and_then(|name| name.text())) else {
            return 0;
        };
        let loader = loader.map_or(LoaderId::BOOT, |loader| {
            Sight { agent, jni }.loader(&loader)
        });
        open_purse(agent, &token, name, loader).map_or(0, |purse| purse.get().into())
    })
}

/// Opens the purse of a scope. `None` where there is no room for one.
fn open_purse(agent: &Agent, token: &Local<'_>, name: String, loader: LoaderId) -> Option<PurseId> {
    let identity = &agent.identity;
    if identity.new_scopes.is_full() {
        agent.clerk.wake();
        return None;
    }
    if !identity.scopes.enter() {
        return None;
    }
    let Some(purse) = agent.ledger.open_purse() else {
        identity.scopes.leave();
        return None;
    };
    identity.set_representative(purse, purse);
    // Until the warden has read the directory: what is known of the loader now.
    let service = identity.loaders.verdict(loader).purse();
    let above = service.map(|service| PurseId::new(identity.representative(service) as u16));
    identity.set_above(purse, above);
    let displaced = agent.tools.tag(token).unwrap_or(0);
    let scope = identity.scopes.open(purse, displaced);
    // From here on the purse has an owner, who ends it where the rest fails.
    let queued = identity.new_scopes.push(NewScope {
        purse,
        name,
        loader,
    });
    agent.clerk.wake();
    let scope = scope?;
    let tagged = agent.tools.set_tag(token, Tag::Scope(scope).encode());
    if queued.is_err() || tagged.is_err() {
        // What it would have displaced is not refunded: the object lives and keeps its tag.
        let _ = identity.scopes.died(scope);
        return None;
    }
    Some(purse)
}

unsafe extern "system" fn idle(env: Env, _: jni::jclass, purse: jni::jint) -> jni::jboolean {
    let idle = serve(env, false, |agent, _| {
        purse_of(purse).is_some_and(|purse| agent.ledger.totals(purse).charged.bytes == 0)
    });
    idle.into()
}

unsafe extern "system" fn use_scopes(env: Env, _: jni::jclass, inherited: jni::jboolean) {
    serve(env, (), |agent, _| {
        agent.identity.scopes.use_them(inherited != 0);
    });
}

unsafe extern "system" fn misuse(env: Env, _: jni::jclass, kind: jni::jint) {
    serve(env, (), |agent, _| {
        let misuse = usize::try_from(kind).ok().and_then(|k| Misuse::ALL.get(k));
        if let Some(&misuse) = misuse {
            agent.identity.scopes.count_misuse(misuse);
        }
    });
}

unsafe extern "system" fn read(
    env: Env,
    _: jni::jclass,
    account: jni::jstring,
    purse: jni::jint,
) -> jni::jlongArray {
    serve(env, ptr::null_mut(), |agent, jni| {
        let figures = match purse_of(purse) {
            Some(purse) => reading_with(agent, purse)
                .and_then(|reading| reading.figures(reading.name_of(purse)?)),
            None => {
                // SAFETY: the VM passes a valid reference, or null.
                let name = unsafe { jni.borrow(account) }.and_then(|name| name.text());
                name.and_then(|name| agent.api.desk.ask(READING_AGE)?.figures(&name))
            }
        };
        figures.map_or(ptr::null_mut(), |figures| longs(jni, &figures))
    })
}

/// A reading that knows whose a purse is, if the directory does.
fn reading_with(agent: &Agent, purse: PurseId) -> Option<std::sync::Arc<Reading>> {
    let reading = agent.api.desk.ask(READING_AGE)?;
    if reading.name_of(purse).is_some() {
        return Some(reading);
    }
    agent.api.desk.ask(Duration::ZERO)
}

unsafe extern "system" fn current(env: Env, _: jni::jclass, purse: jni::jint) -> jni::jstring {
    serve(env, ptr::null_mut(), |agent, jni| {
        let purse = purse_of(purse).or_else(|| context_service(agent, jni));
        let reading = purse.and_then(|purse| Some((purse, reading_with(agent, purse)?)));
        let name = reading
            .as_ref()
            .and_then(|(purse, reading)| reading.name_of(*purse));
        let name = name.unwrap_or(UNACCOUNTED);
        jni.new_string(name)
            .map_or(ptr::null_mut(), |name| given(jni, &name))
    })
}

/// The purse of the service that the calling thread's context class loader names.
fn context_service(agent: &Agent, jni: &Jni) -> Option<PurseId> {
    let thread = agent.tools.current_thread(jni)?;
    let loader = thread.get(agent.context_loader_field()?)?;
    let id = Sight { agent, jni }.loader(&loader);
    agent.identity.loaders.verdict(id).purse()
}

unsafe extern "system" fn listen(env: Env, _: jni::jclass, any: jni::jboolean) {
    serve(env, (), |agent, _| {
        if any != 0 {
            // The listeners' threads are masked, which is read where scopes are.
            agent.identity.scopes.use_them(false);
        }
        agent.api.listen(any != 0);
    });
}

unsafe extern "system" fn figures(env: Env, _: jni::jclass, purse: jni::jint) -> jni::jlongArray {
    serve(env, ptr::null_mut(), |agent, jni| {
        let Some(purse) = purse_of(purse) else {
            return ptr::null_mut();
        };
        let (mut live_bytes, mut live_objects) = (0u64, 0u64);
        agent.ledger.scan(|record| {
            if record.survived && record.payer == purse {
                live_bytes = live_bytes.saturating_add(record.live.bytes);
                live_objects = live_objects.saturating_add(record.live.objects);
            }
        });
        let totals = agent.ledger.totals(purse);
        let intervals = agent.ledger.intervals();
        let interval_bytes = intervals.bytes(intervals.current());
        let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let figures = [
            long(live_bytes),
            long(totals.charged.bytes),
            standard_error_bytes(totals.charged.variance).ceil() as i64,
            long(live_objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT),
            long(totals.allocated_bytes),
            long(totals.allocated_objects),
            long(agent.api.peaks.peak_bytes(purse)),
            i64::from(interval_bytes == 0),
            long(interval_bytes),
        ];
        longs(jni, &figures)
    })
}

unsafe extern "system" fn watch(env: Env, _: jni::jclass, purse: jni::jint, on: jni::jboolean) {
    serve(env, (), |agent, _| match purse_of(purse) {
        Some(purse) if on != 0 => agent.api.peaks.watch(purse),
        Some(purse) => agent.api.peaks.forget(purse),
        None => {}
    });
}

unsafe extern "system" fn classes(
    env: Env,
    _: jni::jclass,
    purse: jni::jint,
    most: jni::jint,
) -> jni::jobjectArray {
    serve(env, ptr::null_mut(), |agent, jni| {
        let most = usize::try_from(most).unwrap_or(0).min(MOST_CLASSES);
        let found = purse_of(purse).and_then(|purse| {
            let reading = agent.api.desk.ask(Duration::ZERO)?;
            let name = reading.name_of(purse)?.to_owned();
            Some((reading, name))
        });
        let (Some(bridge), Some((reading, name))) = (agent.bridge(), found) else {
            return ptr::null_mut();
        };
        let mut row = Vec::new();
        for class in reading.classes(&name).iter().take(most) {
            row.extend(jni.new_string(&class.class));
            for number in [
                class.live_bytes,
                class.live_objects,
                class.allocated_bytes_total,
            ] {
                row.extend(bridge.boxed(jni, number));
            }
            if row.len() % 4 != 0 {
                return ptr::null_mut();
            }
        }
        bridge
            .objects(jni, &row)
            .map_or(ptr::null_mut(), |array| given(jni, &array))
    })
}

unsafe extern "system" fn settle(env: Env, _: jni::jclass, millis: jni::jlong) -> jni::jboolean {
    let settled = serve(env, false, |agent, jni| {
        let longest = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        // Without refunds no collection would ever be seen to have come.
        agent.samples_are_taken() && settle_within(agent, jni, longest.min(LONGEST_SETTLING))
    });
    settled.into()
}

/// Collects until what was charged before the call has been through a collection and its refunds
/// are in. By `System.gc()`, which whoever gets here could call as well, and which an operator can
/// forbid.
fn settle_within(agent: &Agent, jni: &Jni, longest: Duration) -> bool {
    let begun = Instant::now();
    let epochs = agent.ledger.epochs();
    let epoch = epochs.current();
    while begun.elapsed() < longest && !agent.stopping() {
        let before = epochs.current();
        let runtime = agent.java().and_then(|java| java.runtime.as_ref());
        let runtime = runtime.and_then(|runtime| runtime.local(jni));
        let called = runtime.is_some_and(|runtime| jni.call_void(&runtime, c"gc", c"()V", &[]));
        // Without a pause it was forbidden: a young collection that comes by itself would not do.
        if !called || epochs.current() == before {
            return false;
        }
        let collected = Instant::now();
        while collected.elapsed() < COLLECTION_PATIENCE && !agent.stopping() {
            if epochs.boundary() >= Some(epoch) {
                return true;
            }
            agent.warden.wake();
            std::thread::sleep(LOOK);
        }
    }
    epochs.boundary() >= Some(epoch)
}

/// A new `long[]`; null where the heap has no room.
fn longs(jni: &Jni, numbers: &[i64]) -> jni::jlongArray {
    let length = i32::try_from(numbers.len()).unwrap_or(0);
    let array = call!(jni, NewLongArray, length);
    if jni.clear_exception() || array.is_null() {
        return ptr::null_mut();
    }
    call!(jni, SetLongArrayRegion, array, 0, length, numbers.as_ptr());
    jni.clear_exception();
    array
}

/// A reference for the caller, which outlives ours.
fn given(jni: &Jni, object: &Local<'_>) -> jni::jobject {
    call!(jni, NewLocalRef, object.raw())
}
