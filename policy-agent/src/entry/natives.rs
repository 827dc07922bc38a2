//! The requests of the Java half of the API to the agent: the native methods of
//! `dev.heapwarden.agent.Natives`.
//!
//! They run on threads of the host, outside of any event. They may wait up to a timeout, but take no lock
//! of the directory and throw nothing. If the agent has no answer, they return a value that the Java half
//! takes for none. Objects made here are charged to the caller.

use std::time::{Duration, Instant};

use policy_jvm::kinds::{
    Anything, Array, Class, ClassLoader, JavaString, LongArray, Thread, Throwable,
};
use policy_jvm::{Jni, Local, NativeMethod, Ref};

use crate::allocation::recognizer::Recognizer;
use crate::allocation::sampled_thread;
use crate::enforce::door::{Answer, Request};
use crate::enforce::ports::LetIn;
use crate::enforce::routes::Found;
use crate::ground::Ground;
use crate::identity::loaders::LoaderId;
use crate::identity::scopes::{Misuse, NewScope};
use crate::jvm::bridge::Bridge;
use crate::jvm::thread_scopes::let_in_of;
use crate::ledger::{PurseId, Tag};
use crate::native_memory;
use crate::report::UNACCOUNTED;
use crate::sampling::standard_error_bytes;
use crate::uncaught;

use super::agent::Agent;

/// The greatest age of a reading that a program gets.
const READING_AGE: Duration = Duration::from_millis(250);
/// Time between two checks of a thread that waits.
const POLL: Duration = Duration::from_millis(1);
/// Time between two collections that a test asks for while it waits for complete refunds.
const COLLECTION_PATIENCE: Duration = Duration::from_millis(500);
/// The longest wait for the definition of the bridge's classes.
const LONGEST_DEFINING: Duration = Duration::from_secs(1);
/// The longest wait for refunds.
const LONGEST_REFUND_WAIT: Duration = Duration::from_secs(60);
/// The longest wait of a test for a reading: with many records readings are several seconds apart.
const LONGEST_READING: Duration = Duration::from_secs(60);
/// Classes returned at the most.
const MAX_CLASSES: usize = 1_000;

/// Binds the methods to their class.
pub(super) fn bind(jni: &Jni, class: &Ref<'_, Class>) -> Result<(), String> {
    let methods = [
        NativeMethod::of0::<(), _>("watchNativeMemoryFromHere", watch_native_memory),
        NativeMethod::of2::<i32, i32, bool, _>("probe", probe),
        NativeMethod::of3::<Anything, JavaString, ClassLoader, i32, _>("open", open),
        NativeMethod::of1::<i32, bool, _>("idle", idle),
        NativeMethod::of1::<bool, (), _>("use", use_scopes),
        NativeMethod::of1::<i32, (), _>("misuse", misuse),
        NativeMethod::of2::<JavaString, i32, LongArray, _>("read", read),
        NativeMethod::of1::<i32, JavaString, _>("current", current),
        NativeMethod::of2::<i32, i32, bool, _>("refuses", refuses),
        NativeMethod::of1::<ClassLoader, i32, _>("number", number),
        NativeMethod::of0::<bool, _>("anyShut", any_shut),
        NativeMethod::of1::<i32, bool, _>("came", came),
        NativeMethod::of1::<i32, (), _>("serves", serves),
        NativeMethod::of3::<i32, JavaString, JavaString, i32, _>("route", route),
        NativeMethod::of4::<i32, i32, JavaString, JavaString, i64, _>("knock", knock),
        NativeMethod::of3::<i32, i64, bool, (), _>("probeEnded", probe_ended),
        NativeMethod::of2::<i32, i32, i32, _>("refuser", refuser),
        NativeMethod::of3::<i32, JavaString, JavaString, i64, _>("ask", ask),
        NativeMethod::of2::<i32, i64, (), _>("askedEnded", asked_ended),
        NativeMethod::of2::<i32, i32, bool, _>("isInside", is_inside),
        NativeMethod::of1::<i32, i32, _>("refuserAt", refuser_at),
        NativeMethod::of1::<i32, i32, _>("routeAt", route_at),
        NativeMethod::of3::<i32, i32, i32, i64, _>("enterDoor", enter_door),
        NativeMethod::of2::<Thread, Throwable, (), _>("threadEnded", thread_ended),
        NativeMethod::of1::<bool, (), _>("listen", listen),
        NativeMethod::of1::<i32, LongArray, _>("figures", figures),
        NativeMethod::of2::<i32, bool, (), _>("watch", watch),
        NativeMethod::of2::<i32, i32, Array<Anything>, _>("classes", classes),
        NativeMethod::of1::<i64, bool, _>("settle", settle),
        NativeMethod::of2::<i32, bool, (), _>("trace", trace),
        NativeMethod::of3::<i32, JavaString, i32, Array<Anything>, _>("sites", sites),
    ];
    if jni.bind(class, &methods) {
        Ok(())
    } else {
        Err("its native methods cannot be bound".to_owned())
    }
}

