//! The loader thread: finds out which service a new class loader belongs to.
//!
//! It takes each loader from the queue of new loaders, asks [`super::rules`] what it is, and writes the
//! answer into the [`crate::identity::directory`] and into the loader's owner, which allocating threads
//! read. Containers name a loader a little after they begin to use it, so the thread asks again, with
//! longer and longer pauses: each question keeps the loader alive through a concurrent marking.
//!
//! It has a thread of its own because it alone calls code of containers. If such a call hangs, new
//! loaders stay unnamed and their bytes stay `_unaccounted`; everything else goes on. For the same reason its
//! [`Follower`], who fits doors and has ended threads noticed, works on it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use policy_jvm::{Jni, Local};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::directory::LoaderIdentity;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::identity::names::Server;
use crate::ledger::{PurseId, Tag};
use crate::options::TestNames;
use crate::servers::Found;

use super::rules;

/// The longest sleep; a new loader wakes the loader thread earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The first pause before the thread asks again about a loader, and the longest. Each is twice the one
/// before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(300));
/// After so many questions, about an hour, a loader that its container does not name is nobody's.
const MAX_ATTEMPTS: u32 = 24;
/// Ancestors of a loader that are looked at in one go.
const MAX_PARENTS: u32 = 64;

/// How late a test has loaders named.
const LATE_NAMES: Duration = Duration::from_secs(8);

/// When to ask again about a loader.
struct NextCheck {
    at: Instant,
    pause: Duration,
    attempts: u32,
}

impl NextCheck {
    fn first() -> NextCheck {
        NextCheck {
            at: Instant::now() + PAUSES.0,
            pause: PAUSES.0,
            attempts: 1,
        }
    }

    fn next(&self) -> NextCheck {
        let pause = (self.pause * 2).min(PAUSES.1);
        NextCheck {
            at: Instant::now() + pause,
            pause,
            attempts: self.attempts + 1,
        }
    }
}

/// Who follows the loaders, on their thread.
pub(crate) trait Follower {
    /// A service or program in this server was named.
    fn service_named(&mut self, server: Server);

    /// Takes a turn. Returns how long it may be left alone.
    fn turn(&mut self, jni: &Jni) -> Duration;
}

/// Runs until the agent stops. `follower` has its turn after each round.
pub(crate) fn run(ground: &'static Ground, jni: &Jni, follower: &mut dyn Follower) {
    ground.loader_thread.listen();
    if ground.options().test_names == Some(TestNames::LateLoaders) {
        std::thread::sleep(LATE_NAMES);
    }
    let mut loader_thread = LoaderThread {
        ground,
        checks: HashMap::new(),
        follower,
    };
    while !ground.stopping() {
        while let Some(id) = ground.core.identity.new_loaders.pop() {
            loader_thread.meet(jni, id);
        }
        if ground.loader_thread.take_rescan() {
            let high_water = ground.core.identity.loaders.high_water();
            for id in ground.references.loaders.unmet(high_water) {
                loader_thread.meet(jni, id);
            }
        }
        let next = loader_thread.check(jni);
        let next = next.min(loader_thread.follower.turn(jni));
        ground.costs.thread_is("loaders");
        ground.loader_thread.wait(next);
    }
}

struct LoaderThread<'a> {
    ground: &'static Ground,
    /// Loaders to ask about again: those without a name yet, and those that show when their service was
    /// stopped.
    checks: HashMap<LoaderId, NextCheck>,
    follower: &'a mut dyn Follower,
}

