//! The thread that gathers what inserted code has counted: twice a second, while a policy wants exact accounts
//! or has wanted them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Exact, PackagePattern};
use policy_core::counted_since::classes::UNKNOWN;
use policy_core::exact::{Compared, Comparison, Skip};
use policy_jvm::kinds::Class;
use policy_jvm::{Global, Handle, Jni, JvmTiError};

use crate::ground::Ground;
use crate::ledger::{Exact as Sum, PurseId};

use super::contexts::Contexts;
use super::counter::Counter;
use super::hook::Hook;
use super::natives;
use super::numbers::Numbers;
use super::setting::Setting;

/// Between two sums.
const EVERY: Duration = Duration::from_millis(500);
/// Classes that the JVM loads anew in one operation, which stops the world.
const MAX_AT_ONCE: usize = 256;

/// Defines the counter and gives it to all loaded classes.
pub(super) fn begin(ground: &'static Ground, jni: &Jni) -> Result<Counter, String> {
    let counter = Counter::define(ground, jni)?;
    let wanted = Setting::get().wanted();
    switch(ground, jni, &Exact::default(), &wanted)?;
    Setting::get().was_applied(wanted);
    tell_owners(ground, jni, &counter, true);
    Ok(counter)
}

/// Runs until the agent stops.
pub(crate) fn run(ground: &'static Ground, jni: &Jni, counter: &Counter) {
    let setting = Setting::get();
    setting.wakeup.listen();
    let mut known = Known::default();
    let mut comparison = Comparison::default();
    let since = &ground.core.counted_since;
    gather(ground, jni, counter, &mut known);
    if setting.applied().accounts {
        since.begin(&ground.core.ledger);
    }
    // The setting that could not be switched to: it is not tried again.
    let mut refused: Option<Arc<Exact>> = None;
    let mut policy = ground.policy.in_force();
    while !ground.stopping() {
        let now = ground.policy.in_force();
        let wanted = setting.wanted();
        // Under a new policy other code may belong to accounts.
        let is = setting.applied();
        let is_other = is != wanted && refused.as_ref() != Some(&wanted);
        if is_other || (is.accounts && wanted.accounts && !Arc::ptr_eq(&policy, &now)) {
            match switch(ground, jni, &is, &wanted) {
                Ok(()) => setting.was_applied(wanted),
                Err(why) => {
                    tracing::error!("exact accounts cannot be switched: {why}");
                    refused = Some(wanted);
                }
            }
            tell_owners(ground, jni, counter, true);
            comparison.interrupt();
            gather(ground, jni, counter, &mut known);
            match setting.applied().accounts {
                true => since.begin(&ground.core.ledger),
                false => since.end(),
            }
        }
        policy = now;
        tell_owners(ground, jni, counter, false);
        gather(ground, jni, counter, &mut known);
        since.gathered(&ground.core.ledger);
        if setting.applied().accounts {
            compare(ground, jni, counter, &known, &mut comparison);
        }
        Contexts::get().gather(ground, jni);
        ground.costs.thread_is("exact");
        setting.wakeup.wait(EVERY);
    }
}

/// Tells the counter which code belongs to which account, where that has changed. Then, or if `always`, all
/// threads ask again: what has changed may have changed what they were told.
fn tell_owners(ground: &Ground, jni: &Jni, counter: &Counter, always: bool) {
    let tell = |number, account| counter.belongs(jni, number, account);
    if Numbers::get().follow(&ground.core.identity, tell) || always {
        counter.all_changed(jni);
    }
}

