//! Exact accounts: every class is given code that counts its allocations (`policy-exact` says which), and a
//! thread of the agent gathers the counts.
//!
//! Off until a policy wants them; then [`thread`] begins, defines the class that counts
//! (`policy-agent/java.base/java/lang`), and has the JVM load the code of all loaded classes anew. From then on
//! [`Hook`] gives counters to each class that is loaded. Switched off again, the code goes, the counts stay.
//!
//! Contexts go the same way, with or without accounts: their code stands in the classes of the named packages, and
//! in those of the JDK that say which thread runs (the module `contexts`).

mod contexts;
mod counter;
mod hook;
mod names;
mod natives;
mod numbers;
mod setting;
pub(crate) mod thread;

use std::sync::Arc;

use policy_jvm::Jni;

use crate::ground::Ground;
use crate::report::profile::Stacks;

use contexts::Contexts;
use counter::Counter;
use numbers::Numbers;
pub(crate) use setting::Setting;

/// Returns allocations of calling contexts as stacks by account and class; empty if none was counted. Agent threads.
pub(crate) fn stacks_of_contexts(ground: &Ground) -> Stacks {
    Contexts::get().stacks(account_of_code(ground))
}

/// The answer of `/api/v1/contexts`. Agent threads.
pub(crate) fn contexts_document(ground: &Ground) -> Vec<u8> {
    let packages = &ground.policy.in_force().exact.contexts;
    let packages = packages.iter().map(ToString::to_string).collect();
    let account = account_of_code(ground);
    Contexts::get().document(packages, account)
}

/// The name of the account that code of a number belongs to.
fn account_of_code(ground: &Ground) -> impl Fn(i32) -> Option<Arc<str>> {
    let names = ground.core.directory().names();
    let numbers = Numbers::get();
    move |code| {
        let purse = numbers.purse(&ground.core.identity, code)?;
        names.get(&purse).cloned()
    }
}

/// A policy was put in force. The first time that one wants exact accounts, gives counters to what is loaded,
/// so that at the start no code of the program runs without them, and returns what the thread needs, which is to be
/// started then ([`thread::run`]). The metadata thread, or at the start.
pub(crate) fn adopt(ground: &'static Ground, jni: &Jni) -> Option<Counter> {
    let setting = Setting::get();
    let begins = setting.want(Arc::new(ground.policy.in_force().exact.clone()));
    let begun = begins.then(|| thread::begin(ground, jni));
    setting.wakeup.wake();
    match begun? {
        Ok(counter) => Some(counter),
        Err(why) => {
            tracing::error!("exact accounts are not kept: {why}");
            None
        }
    }
}
