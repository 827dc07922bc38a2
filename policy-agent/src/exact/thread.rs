//! The thread that gathers what inserted code has counted: twice a second, while a policy wants exact accounts
//! or has wanted them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use policy_config::{Exact, PackagePattern};
use policy_core::counted_since::classes::UNKNOWN;
use policy_core::exact::{Compared, Comparison, Skip};
use policy_jvm::kinds::Class;
use policy_jvm::{Global, Handle, Jni, JvmTiError};

use crate::agent::Agent;
use crate::ledger::{Exact as Sum, PurseId};

use super::counter::Counter;
use super::natives;

/// Between two sums.
const EVERY: Duration = Duration::from_millis(500);
/// Classes that the JVM loads anew in one operation, which stops the world.
const MOST_AT_ONCE: usize = 256;

/// Defines the counter and gives it to all loaded classes.
pub(super) fn begin(agent: &'static Agent, jni: &Jni) -> Result<Counter, String> {
    let counter = Counter::define(agent, jni)?;
    let wanted = agent.exact.wanted();
    switch(agent, jni, &Exact::default(), &wanted)?;
    agent.exact.was_applied(wanted);
    agent.exact.numbers.tell(agent, jni, &counter, true);
    Ok(counter)
}

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni, counter: &Counter) {
    let exact = &agent.exact;
    exact.wakeup.listen();
    let mut known = Known::default();
    let mut comparison = Comparison::default();
    let since = &agent.core.counted_since;
    gather(agent, jni, counter, &mut known);
    if exact.applied().accounts {
        since.begin(&agent.core.ledger);
    }
    // The setting that could not be switched to: it is not tried again.
    let mut refused: Option<Arc<Exact>> = None;
    let mut policy = agent.policy.in_force();
    while !agent.stopping() {
        let now = agent.policy.in_force();
        let wanted = exact.wanted();
        // Under a new policy other code may belong to accounts.
        let is = exact.applied();
        let is_other = is != wanted && refused.as_ref() != Some(&wanted);
        if is_other || (is.accounts && wanted.accounts && !Arc::ptr_eq(&policy, &now)) {
            match switch(agent, jni, &is, &wanted) {
                Ok(()) => exact.was_applied(wanted),
                Err(why) => {
                    tracing::error!("exact accounts cannot be switched: {why}");
                    refused = Some(wanted);
                }
            }
            exact.numbers.tell(agent, jni, counter, true);
            comparison.interrupt();
            gather(agent, jni, counter, &mut known);
            match exact.applied().accounts {
                true => since.begin(&agent.core.ledger),
                false => since.end(),
            }
        }
        policy = now;
        exact.numbers.tell(agent, jni, counter, false);
        gather(agent, jni, counter, &mut known);
        since.gathered(&agent.core.ledger);
        if exact.applied().accounts {
            compare(agent, jni, counter, &known, &mut comparison);
        }
        exact.contexts.gather(agent, jni);
        agent.costs.thread_is("exact");
        exact.wakeup.wait(EVERY);
    }
}

/// Gives code to loaded classes, or takes it away. The hook looks at class files all the while, also when it takes
/// code away, because it keeps the agent's other edits.
fn switch(agent: &'static Agent, jni: &Jni, from: &Exact, to: &Exact) -> Result<(), String> {
    if !to.contexts.is_empty() {
        agent.exact.contexts.define(agent, jni)?;
    }
    let watch = |on| {
        let watched = agent.jvmti.watch_class_files(&agent.exact.hook, on);
        watched.map_err(|failure| format!("the JVM shows no class files ({failure})"))
    };
    watch(true)?;
    (agent.exact.inserting).store(to.is_wanted(), Ordering::Release);
    if to.is_wanted() {
        agent.core.exact.begin();
    }
    if to.accounts {
        agent.core.exact.begin_accounts();
    }
    let begun = Instant::now();
    let mut loaded = Vec::new();
    agent.jvmti.each_loaded_class(jni, |_, class| {
        let signature = || agent.jvmti.signature_of(class).unwrap_or_default();
        if agent.jvmti.is_modifiable(class)
            && (from.accounts || to.accounts || is_changed(&signature(), from, to))
        {
            loaded.extend(class.weak());
        }
    });
    let (mut classes, mut count) = (Vec::new(), 0_usize);
    for weak in loaded {
        if let Some(class) = weak.upgrade(jni) {
            match agent.jvmti.link(jni, &class) {
                true => classes.extend(class.global()),
                false => tell_refused(agent, &class, JvmTiError::CLASS_NOT_PREPARED),
            }
        }
        jni.release(weak);
        if classes.len() == MOST_AT_ONCE {
            count += retransform(agent, jni, &classes);
            classes.clear();
        }
    }
    count += retransform(agent, jni, &classes);
    if !to.is_wanted() {
        watch(false)?;
    }
    agent.core.exact.set_on(to.accounts);
    let ms = begun.elapsed().as_millis();
    if to.accounts {
        tracing::info!(
            "exact accounts: {count} loaded classes count their allocations, after {ms} ms"
        );
    } else if from.accounts {
        tracing::info!("exact accounts are off: {count} classes are as they were, after {ms} ms");
    }
    if from.contexts != to.contexts || from.bytecodes != to.bytecodes {
        let packages = Listed(&to.contexts);
        let bytecodes = if to.bytecodes {
            " with executed bytecodes"
        } else {
            ""
        };
        tracing::info!(
            "contexts are counted of {packages}{bytecodes}: {count} loaded classes changed, after {ms} ms"
        );
    }
    Ok(())
}