/// A purse as the Java half numbers it; 0 is none.
fn purse_of(number: i32) -> Option<PurseId> {
    (u16::try_from(number).ok())
        .filter(|&number| number != PurseId::UNACCOUNTED.get())
        .map(PurseId::new)
}

fn watch_native_memory(jni: &Jni) {
    if let Some(ground) = Ground::get() {
        native_memory::begin(ground, jni);
    }
}

fn probe(jni: &Jni, expected: i32, inherited: i32) -> bool {
    let Some(ground) = Ground::get() else {
        return false;
    };
    let Some(bridge) = wait_for_bridge(ground) else {
        return false;
    };
    let seen = (ground.jvmti.current_thread(jni))
        .is_some_and(|thread| bridge.thread_scopes().probe(&thread) == (expected, inherited));
    // After an attach the VM may name the carrier of a virtual thread instead. Then that thread has no
    // scopes, and others have them.
    if !seen && !ground.shows_carriers() {
        bridge.self_test_failed();
        return false;
    }
    true
}

/// The bridge, after a short wait if needed: while the agent is being attached, a program may find its
/// classes before they are all looked up, and the Java half keeps the answer.
fn wait_for_bridge(ground: &Ground) -> Option<&Bridge> {
    let begun = Instant::now();
    while ground.bridge().is_none() && begun.elapsed() < LONGEST_DEFINING && !ground.stopping() {
        std::thread::sleep(POLL);
    }
    ground.bridge()
}

fn open(
    jni: &Jni,
    token: Option<Ref<'_>>,
    name: Option<Ref<'_, JavaString>>,
    loader: Option<Ref<'_, ClassLoader>>,
) -> i32 {
    let (Some(ground), Some(token)) = (Ground::get(), token) else {
        return 0;
    };
    let Some(name) = name.and_then(|name| name.text()) else {
        return 0;
    };
    let loader = loader.map_or(LoaderId::BOOT, |loader| {
        Recognizer { ground, jni }.loader(loader.any())
    });
    open_purse(ground, &token, name, loader).map_or(0, |purse| purse.get().into())
}

/// Opens the purse of a scope. `None` if there is no room.
fn open_purse(ground: &Ground, token: &Ref<'_>, name: String, loader: LoaderId) -> Option<PurseId> {
    let identity = &ground.core.identity;
    if identity.new_scopes.is_full() {
        ground.metadata_thread.wake();
        return None;
    }
    if !identity.scopes.enter() {
        return None;
    }
    let Some(purse) = ground.core.ledger.open_purse() else {
        identity.scopes.leave();
        return None;
    };
    identity.set_representative(purse, purse);
    // From the loader's present owner, until the enforcer has read the directory.
    // Not the program's: its scopes stand beside it.
    let service = identity.loaders.owner(loader).purse();
    let above = service.map(|service| PurseId::new(identity.representative(service) as u16));
    identity.set_above(purse, above);
    let displaced = ground.jvmti.tag(token).unwrap_or(0);
    let scope = identity.scopes.open(purse, displaced);
    // From here on the purse has an owner, which ends it if the rest fails.
    let queued = identity.new_scopes.push(NewScope {
        purse,
        name,
        loader,
    });
    ground.metadata_thread.wake();
    let scope = scope?;
    let tagged = ground.jvmti.set_tag(token, Tag::Scope(scope).encode());
    if queued.is_err() || tagged.is_err() {
        // The displaced tag is not refunded: the object lives and keeps it.
        let _ = identity.scopes.died(scope);
        return None;
    }
    Some(purse)
}

