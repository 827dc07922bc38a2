//! The threads of each account: who started the live platform threads, and which of them an undeployed service left.
//!
//! A thread is whose an allocation would be that its own class and its task's class make, with the context class loader
//! that it started with: [`crate::identity::attribution`], on a stack of these two. So
//! - a pool of the JDK that a web application makes is the application's, as its threads inherit the context loader;
//! - a worker of the server is nobody's, or the program's, although it carries the loader of the application whose
//!   request it serves at the moment;
//! - a thread of the JDK's common pool is nobody's or the program's, whoever used the pool first: the JDK gives it the
//!   application class loader.
//!
//! Rules:
//! 1. A thread's context loader is noted when it starts, on the thread, as the tag of its `Thread` in a JVM TI
//!    environment of the census's own: the tags of samples stay as they are, and nothing has to be forgotten.
//! 2. A thread that runs before the agent has started is noted at the first count, with the loader that it has then.
//! 3. A count looks at all platform threads, at most once in [`PAUSE`], and for at most one part in [`SHARE`] of the time
//!    if that lets it come once in [`LONGEST_PAUSE`].
//!    Owners are found anew at each, so a name that comes late and a new policy count for threads that run already.
//! 4. A thread that lives and is a retired loader's, or started with one, is left behind, also where packages pay for it.
//!    Of some it is told what they run: the uppermost frame that is not the JDK's.
//! 5. The agent's own threads are nobody's. Virtual threads are not counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use policy_core::usage::{ByPurse, LeftBehind, LeftThread, MAX_SHOWN_OF_ACCOUNT, Resource};
use policy_jvm::kinds::Thread;
use policy_jvm::{Jni, JvmTi, Ref, SeenFrame, StartedThread};

use crate::allocation::recognizer::Recognizer;
use crate::allocation::stack::claim_on;
use crate::ground::Ground;
use crate::identity::attribution::{AllocatingThread, Claim, Context, Scope, attribute};
use crate::identity::classes::Side;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::identity::names::{java_name, printable};
use crate::ledger::{PurseId, Tag};

/// Between two counts at the least.
const PAUSE: Duration = Duration::from_secs(2);
/// A count may take one part in so many of the time.
const SHARE: u32 = 1_000;
/// But the next one never waits longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Threads left behind that are shown in all.
const MAX_SHOWN: usize = 256;
/// Frames of a stack that are searched for the application's own.
const MAX_FRAMES: i32 = 64;

/// Of a thread of the agent.
const OF_AGENT: i64 = -1;
/// Of a thread without a context class loader that has a number.
const WITHOUT_LOADER: i64 = -2;

/// Notes threads and counts them. See the module.
#[derive(Debug)]
pub(crate) struct ThreadCensus {
    /// The environment whose tags tell what a thread started with. `None`: the VM gives none, and nothing is counted.
    tags: Option<JvmTi>,
}

impl ThreadCensus {
    /// A census that tags in this environment, which may tag objects.
    pub(crate) fn new(tags: Option<JvmTi>) -> ThreadCensus {
        ThreadCensus { tags }
    }

    /// Notes a thread that has just started, which is the calling one. A field and two tags; takes no lock of ours.
    pub(crate) fn started(&self, ground: &Ground, jni: &Jni, started: &StartedThread<'_>) {
        if let (Some(tags), Some(thread), true) =
            (&self.tags, &started.thread, ground.java().is_some())
        {
            let origin = match started.is_agents {
                true => OF_AGENT,
                false => context_of(Recognizer { ground, jni }, thread),
            };
            // Without its tag it is noted at the next count.
            let _ = tags.set_tag(thread, origin);
        }
    }