/// Patterns in a line of the log.
struct Listed<'a>(&'a [PackagePattern]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => formatter.write_str("no package"),
            [one] => write!(formatter, "{one}"),
            [first, others @ ..] => write!(formatter, "{first} and {} more", others.len()),
        }
    }
}

/// Whether a class needs other code where accounts are off.
fn is_changed(signature: &str, from: &Exact, to: &Exact) -> bool {
    let Some(name) = signature.strip_prefix('L') else {
        return false;
    };
    if policy_exact::follows_threads(name.trim_end_matches(';').as_bytes()) {
        return from.is_wanted() != to.is_wanted();
    }
    let package = name.rsplit_once('/').map_or("", |(package, _)| package);
    let [was, is] = [from, to].map(|exact| exact.has_contexts_of(package));
    was != is || is && from.bytecodes != to.bytecodes
}

/// How many of the classes the JVM has loaded anew. If it refuses some, it is asked again without them.
fn retransform(agent: &Agent, jni: &Jni, classes: &[Global<Class>]) -> usize {
    match (agent.jvmti.retransform(jni, classes), classes) {
        (Ok(()), _) => classes.len(),
        (Err(_), []) => 0,
        (Err(failure), [class]) => {
            tell_refused(agent, class, failure);
            0
        }
        (Err(_), _) => {
            let (first, second) = classes.split_at(classes.len() / 2);
            retransform(agent, jni, first) + retransform(agent, jni, second)
        }
    }
}

/// A class stays without counters.
fn tell_refused(agent: &Agent, class: &impl Handle<Kind = Class>, failure: JvmTiError) {
    agent.core.exact.skipped(Skip::NotModifiable);
    let name = agent.jvmti.signature_of(class).unwrap_or_default();
    tracing::debug!(
        "{name} has no counters: the JVM cannot link it, or refuses its new code ({failure})"
    );
}

/// The sums that the counter told last, and the names of classes.
#[derive(Default)]
struct Known {
    sums: HashMap<i64, Sum>,
    names: HashMap<u16, Arc<str>>,
}

/// Adds what was counted since the last time to the purses, and to their classes.
fn gather(agent: &Agent, jni: &Jni, counter: &Counter, known: &mut Known) {
    let sums = natives::gathered(|| {
        counter.sum(jni);
    });
    let mut of_purses: HashMap<PurseId, Sum> = HashMap::new();
    let mut of_classes = Vec::new();
    for (key, sum) in sums {
        let Some((purse, class)) = natives::purse_and_class(key) else {
            agent.core.exact.lost(sum.objects);
            continue;
        };
        let before = known.sums.insert(key, sum).unwrap_or_default();
        let gained = sum - before;
        if gained != Sum::default() {
            *of_purses.entry(purse).or_default() += gained;
            let name = || {
                let name = agent.exact.numbers.class_name(class);
                name.map_or_else(|| UNKNOWN.into(), Arc::from)
            };
            let name = known.names.entry(class).or_insert_with(name);
            // A count that comes late for a purse that was closed is not its next owner's.
            if agent.core.ledger.is_open(purse) {
                of_classes.push((purse, Arc::clone(name), gained));
            }
        }
    }
    for (purse, gained) in of_purses {
        agent.core.ledger.count_exact(purse, gained);
    }
    agent.core.counted_since.count_classes(of_classes);
}

/// Sets what was counted beside the JVM's own figure.
fn compare(
    agent: &Agent,
    jni: &Jni,
    counter: &Counter,
    known: &Known,
    comparison: &mut Comparison,
) {
    let Some(jvm_bytes) = counter.jvm_bytes(agent, jni) else {
        comparison.interrupt();
        return;
    };
    let counted_bytes =
        (known.sums.values()).fold(0_u64, |sum, exact| sum.wrapping_add(exact.bytes));
    let sum = comparison.look(Compared {
        jvm_bytes,
        counted_bytes,
    });
    if sum.jvm_bytes > 0 {
        agent.core.exact.set_compared(sum);
    }
}