impl LoaderThread<'_> {
    /// Enters a new loader and names it if its container has. An id of the queue may be stale: the
    /// reference decides whether there is a new loader.
    fn meet(&mut self, jni: &Jni, id: LoaderId) {
        if !self.enter(id) {
            return;
        }
        match self.upgrade(jni, id) {
            Some(loader) => self.introduce(jni, id, &loader),
            // It was unloaded before: what it allocated stays nobody's.
            None => self.set_identity(id, LoaderIdentity::Nobody),
        }
    }

    /// Enters a loader in the directory. False if that was done before, or if the thread that numbers the
    /// loader has not left its weak reference yet.
    fn enter(&mut self, id: LoaderId) -> bool {
        let loaders = &self.ground.core.identity.loaders;
        if !self.ground.references.loaders.meet(id) {
            return false;
        }
        // An earlier loader may have had this id.
        self.checks.remove(&id);
        // A new loader is pending on its own purse, or presumed to be the program's.
        let purse = loaders.owner(id).any_purse();
        self.ground
            .core
            .directory()
            .enter_loader(id, purse.unwrap_or(PurseId::UNACCOUNTED));
        true
    }

    fn introduce(&mut self, jni: &Jni, id: LoaderId, loader: &Local<'_>) {
        let ground = self.ground;
        let winner = match ground.jvmti.tag(loader).ok().and_then(Tag::decode) {
            Some(Tag::Loader(handle)) => ground.core.identity.loaders.of_tag(handle),
            _ => None,
        };
        match winner {
            Some(winner) if winner != id => {
                // Two threads numbered it at the same time; the tag is the other's. Threads may hold
                // this id until the loader is unloaded, which its reference shows. The tag was put
                // on after this entry's own, so two twins are never each other's children.
                self.set_identity(id, LoaderIdentity::ChildOf(winner));
            }
            _ => self.identify(jni, id, loader),
        }
    }

    /// Asks what a loader is and sets its identity.
    fn identify(&mut self, jni: &Jni, id: LoaderId, loader: &Local<'_>) {
        let ground = self.ground;
        let identity = match rules::find(ground, jni, loader) {
            Found::Service(name) => {
                if rules::tells_stop(name.server) {
                    self.checks.insert(id, NextCheck::first());
                }
                LoaderIdentity::Service(name)
            }
            Found::Program(name) => LoaderIdentity::Program(name),
            Found::Nobody => LoaderIdentity::Nobody,
            Found::ChildOf(parent) => self.descent(jni, parent),
            Found::NotYet => {
                let check = self
                    .checks
                    .get(&id)
                    .map_or_else(NextCheck::first, NextCheck::next);
                if check.attempts < MAX_ATTEMPTS {
                    self.checks.insert(id, check);
                    LoaderIdentity::Pending
                } else {
                    LoaderIdentity::Nobody
                }
            }
        };
        if identity == LoaderIdentity::Nobody {
            self.checks.remove(&id);
        }
        self.set_identity(id, identity);
    }

    /// Whose child a loader with this parent is: of the nearest ancestor that is more than a child itself, or of
    /// one on the way that is known. That one is identified first, unless it is too far: then it is the
    /// child of an ancestor in between, which this thread asks about next, and pays for it as for one that has
    /// no name yet. So however deep tenants nest their loaders, each is found, and no turn is long.
    fn descent(&mut self, jni: &Jni, parent: Local<'_>) -> LoaderIdentity {
        let ground = self.ground;
        let mut ancestor = parent;
        for _ in 0..MAX_PARENTS {
            let number = match ground.jvmti.tag(&ancestor).ok().and_then(Tag::decode) {
                Some(Tag::Loader(handle)) => ground.core.identity.loaders.of_tag(handle),
                _ => None,
            };
            let known = number.and_then(|id| {
                let directory = ground.core.directory();
                directory.loader(id).map(|it| it.identity.clone())
            });
            let is_settled = match known {
                // Children are children of one loader, not of each other.
                Some(identity @ LoaderIdentity::ChildOf(_)) => return identity,
                Some(LoaderIdentity::Nobody) => return LoaderIdentity::Nobody,
                Some(LoaderIdentity::Service(_) | LoaderIdentity::Program(_)) => true,
                // It is asked about again, when it is its turn.
                Some(LoaderIdentity::Pending)
                    if number.is_some_and(|id| self.checks.contains_key(&id)) =>
                {
                    true
                }
                Some(LoaderIdentity::Pending) | None => false,
            };
            if !is_settled {
                match rules::find(ground, jni, &ancestor) {
                    Found::ChildOf(next) => {
                        ancestor = next;
                        continue;
                    }
                    Found::Nobody => return LoaderIdentity::Nobody,
                    Found::Service(_) | Found::Program(_) | Found::NotYet => {}
                }
            }
            let id = Recognizer { ground, jni }.loader(&ancestor);
            self.enter(id);
            if !is_settled {
                self.identify(jni, id, &ancestor);
            }
            return match ground.core.identity.loaders.owner(id) {
                LoaderOwner::Nobody => LoaderIdentity::Nobody,
                _ => LoaderIdentity::ChildOf(id),
            };
        }
        let id = Recognizer { ground, jni }.loader(&ancestor);
        self.enter(id);
        self.checks.entry(id).or_insert_with(NextCheck::first);
        LoaderIdentity::ChildOf(id)
    }

    /// Writes an identity into the directory and publishes the owner to allocating threads. The limit of
    /// its account holds for the loader from the enforcer's next turn on.
    fn set_identity(&mut self, id: LoaderId, identity: LoaderIdentity) {
        let ground = self.ground;
        let mut directory = ground.core.directory();
        let Some(own) = directory.loader(id).map(|l| l.purse) else {
            return;
        };
        let owner = match &identity {
            LoaderIdentity::Service(name) => {
                tracing::debug!(service = %name.name, "service found");
                self.follower.service_named(name.server);
                LoaderOwner::Service(own)
            }
            LoaderIdentity::Program(name) => {
                tracing::debug!(program = %name.name, "program found");
                self.follower.service_named(name.server);
                LoaderOwner::Program(own)
            }
            LoaderIdentity::ChildOf(parent) => ground.core.identity.loaders.owner(*parent),
            LoaderIdentity::Nobody => LoaderOwner::Nobody,
            LoaderIdentity::Pending => LoaderOwner::Pending(own),
        };
        directory.set_identity(id, identity);
        ground.core.identity.loaders.set_owner(id, owner);
        // Children that were identified before their parent was named follow it, and theirs.
        for child in directory.descendants(id) {
            ground.core.identity.loaders.set_owner(child, owner);
        }
    }

    /// Asks again about the loaders that are due; returns how long to sleep.
    fn check(&mut self, jni: &Jni) -> Duration {
        let now = Instant::now();
        let due: Vec<LoaderId> = self
            .checks
            .iter()
            .filter(|(_, check)| check.at <= now)
            .map(|(&id, _)| id)
            .collect();
        for id in due {
            let identity = self
                .ground
                .core
                .directory()
                .loader(id)
                .map(|l| l.identity.clone());
            match (identity, self.upgrade(jni, id)) {
                (Some(LoaderIdentity::Pending), Some(loader)) => {
                    self.identify(jni, id, &loader);
                }
                (Some(LoaderIdentity::Service(name)), Some(loader)) => {
                    if rules::is_stopped(self.ground, jni, name.server, &loader) {
                        self.ground.core.directory().retire(id);
                        self.checks.remove(&id);
                    } else if let Some(check) = self.checks.get(&id).map(NextCheck::next) {
                        self.checks.insert(id, check);
                    }
                }
                (identity, _) => {
                    self.checks.remove(&id);
                    if identity == Some(LoaderIdentity::Pending) {
                        self.set_identity(id, LoaderIdentity::Nobody);
                    }
                }
            }
        }
        self.checks
            .values()
            .map(|check| check.at.saturating_duration_since(now))
            .min()
            .map_or(LONGEST_SLEEP, |soonest| {
                soonest.clamp(Duration::from_millis(10), LONGEST_SLEEP)
            })
    }

    fn upgrade<'j>(&self, jni: &'j Jni, id: LoaderId) -> Option<Local<'j>> {
        let loaders = &self.ground.references.loaders;
        loaders.with(id, |weak| weak.upgrade(jni)).flatten()
    }
}