    /// Counts all threads. On an attached thread of the agent.
    fn count(&self, tags: &JvmTi, ground: &Ground, jni: &Jni) {
        let mut count = ByPurse::new();
        let mut left = Left {
            ground,
            are_undeployed: HashMap::new(),
            found: LeftBehind::default(),
        };
        let has_looked = ground.jvmti.each_thread(jni, |jni, thread| {
            let recognizer = Recognizer { ground, jni };
            let origin = match tags.tag(thread) {
                Ok(OF_AGENT) | Err(_) => return,
                Ok(0) => {
                    let origin = context_of(recognizer, thread);
                    // It may have started just now, and noted itself.
                    if tags.tag(thread) == Ok(0) {
                        let _ = tags.set_tag(thread, origin);
                    }
                    origin
                }
                Ok(origin) => origin,
            };
            let owners = owners_of(recognizer, thread, origin);
            *count.entry(owners.payer).or_default() += 1;
            left.look(recognizer, thread, owners);
        });
        // Otherwise the last count stands.
        if has_looked {
            ground.core.usages.counted(Resource::Threads, count);
            ground.core.usages.found_left(left.found);
        }
    }
}

/// Collects the threads of undeployed versions in one count.
struct Left<'a> {
    ground: &'a Ground,
    /// The directory is asked once about each purse: it is locked for that.
    are_undeployed: HashMap<PurseId, bool>,
    found: LeftBehind,
}

impl Left<'_> {
    fn look(&mut self, recognizer: Recognizer<'_>, thread: &Ref<'_, Thread>, owners: Owners) {
        // Where packages pay, the loader that the thread started with tells.
        let mut purses = [Some(owners.payer), owners.context].into_iter().flatten();
        let undeployed = purses.find(|purse| self.is_undeployed(*purse));
        let Some(purse) = undeployed else { return };
        let of_purse = self.found.count.entry(purse).or_default();
        *of_purse += 1;
        if *of_purse <= MAX_SHOWN_OF_ACCOUNT as u64 && self.found.threads.len() < MAX_SHOWN {
            (self.found.threads).push((purse, described(recognizer, thread)));
        }
    }

    fn is_undeployed(&mut self, purse: PurseId) -> bool {
        let ground = self.ground;
        let known = self.are_undeployed.entry(purse);
        *known.or_insert_with(|| ground.core.directory().is_undeployed(purse))
    }
}

/// When threads are counted. The loader thread owns it.
#[derive(Debug)]
pub(crate) struct CensusTurns {
    census: &'static ThreadCensus,
    next: Option<Instant>,
}

impl CensusTurns {
    /// The first count is due at once.
    pub(crate) fn new(census: &'static ThreadCensus) -> CensusTurns {
        CensusTurns { census, next: None }
    }

    /// Counts if it is due. Returns how long it may be left alone.
    pub(crate) fn turn(&mut self, ground: &Ground, jni: &Jni) -> Duration {
        let Some(tags) = &self.census.tags else {
            return Duration::MAX;
        };
        let begun = Instant::now();
        let wait = self
            .next
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(begun));
        if !wait.is_zero() {
            return wait;
        }
        self.census.count(tags, ground, jni);
        let wait = pause_after(begun.elapsed());
        self.next = Some(Instant::now() + wait);
        wait
    }
}

/// How long the next count waits for after one that took so long: a pause of the VM within a count lengthens it, too.
/// Pure.
fn pause_after(took: Duration) -> Duration {
    took.saturating_mul(SHARE).clamp(PAUSE, LONGEST_PAUSE)
}

/// The start of a thread as a tag: the number of its context class loader.
fn context_of(recognizer: Recognizer<'_>, thread: &Ref<'_, Thread>) -> i64 {
    let ground = recognizer.ground;
    let loader = (ground.context_loader_field()).and_then(|field| thread.get(field));
    let id = loader.map_or(LoaderId::BOOT, |loader| recognizer.loader(loader.any()));
    (ground.core.identity.loaders.tag(id)).unwrap_or(WITHOUT_LOADER)
}

/// Whose a thread is.
#[derive(Debug, Clone, Copy)]
struct Owners {
    /// The purse that pays for what it is.
    payer: PurseId,
    /// The purse of the loader that it started with, if that has one.
    context: Option<PurseId>,
}