fn idle(_: &Jni, purse: i32) -> bool {
    let purse = Ground::get().zip(purse_of(purse));
    purse.is_some_and(|(ground, purse)| ground.core.ledger.totals(purse).charged.bytes == 0)
}

fn use_scopes(_: &Jni, inherited: bool) {
    if let Some(ground) = Ground::get() {
        ground.core.identity.scopes.use_them(inherited);
    }
}

fn misuse(_: &Jni, kind: i32) {
    let misuse = usize::try_from(kind).ok().and_then(|k| Misuse::ALL.get(k));
    if let Some((ground, &misuse)) = Ground::get().zip(misuse) {
        ground.core.identity.scopes.count_misuse(misuse);
    }
}

fn read<'j>(
    jni: &'j Jni,
    account: Option<Ref<'_, JavaString>>,
    purse: i32,
) -> Option<Local<'j, LongArray>> {
    let Agent { api, .. } = Agent::get()?;
    let figures = match purse_of(purse) {
        Some(purse) => {
            let reading = api.reading_cache.ask_knowing(purse, READING_AGE)?;
            reading.figures(reading.name_of(purse)?)
        }
        None => {
            let name = account?.text()?;
            api.reading_cache.ask(READING_AGE)?.figures(&name)
        }
    };
    jni.new_longs(&figures?)
}

fn refuses(_: &Jni, purse: i32, loader: i32) -> bool {
    let payer = Ground::get().and_then(|ground| Some((ground, payer_of(ground, purse, loader)?)));
    payer.is_some_and(|(ground, payer)| ground.core.refuses(payer))
}

fn refuser(_: &Jni, purse: i32, loader: i32) -> i32 {
    let payer = Ground::get().and_then(|ground| Some((ground, payer_of(ground, purse, loader)?)));
    let refuser = payer.and_then(|(ground, payer)| ground.core.refuser(payer));
    refuser.map_or(0, |purse| i32::from(purse.get()))
}

/// The purse of a scope; if there is none, of the service that the loader with this number belongs to.
fn payer_of(ground: &Ground, purse: i32, loader: i32) -> Option<PurseId> {
    let loader = || u32::try_from(loader).ok().map(LoaderId);
    let service = || ground.core.identity.loaders.owner(loader()?).any_purse();
    purse_of(purse).or_else(service)
}

fn number(jni: &Jni, loader: Option<Ref<'_, ClassLoader>>) -> i32 {
    let Some((ground, loader)) = Ground::get().zip(loader) else {
        return 0;
    };
    let LoaderId(number) = Recognizer { ground, jni }.loader(loader.any());
    i32::try_from(number).unwrap_or(0)
}

fn any_shut(_: &Jni) -> bool {
    Ground::get().is_some_and(|ground| ground.core.any_shut())
}

fn serves(_: &Jni, server: i32) {
    if let (Some(ground), Ok(server)) = (Ground::get(), u32::try_from(server)) {
        ground.serving.began(server);
        ground.loader_thread.wake();
    }
}

fn came(_: &Jni, route: i32) -> bool {
    let Some(ground) = Ground::get() else {
        return false;
    };
    if let Ok(route @ 1..) = u32::try_from(route) {
        let current = ground.core.ledger.epochs().current();
        ground.core.enforcement.routes.came(route, current);
    }
    ground.core.any_shut()
}

fn route(
    _: &Jni,
    loader: i32,
    method: Option<Ref<'_, JavaString>>,
    path: Option<Ref<'_, JavaString>>,
) -> i32 {
    const LATER: i32 = 0;
    const NONE: i32 = -1;
    let loader = u32::try_from(loader).ok().map(LoaderId);
    let text = |text: Option<Ref<'_, JavaString>>| text.and_then(|text| text.text());
    let (Some(ground), Some(loader), Some(method), Some(path)) =
        (Ground::get(), loader, text(method), text(path))
    else {
        return LATER;
    };
    let number = |number: u32| i32::try_from(number).unwrap_or(0);
    if ground.shows_carriers() {
        // Samples would not find the request of a virtual thread: its route would look cheap.
        return NONE;
    }
    match ground.core.enforcement.routes.find(loader, &method, &path) {
        Found::Known(known) => number(known),
        Found::Rest(rest) => NONE - number(rest),
        Found::None => NONE,
        Found::Later => {
            ground.metadata_thread.wake();
            LATER
        }
    }
}

