//! Notices threads that a refusal ended: counts them, and says in the log where the error was thrown.
//!
//! The JVM brings an error that a thread has not caught to `Thread.dispatchUncaughtException`, and so do virtual
//! threads. The agent inserts a call of its Java half at the entry of that method, once, when limits are
//! enforced for the first time. A thread's own handler runs afterwards, as ever.
//!
//! No event of JVM TI tells this: at the end of a thread its error is gone, and events of exceptions or of
//! breakpoints slow down the whole JVM.

use std::sync::Arc;
use std::time::Instant;

use policy_config::{Limit, Mode, Policy};
use policy_jvm::kinds::{Array, Class, JavaClass, Thread, Throwable};
use policy_jvm::{Jni, Ref};
use policy_rewrite::{ClassFile, MethodEdit, RewriteError, Rewriter, Snippet};

use crate::capabilities;
use crate::enforce::killed_threads::KilledThread;
use crate::ground::Ground;
use crate::identity::names::printable;
use crate::inserted::{Inserted, State, Watch};

/// The class of the Java half that is called, and its method.
const JAVA_HALF: &str = "dev/heapwarden/agent/Uncaught";
const ENDED: (&str, &str) = ("ended", "(Ljava/lang/Thread;Ljava/lang/Throwable;)V");
/// The method of `java.lang.Thread` that calls it.
const DISPATCH: (&str, &str) = ("dispatchUncaughtException", "(Ljava/lang/Throwable;)V");
/// References that the call gets: the thread and the error.
const LOADS: &[u8] = &[0, 1];
const ACC_STATIC: u16 = 0x0008;
/// Frames of an error that are searched for the application's own.
const MAX_FRAMES: i32 = 64;

/// `java.lang.StackTraceElement`.
struct StackTraceElement;

impl JavaClass for StackTraceElement {
    const NAME: &'static str = "java/lang/StackTraceElement";
}

/// See the module. The loader thread owns it.
pub(crate) struct UncaughtWatch {
    /// The policy that was looked at last.
    policy: Option<Arc<Policy>>,
    /// It was done, or cannot be done.
    tried: bool,
    /// The call, while it is looked after: another agent may take it out.
    call: Option<Inserted>,
    watch: Watch,
}

impl UncaughtWatch {
    /// Has done nothing yet.
    pub(crate) fn new() -> UncaughtWatch {
        UncaughtWatch {
            policy: None,
            tried: false,
            call: None,
            watch: Watch::default(),
        }
    }

    /// Inserts the call if the policy enforces a limit for the first time. If that is not possible, the log
    /// says so once, and nothing else changes.
    pub(crate) fn turn(&mut self, ground: &Ground, jni: &Jni) {
        if self.tried {
            self.look_after(ground, jni);
            return;
        }
        let policy = ground.policy.in_force();
        if (self.policy.as_ref()).is_some_and(|known| Arc::ptr_eq(known, &policy)) {
            return;
        }
        if enforces_limits(&policy) {
            self.tried = true;
            match insert(ground, jni) {
                Ok(call) => {
                    self.call = call;
                    tracing::info!("threads that a refusal ends are counted from now on");
                }
                Err(why) => tracing::warn!(
                    "threads that a refusal ends are neither counted nor logged by the agent: {why}"
                ),
            }
        }
        self.policy = Some(policy);
    }

    /// Inserts the call again if another agent has taken it out. If that does not last, the log says so.
    fn look_after(&mut self, ground: &Ground, jni: &Jni) {
        let Some(call) = &mut self.call else {
            return;
        };
        if !self.watch.take(Instant::now(), true) || call.state(&ground.jvmti, jni) != State::Lost {
            return;
        }
        let is_back = call.renew(&ground.jvmti, jni, |thread| {
            rewrite(ground, jni, thread).is_ok()
        });
        if is_back {
            tracing::warn!(
                "another agent has changed java.lang.Thread: threads that a refusal ends are counted again"
            );
        } else {
            self.call = None;
            tracing::warn!(
                "another agent changes java.lang.Thread again and again: threads that a refusal ends are no longer counted or logged"
            );
        }
    }
}

fn enforces_limits(policy: &Policy) -> bool {
    policy.enforcement.mode == Mode::Enforce
        && (policy.accounts.iter()).any(|account| account.limit != Limit::None)
}

/// Inserts the call into `java.lang.Thread`. The call, if it can be looked after.
fn insert(ground: &Ground, jni: &Jni) -> Result<Option<Inserted>, String> {
    if !(ground.published_capabilities()).contains(&(capabilities::REWRITING, true)) {
        return Err("the JVM does not let the agent rewrite classes".to_owned());
    }
    if ground.bridge().is_none() {
        return Err("the agent's Java half could not be defined".to_owned());
    }
    // By its loader: an application may have a class of this name.
    let ours = (jni.boot_class(JAVA_HALF))
        .filter(|class| matches!(ground.jvmti.loader_of(jni, class), Ok(None)));
    let ours = ours.filter(|class| class.static_method(ENDED.0, ENDED.1).is_some());
    let ours = ours.ok_or("a class of the agent's Java half is missing")?;
    let thread = jni.boot_class(Thread::NAME);
    let thread = thread.ok_or("there is no class java.lang.Thread")?;
    // Without this the inserted call would fail, and with it the program's own handler.
    (ground.jvmti.add_module_reads(&thread, &ours)).map_err(|failure| {
        format!("java.base cannot be let read the agent's module ({failure})")
    })?;
    rewrite(ground, jni, &thread)?;
    let method = (DISPATCH.0, &[DISPATCH.1][..]);
    Ok(Inserted::find(&ground.jvmti, jni, &thread, method, LOADS))
}

