//! The resolver: the thread that finds out whose a new loader is.
//!
//! It works off the queue of new loaders, asks [`super::naming`] what each is, writes the
//! answer into the [`super::directory`], and lets allocating threads know through the
//! loader's verdict. Containers name a loader a little after they begin to use it, so an
//! unanswered question is asked again, ever more seldom: to look at a loader keeps it alive
//! through a concurrent marking.
//!
//! It has a thread of its own because it alone calls into containers. Should such a call
//! hang, new loaders stay unnamed and what they hold stays `_unaccounted`; everything else
//! goes on.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::jvm::java::{Jni, Local};
use crate::jvm::sight::Sight;
use crate::ledger::{PurseId, Tag};

use super::directory::Standing;
use super::loaders::{LoaderId, Verdict};
use super::naming::{self, Found};

/// The longest sleep; a new loader wakes the resolver earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The first pause before a loader is looked at again, and the longest. Each is twice the
/// one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(300));
/// After so many looks a loader that its container does not name is nobody's: about an hour.
const MOST_LOOKS: u32 = 24;
/// Loaders between a child and the service it belongs to, at the most.
const MOST_PARENTS: u32 = 8;

/// When to look at a loader again.
struct Visit {
    at: Instant,
    pause: Duration,
    looks: u32,
}

impl Visit {
    fn first() -> Visit {
        Visit {
            at: Instant::now() + PAUSES.0,
            pause: PAUSES.0,
            looks: 1,
        }
    }

    fn next(&self) -> Visit {
        let pause = (self.pause * 2).min(PAUSES.1);
        Visit {
            at: Instant::now() + pause,
            pause,
            looks: self.looks + 1,
        }
    }
}

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni) {
    agent.resolver.listen();
    let mut resolver = Resolver {
        agent,
        visits: HashMap::new(),
    };
    while !agent.stopping() {
        while let Some(id) = agent.identity.new_loaders.pop() {
            resolver.meet(jni, id);
        }
        if agent.resolver.take_rescan() {
            for id in agent.identity.loaders.unmet() {
                resolver.meet(jni, id);
            }
        }
        let next = resolver.visit(jni);
        agent.costs.thread_is("resolver");
        agent.resolver.wait(next);
    }
}

struct Resolver {
    agent: &'static Agent,
    /// Loaders to look at again: those without a name yet, and those that tell when their
    /// service was stopped.
    visits: HashMap<LoaderId, Visit>,
}

impl Resolver {
    /// Enters a new loader and names it, if that can be done now. The queue says where to look;
    /// whether there is a loader to be met, its entry does.
    fn meet(&mut self, jni: &Jni, id: LoaderId) {
        if !self.enter(id) {
            return;
        }
        match self.upgrade(jni, id) {
            Some(loader) => self.introduce(jni, id, &loader),
            // Gone before it could be asked: what it allocated stays nobody's.
            None => self.settle(id, Standing::Nobody),
        }
    }

    /// Enters a loader in the directory; false if that was done, or its weak reference is still
    /// to be left by the thread that numbers it.
    fn enter(&mut self, id: LoaderId) -> bool {
        let loaders = &self.agent.identity.loaders;
        let Some(weak) = loaders.meet(id) else {
            return false;
        };
        // Of an earlier loader under this id.
        self.visits.remove(&id);
        // Until it is met, a loader is pending on its own purse.
        let purse = loaders.verdict(id).purse();
        self.agent
            .directory()
            .enter_loader(id, purse.unwrap_or(PurseId::UNACCOUNTED), Some(weak));
        true
    }

    fn introduce(&mut self, jni: &Jni, id: LoaderId, loader: &Local<'_>) {
        let agent = self.agent;
        let winner = match agent.tools.tag(loader).ok().and_then(Tag::decode) {
            Some(Tag::Loader(handle)) => agent.identity.loaders.of_tag(handle),
            _ => None,
        };
        match winner {
            Some(winner) if winner != id => {
                // Two threads numbered it at once; the tag is the other's. Threads may hold
                // this id until the loader dies, which only its reference will tell. The tag
                // was put on after this entry's own, so no twins are each other's children.
                self.settle(id, Standing::ChildOf(winner));
            }
            _ => self.look(jni, id, loader, MOST_PARENTS),
        }
    }