/// The purse of the service, or of the program, that the loader with this number belongs to.
fn service_of(ground: &Ground, loader: i32) -> Option<PurseId> {
    let loader = u32::try_from(loader).ok().filter(|&number| number != 0)?;
    ground
        .core
        .identity
        .loaders
        .owner(LoaderId(loader))
        .any_purse()
}

fn knock(
    _: &Jni,
    loader: i32,
    route: i32,
    method: Option<Ref<'_, JavaString>>,
    path: Option<Ref<'_, JavaString>>,
) -> i64 {
    let payer = Ground::get().and_then(|ground| Some((ground, service_of(ground, loader)?)));
    // Its neighbours' requests come by here while a service is shut: nothing is copied for them.
    let asked = payer.filter(|(ground, payer)| ground.core.is_asked(*payer));
    asked.map_or(IN, |(ground, payer)| {
        let route = u32::try_from(route).unwrap_or(0);
        let answer = answer(route, method, path, |request| {
            let answer = ground.core.knock(payer, request, ground.uptime_ms());
            match answer {
                Answer::Probe(ticket) => sampled_thread::let_in(Some(ticket)),
                Answer::Free(_) => sampled_thread::let_in(None),
                Answer::In | Answer::Away { .. } => {}
            }
            answer
        });
        if answer >= IN {
            return answer;
        }
        // Whole seconds are what the header can say: up, or a client that comes again then is early.
        let answer = -(-answer).unsigned_abs().div_ceil(1_000).cast_signed() * 1_000;
        match ground.core.status_at_door(payer) {
            429 => answer - TOO_MANY,
            _ => answer,
        }
    })
}

fn ask(
    _: &Jni,
    purse: i32,
    method: Option<Ref<'_, JavaString>>,
    path: Option<Ref<'_, JavaString>>,
) -> i64 {
    Ground::get()
        .zip(purse_of(purse))
        .map_or(IN, |(ground, payer)| {
            answer(0, method, path, |request| {
                ground.core.ask(payer, request, ground.uptime_ms())
            })
        })
}

/// The door's answer, as the Java half reads it.
const IN: i64 = 0;
/// Subtracted from an answer that turns a request away with 429.
const TOO_MANY: i64 = 1 << 20;