/// Rewrites `java.lang.Thread`.
fn rewrite(ground: &Ground, jni: &Jni, thread: &Ref<'_, Class>) -> Result<(), String> {
    (ground.kept_edits).keep(jni, thread, |file| call_inserted(file).ok().flatten());
    let rewritten = rewrite_now(ground, jni, thread);
    if rewritten.is_err() {
        ground.kept_edits.forget(jni, thread);
    }
    rewritten
}

fn rewrite_now(ground: &Ground, jni: &Jni, thread: &Ref<'_, Class>) -> Result<(), String> {
    let mut refused = None;
    let rewritten = ground.jvmti.rewrite(jni, thread, &mut |file| {
        call_inserted(file)
            .map_err(|why| refused = Some(why))
            .ok()
            .flatten()
    });
    match (rewritten, refused) {
        (_, Some(why)) => Err(format!("the class file of java.lang.Thread: {why}")),
        (Ok(true), None) => Ok(()),
        (Ok(false), None) => Err("java.lang.Thread has no method that is known".to_owned()),
        (Err(failure), None) => Err(format!("the JVM does not accept the new class ({failure})")),
    }
}

/// The class file of `java.lang.Thread` with the call inserted; `None` if it has no such method. Pure.
fn call_inserted(file: &[u8]) -> Result<Option<Vec<u8>>, RewriteError> {
    let class = ClassFile::parse(file)?;
    let mut rewriter = Rewriter::new(&class);
    let method = class.methods().iter().find(|method| {
        method.name() == DISPATCH.0.as_bytes()
            && method.descriptor() == DISPATCH.1.as_bytes()
            && method.access_flags() & ACC_STATIC == 0
    });
    if let Some(method) = method {
        let call = (Snippet::new().load_reference(0).load_reference(1))
            .invoke_static(JAVA_HALF, ENDED.0, ENDED.1)?;
        let mut edit = MethodEdit::default();
        edit.before(0, call);
        rewriter.edit(method, &edit)?;
    }
    Ok(rewriter.finish())
}

/// A thread ends with an error that nothing has caught: counts it and writes its line, if the agent threw the
/// error. On that thread, outside of any event. What is allocated here is charged to it.
pub(crate) fn ended(
    ground: &Ground,
    jni: &Jni,
    thread: &Ref<'_, Thread>,
    error: &Ref<'_, Throwable>,
) {
    let Some(account) = ground
        .errors()
        .and_then(|errors| errors.account_of(jni, error))
    else {
        return;
    };
    if let Some(account) = &account {
        ground.core.enforcement.count_killed_thread(account);
    }
    let Some(left_out) = (ground.core.enforcement.killed_threads).admit(Instant::now()) else {
        return;
    };
    let name = ground.java().map(|java| java.thread_name(thread));
    let killed = KilledThread {
        account: account.map(|account| printable(&account)),
        thread: printable(&name.unwrap_or_default()),
        place: place(jni, error),
        left_out,
    };
    tracing::warn!("{killed}");
}

/// The class and the method of an error's topmost frame that is none of the JDK's.
fn place(jni: &Jni, error: &Ref<'_, Throwable>) -> Option<(String, String)> {
    let class = jni.boot_class(Throwable::NAME)?;
    // The class's own method: a copy of the error may be a tenant's class.
    let method = class.method("getStackTrace", "()[Ljava/lang/StackTraceElement;")?;
    let trace = method.own_object::<Array<StackTraceElement>>(error, &[])?;
    (0..trace.array_length().min(MAX_FRAMES)).find_map(|index| {
        let frame = trace.element(index)?;
        let text = |field| frame.get_named(field, "Ljava/lang/String;")?.text();
        let module = text("moduleName").unwrap_or_default();
        let is_jdk = module.starts_with("java.") || module.starts_with("jdk.");
        let place = || Some((text("declaringClass")?, text("methodName")?));
        let (class, method) = place().filter(|_| !is_jdk)?;
        Some((printable(&class), printable(&method)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_without_the_method_is_left_alone() {
        let file = include_bytes!("../java/classes/dev/heapwarden/agent/Uncaught.class");
        assert_eq!(call_inserted(file), Ok(None));
        assert!(call_inserted(b"no class").is_err());
    }

    #[test]
    fn limits_must_be_enforced() {
        let policy = |mode: &str, limit: &str| {
            let text = format!(
                "[enforcement]\nmode = \"{mode}\"\n[[account]]\nservice = \"/shop\"\n{limit}"
            );
            (policy_config::parse(&text).policy).expect("a valid policy")
        };
        assert!(enforces_limits(&policy("enforce", "limit = \"1MiB\"")));
        assert!(!enforces_limits(&policy("observe", "limit = \"1MiB\"")));
        assert!(!enforces_limits(&policy("enforce", "")));
    }
}