/// Gives code to loaded classes, or takes it away. The hook looks at class files all the while, also when it takes
/// code away, because it keeps the agent's other edits.
fn switch(ground: &'static Ground, jni: &Jni, from: &Exact, to: &Exact) -> Result<(), String> {
    if !to.contexts.is_empty() {
        Contexts::get().define(ground, jni)?;
    }
    let watch = |on| {
        let watched = ground.jvmti.watch_class_files(&Hook, on);
        watched.map_err(|failure| format!("the JVM shows no class files ({failure})"))
    };
    // Made before classes ask for them.
    Numbers::get();
    Contexts::get();
    watch(true)?;
    Setting::get().insert(to.is_wanted());
    if to.is_wanted() {
        ground.core.exact.begin();
    }
    if to.accounts {
        ground.core.exact.begin_accounts();
    }
    let begun = Instant::now();
    let mut loaded = Vec::new();
    ground.jvmti.each_loaded_class(jni, |_, class| {
        let signature = || ground.jvmti.signature_of(class).unwrap_or_default();
        if ground.jvmti.is_modifiable(class)
            && (from.accounts || to.accounts || is_changed(&signature(), from, to))
        {
            loaded.extend(class.weak());
        }
    });
    let (mut classes, mut count) = (Vec::new(), 0_usize);
    for weak in loaded {
        if let Some(class) = weak.upgrade(jni) {
            match ground.jvmti.link(jni, &class) {
                true => classes.extend(class.global()),
                false => tell_refused(ground, &class, JvmTiError::CLASS_NOT_PREPARED),
            }
        }
        jni.release(weak);
        if classes.len() == MAX_AT_ONCE {
            count += retransform(ground, jni, &classes);
            classes.clear();
        }
    }
    count += retransform(ground, jni, &classes);
    if !to.is_wanted() {
        watch(false)?;
    }
    ground.core.exact.set_on(to.accounts);
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
fn retransform(ground: &Ground, jni: &Jni, classes: &[Global<Class>]) -> usize {
    match (ground.jvmti.retransform(jni, classes), classes) {
        (Ok(()), _) => classes.len(),
        (Err(_), []) => 0,
        (Err(failure), [class]) => {
            tell_refused(ground, class, failure);
            0
        }
        (Err(_), _) => {
            let (first, second) = classes.split_at(classes.len() / 2);
            retransform(ground, jni, first) + retransform(ground, jni, second)
        }
    }
}

/// A class stays without counters.
fn tell_refused(ground: &Ground, class: &impl Handle<Kind = Class>, failure: JvmTiError) {
    ground.core.exact.skipped(Skip::NotModifiable);
    let name = ground.jvmti.signature_of(class).unwrap_or_default();
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
fn gather(ground: &Ground, jni: &Jni, counter: &Counter, known: &mut Known) {
    let sums = natives::gathered(|| {
        counter.sum(jni);
    });
    let mut of_purses: HashMap<PurseId, Sum> = HashMap::new();
    let mut of_classes = Vec::new();
    for (key, sum) in sums {
        let Some((purse, class)) = natives::purse_and_class(key) else {
            ground.core.exact.lost(sum.objects);
            continue;
        };
        let before = known.sums.insert(key, sum).unwrap_or_default();
        let gained = sum - before;
        if gained != Sum::default() {
            *of_purses.entry(purse).or_default() += gained;
            let name = || {
                let name = Numbers::get().class_name(class);
                name.map_or_else(|| UNKNOWN.into(), Arc::from)
            };
            let name = known.names.entry(class).or_insert_with(name);
            // A count that comes late for a purse that was closed is not its next owner's.
            if ground.core.ledger.is_open(purse) {
                of_classes.push((purse, Arc::clone(name), gained));
            }
        }
    }
    for (purse, gained) in of_purses {
        ground.core.ledger.count_exact(purse, gained);
    }
    ground.core.counted_since.count_classes(of_classes);
}

/// Sets what was counted beside the JVM's own figure.
fn compare(
    ground: &Ground,
    jni: &Jni,
    counter: &Counter,
    known: &Known,
    comparison: &mut Comparison,
) {
    let Some(jvm_bytes) = counter.jvm_bytes(ground, jni) else {
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
        ground.core.exact.set_compared(sum);
    }
}