fn answer(
    route: u32,
    method: Option<Ref<'_, JavaString>>,
    path: Option<Ref<'_, JavaString>>,
    ask: impl FnOnce(Request<'_>) -> Answer,
) -> i64 {
    let text = |text: Option<Ref<'_, JavaString>>| text.and_then(|text| text.text());
    let (method, path) = (
        text(method).unwrap_or_default(),
        text(path).unwrap_or_default(),
    );
    let request = Request {
        method: &method,
        path: &path,
        route,
    };
    match ask(request) {
        Answer::In => IN,
        Answer::Probe(ticket) | Answer::Free(ticket) => i64::try_from(ticket).unwrap_or(IN),
        Answer::Away { retry_after_ms } => {
            -i64::try_from(retry_after_ms).map_or(1_000, |ms| ms.clamp(1_000, 60_000))
        }
    }
}

fn probe_ended(_: &Jni, loader: i32, ticket: i64, is_whole: bool) {
    let Some((ground, ticket)) = Ground::get().zip(u64::try_from(ticket).ok()) else {
        return;
    };
    sampled_thread::probe_ended(ticket);
    if let Some(payer) = service_of(ground, loader) {
        let now_ms = ground.uptime_ms();
        match is_whole {
            true => ground.core.probe_ended(payer, ticket, now_ms),
            false => ground.core.probe_begun(payer, ticket, now_ms),
        }
    }
}

fn asked_ended(_: &Jni, purse: i32, ticket: i64) {
    let ticket = u64::try_from(ticket).ok();
    if let (Some(ground), Some(payer), Some(ticket)) = (Ground::get(), purse_of(purse), ticket) {
        sampled_thread::probe_ended(ticket);
        ground.core.probe_ended(payer, ticket, ground.uptime_ms());
    }
}

fn is_inside(_: &Jni, purse: i32, let_in: i32) -> bool {
    let LetIn::Work(mark) = let_in_of(let_in) else {
        return false;
    };
    Ground::get()
        .zip(purse_of(purse))
        .is_some_and(|(ground, payer)| ground.core.gate_of_work(payer, mark).is_some())
}

fn refuser_at(jni: &Jni, door: i32) -> i32 {
    let refuser = Agent::get().and_then(|agent| {
        let door = agent.method_doors.door(door)?;
        door.refuser(agent.ground, jni)
    });
    refuser.map_or(0, |purse| i32::from(purse.get()))
}

fn route_at(_: &Jni, door: i32) -> i32 {
    const LATER: i32 = 0;
    const NONE: i32 = -1;
    let Some(agent) = Agent::get() else {
        return LATER;
    };
    // Code asks before its door is published.
    let Some(door) = agent.method_doors.door(door) else {
        return LATER;
    };
    match door.route(agent.ground) {
        Found::Known(known) | Found::Rest(known) => i32::try_from(known).unwrap_or(NONE),
        Found::None => NONE,
        Found::Later => {
            agent.ground.metadata_thread.wake();
            LATER
        }
    }
}

fn enter_door(jni: &Jni, door: i32, payer: i32, route: i32) -> i64 {
    let asked = Agent::get().zip(purse_of(payer));
    let ticket = asked.and_then(|(agent, payer)| {
        let door = agent.method_doors.door(door)?;
        let route = u32::try_from(route).unwrap_or(0);
        door.enter(agent.ground, &agent.method_doors, jni, payer, route)
    });
    ticket.map_or(IN, |ticket| {
        sampled_thread::let_in(Some(ticket));
        i64::try_from(ticket).unwrap_or(IN)
    })
}

fn thread_ended(jni: &Jni, thread: Option<Ref<'_, Thread>>, error: Option<Ref<'_, Throwable>>) {
    if let (Some(ground), Some(thread), Some(error)) = (Ground::get(), thread, error) {
        uncaught::ended(ground, jni, &thread, &error);
    }
}

fn current(jni: &Jni, purse: i32) -> Option<Local<'_, JavaString>> {
    let Agent { ground, api, .. } = Agent::get()?;
    let purse = purse_of(purse).or_else(|| context_service(ground, jni));
    let known = purse.and_then(|purse| {
        let reading = api.reading_cache.ask_knowing(purse, READING_AGE)?;
        Some((purse, reading))
    });
    let name = (known.as_ref()).and_then(|(purse, reading)| reading.name_of(*purse));
    jni.new_string(name.unwrap_or(UNACCOUNTED))
}

/// The purse of the service, or of the program, that the calling thread's context class loader names.
fn context_service(ground: &Ground, jni: &Jni) -> Option<PurseId> {
    let thread = ground.jvmti.current_thread(jni)?;
    let loader = thread.get(ground.context_loader_field()?)?;
    let id = Recognizer { ground, jni }.loader(loader.any());
    ground.core.identity.loaders.owner(id).any_purse()
}

fn listen(_: &Jni, any: bool) {
    let Some(Agent { ground, api, .. }) = Agent::get() else {
        return;
    };
    if any {
        // The listeners' threads are masked, and masks are read like scopes.
        ground.core.identity.scopes.use_them(false);
    }
    api.listen(any);
}

fn figures(jni: &Jni, purse: i32) -> Option<Local<'_, LongArray>> {
    let Agent { ground, api, .. } = Agent::get()?;
    let purse = purse_of(purse)?;
    // A thread of the agent scans the records, after this call began.
    let reading = (api.reading_cache).ask_within(Duration::ZERO, LONGEST_READING)?;
    let live = reading.live_of(purse);
    let totals = ground.core.ledger.totals(purse);
    let intervals = ground.core.ledger.intervals();
    let interval_bytes = intervals.bytes(intervals.current());
    let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let error = |variance| standard_error_bytes(variance).ceil() as i64;
    let figures = [
        long(live.bytes),
        long(totals.charged.bytes),
        error(live.variance),
        long(live.objects()),
        long(totals.allocated_bytes),
        long(totals.allocated_objects),
        long(ground.core.peaks.peak_bytes(purse)),
        i64::from(interval_bytes == 0),
        long(interval_bytes),
        error(ground.core.peaks.peak_variance(purse)),
        error(totals.allocated_variance),
    ];
    jni.new_longs(&figures)
}