fn owners_of(recognizer: Recognizer<'_>, thread: &Ref<'_, Thread>, origin: i64) -> Owners {
    let ground = recognizer.ground;
    let loaders = &ground.core.identity.loaders;
    let context = match Tag::decode(origin) {
        Some(Tag::Loader(handle)) => loaders.of_tag(handle),
        _ => None,
    };
    let owner = context.map(|id| loaders.owner(id));
    let (needs, side) = ground.core.identity.view();
    let mut made = Made {
        recognizer,
        side,
        thread,
        context: owner.map_or(Context::Nobody, Context::of),
    };
    Owners {
        payer: attribute(needs, &mut made).payer,
        context: owner.and_then(LoaderOwner::any_purse),
    }
}

/// A thread as that which an allocation is made by.
struct Made<'a, 'j> {
    recognizer: Recognizer<'j>,
    side: Side,
    thread: &'a Ref<'j, Thread>,
    context: Context,
}

impl AllocatingThread for Made<'_, '_> {
    fn scope(&mut self) -> Option<Scope> {
        None
    }

    fn context(&mut self) -> Context {
        self.context
    }

    fn frame(&mut self, depth: usize) -> Option<Claim> {
        let class = match depth {
            0 => self.thread.class(),
            1 => {
                let java = self.recognizer.ground.java()?;
                java.task_of(self.thread)?.class()
            }
            _ => return None,
        };
        let id = self.recognizer.class(&class);
        Some(claim_on(self.recognizer, self.side, id))
    }

    fn account_of(&self, purse: PurseId) -> u32 {
        self.recognizer.ground.core.identity.representative(purse)
    }
}

/// A thread that was left behind, with what it runs.
fn described(recognizer: Recognizer<'_>, thread: &Ref<'_, Thread>) -> LeftThread {
    let (ground, jni) = (recognizer.ground, recognizer.jni);
    let frames = ground.jvmti.frames_of(jni, thread, MAX_FRAMES);
    let is_own = |frame: &&SeenFrame<'_>| {
        let loader = ground.jvmti.loader_of(jni, frame.method.class());
        let id = loader
            .ok()
            .flatten()
            .map(|loader| recognizer.loader(&loader));
        id.is_some_and(|id| !ground.core.identity.loaders.is_of_jdk(id))
    };
    let own = frames.iter().find(is_own).or(frames.first());
    let java = ground.java();
    LeftThread {
        name: java.map_or_else(String::new, |java| printable(&java.thread_name(thread))),
        is_daemon: java.is_some_and(|java| java.is_daemon(thread)),
        runs: own.and_then(|frame| shown(&ground.jvmti, frame)),
    }
}

/// `com.acme.Poller.run(Poller.java:31)`, as far as the class file tells.
fn shown(jvmti: &JvmTi, frame: &SeenFrame<'_>) -> Option<String> {
    let class = java_name(&jvmti.signature_of(frame.method.class()).ok()?);
    let name = frame.method.name()?;
    let file = jvmti.source_file_of(frame.method.class());
    let line = frame.bci.and_then(|bci| frame.method.line(bci));
    let place = match (file, line) {
        (Some(file), Some(line)) => format!("({file}:{line})"),
        (Some(file), None) => format!("({file})"),
        (None, _) => String::new(),
    };
    Some(printable(&format!("{class}.{name}{place}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_takes_a_thousandth_of_the_time_at_most_and_comes_each_two_seconds() {
        let ms = Duration::from_millis;
        assert_eq!(pause_after(ms(0)), ms(2_000));
        assert_eq!(pause_after(ms(2)), ms(2_000));
        assert_eq!(pause_after(ms(40)), ms(40_000));
        assert_eq!(pause_after(ms(5_000)), ms(60_000), "the VM stood still");
        assert_eq!(pause_after(Duration::MAX), ms(60_000));
    }
}