    /// Asks what a loader is and settles it.
    fn look(&mut self, jni: &Jni, id: LoaderId, loader: &Local<'_>, parents: u32) {
        let agent = self.agent;
        let standing = match naming::find(agent, jni, loader) {
            Found::Service(name) => {
                if name.tells_stop {
                    self.visits.insert(id, Visit::first());
                }
                Standing::Service(name)
            }
            Found::Nobody => Standing::Nobody,
            Found::ChildOf(_) if parents == 0 => Standing::Nobody,
            Found::ChildOf(parent) => {
                let parent_id = Sight { agent, jni }.loader(&parent);
                self.look_at_parent(jni, parent_id, &parent, parents - 1);
                match agent.identity.loaders.verdict(parent_id) {
                    Verdict::Nobody => Standing::Nobody,
                    _ => Standing::ChildOf(parent_id),
                }
            }
            Found::NotYet => {
                let visit = self.visits.get(&id).map_or_else(Visit::first, Visit::next);
                if visit.looks < MOST_LOOKS {
                    self.visits.insert(id, visit);
                    Standing::Pending
                } else {
                    Standing::Nobody
                }
            }
        };
        if standing == Standing::Nobody {
            self.visits.remove(&id);
        }
        self.settle(id, standing);
    }

    /// Settles the parent of a loader that is being looked at.
    fn look_at_parent(&mut self, jni: &Jni, id: LoaderId, loader: &Local<'_>, parents: u32) {
        let pending = matches!(self.agent.identity.loaders.verdict(id), Verdict::Pending(_));
        if pending && (self.enter(id) || self.agent.directory().loader(id).is_some()) {
            self.look(jni, id, loader, parents);
        }
    }

    /// Writes a standing down and lets allocating threads know. The limit of its account is the
    /// loader's from the warden's next round on.
    fn settle(&self, id: LoaderId, standing: Standing) {
        let agent = self.agent;
        let mut directory = agent.directory();
        let Some(own) = directory.loader(id).map(|l| l.purse) else {
            return;
        };
        let verdict = match &standing {
            Standing::Service(name) => {
                tracing::debug!(service = %name.name, "service found");
                Verdict::Service(own)
            }
            Standing::ChildOf(parent) => agent.identity.loaders.verdict(*parent),
            Standing::Nobody => Verdict::Nobody,
            Standing::Pending => Verdict::Pending(own),
        };
        directory.settle(id, standing);
        agent.identity.loaders.judge(id, verdict);
        // Children that were settled before their parent was named follow it.
        for child in directory.children(id) {
            agent.identity.loaders.judge(child, verdict);
        }
        agent.points.know_payers(&directory);
    }

    /// Looks at the loaders that are due; returns how long to sleep.
    fn visit(&mut self, jni: &Jni) -> Duration {
        let now = Instant::now();
        let due: Vec<LoaderId> = self
            .visits
            .iter()
            .filter(|(_, visit)| visit.at <= now)
            .map(|(&id, _)| id)
            .collect();
        for id in due {
            let standing = self
                .agent
                .directory()
                .loader(id)
                .map(|l| l.standing.clone());
            match (standing, self.upgrade(jni, id)) {
                (Some(Standing::Pending), Some(loader)) => {
                    self.look(jni, id, &loader, MOST_PARENTS);
                }
                (Some(Standing::Service(_)), Some(loader)) => {
                    if naming::is_stopped(&loader) {
                        self.agent.directory().retire(id);
                        self.visits.remove(&id);
                    } else if let Some(visit) = self.visits.get(&id).map(Visit::next) {
                        self.visits.insert(id, visit);
                    }
                }
                (standing, _) => {
                    self.visits.remove(&id);
                    if standing == Some(Standing::Pending) {
                        self.settle(id, Standing::Nobody);
                    }
                }
            }
        }
        self.visits
            .values()
            .map(|visit| visit.at.saturating_duration_since(now))
            .min()
            .map_or(LONGEST_SLEEP, |soonest| {
                soonest.clamp(Duration::from_millis(10), LONGEST_SLEEP)
            })
    }

    fn upgrade<'j>(&self, jni: &'j Jni, id: LoaderId) -> Option<Local<'j>> {
        self.agent
            .directory()
            .loader(id)?
            .weak
            .as_ref()?
            .upgrade(jni)
    }
}