fn watch(_: &Jni, purse: i32, on: bool) {
    match Ground::get().zip(purse_of(purse)) {
        Some((ground, purse)) if on => ground.core.peaks.watch(purse),
        Some((ground, purse)) => ground.core.peaks.forget(purse),
        None => {}
    }
}

fn classes(jni: &Jni, purse: i32, most: i32) -> Option<Local<'_, Array<Anything>>> {
    let Agent { ground, api, .. } = Agent::get()?;
    let purse = purse_of(purse)?;
    let most = usize::try_from(most).unwrap_or(0).min(MAX_CLASSES);
    let bridge = ground.bridge()?;
    let reading = api.reading_cache.ask(Duration::ZERO)?;
    let name = reading.name_of(purse)?;
    let mut row = Vec::new();
    for class in reading.classes(name).iter().take(most) {
        row.push(jni.new_string(&class.class)?.upcast());
        for number in [
            class.live_bytes,
            class.live_objects,
            class.allocated_bytes_total,
        ] {
            row.push(bridge.boxed(jni, number)?);
        }
    }
    jni.new_objects(&row)
}

fn trace(_: &Jni, purse: i32, on: bool) {
    if let Some((agent, purse)) = Agent::get().zip(purse_of(purse)) {
        agent.api.traced.trace(purse, on);
        // The thread of the agent that takes it asks for the stacks.
        let _ = (agent.api.reading_cache).ask_within(Duration::ZERO, LONGEST_READING);
    }
}

fn sites<'a>(
    jni: &'a Jni,
    purse: i32,
    class: Option<Ref<'_, JavaString>>,
    most: i32,
) -> Option<Local<'a, Array<Anything>>> {
    let Agent { ground, api, .. } = Agent::get()?;
    let purse = purse_of(purse)?;
    let class = class?.text()?;
    let bridge = ground.bridge()?;
    let reading = (api.reading_cache).ask_within(Duration::ZERO, LONGEST_READING)?;
    let name = reading.name_of(purse)?;
    let mut row = Vec::new();
    let most = usize::try_from(most).unwrap_or(0);
    for site in reading.sites(name, &class).take(most) {
        row.push(jni.new_string(&site.frames.join("\n"))?.upcast());
        // Saturates.
        row.push(bridge.boxed(jni, (site.share * 1000.0).round() as u64)?);
    }
    jni.new_objects(&row)
}

fn settle(jni: &Jni, millis: i64) -> bool {
    let Some(ground) = Ground::get() else {
        return false;
    };
    let longest = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    // Without refunds the agent never sees that a collection is complete.
    ground.core.samples_are_taken() && settle_within(ground, jni, longest.min(LONGEST_REFUND_WAIT))
}

/// Collects until everything that was charged before the call has been through a collection and its
/// refunds are in. It calls `System.gc()`, which the caller could call as well, and which an operator can
/// disable.
fn settle_within(ground: &Ground, jni: &Jni, longest: Duration) -> bool {
    let begun = Instant::now();
    let epochs = ground.core.ledger.epochs();
    let epoch = epochs.current();
    while begun.elapsed() < longest && !ground.stopping() {
        let before = epochs.current();
        let runtime = ground.java().and_then(|java| java.runtime.as_ref());
        let runtime = runtime.and_then(|runtime| runtime.local(jni));
        let called = runtime.is_some_and(|runtime| jni.call_void(&runtime, "gc"));
        // Without a pause it is disabled, and a young collection that comes by itself is not enough.
        if !called || epochs.current() == before {
            return false;
        }
        let collected = Instant::now();
        while collected.elapsed() < COLLECTION_PATIENCE && !ground.stopping() {
            if epochs.boundary() >= Some(epoch) {
                return true;
            }
            ground.core.enforcer.wake();
            std::thread::sleep(POLL);
        }
    }
    epochs.boundary() >= Some(epoch)
}
