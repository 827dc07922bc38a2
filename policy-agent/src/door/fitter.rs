//! Fits doors: finds the classes of containers and inserts the question. On the loader thread.
//!
//! The agent never calls code of a service. So a class gets a door only if its loader belongs to no
//! service, or to the Spring Boot application whose server it is. Looking at a container's class does not
//! initialise it.
//!
//! A class is tried once. If something about it is not understood, the log has one line, and the class
//! stays as it is for good: its services over their limits get errors, as without a door. Tenants may make
//! classes of these names without end: so many are tried at the most, and each reason is told once.
//!
//! Another agent that transforms the class takes the question out: see [`crate::inserted`]. Then it is inserted
//! again, and if that does not last, the server has no door any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::Policy;
use policy_jvm::kinds::Class;
use policy_jvm::{Jni, Local, Ref, StaticMethod, Value, Weak};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::loaders::LoaderOwner;
use crate::identity::names::{Doors, Server};
use crate::inserted::{Inserted, State, Watch};
use crate::servers::{self, Point};

use super::at_method::MethodDoors;
use super::fitting::{self, Told};
use super::schedule::{Schedule, wants_doors};

/// The class of the Java half that prepares a door.
const DOORS: &str = "dev/heapwarden/agent/Doors";
/// Classes that are tried, of those that are loaded at a time.
const MAX_TRIED: usize = 64;
/// Reasons that are told.
const MAX_TOLD: usize = 16;

/// See the module. The loader thread owns it.
pub(crate) struct Fitter {
    /// Shared with the program's threads: the methods that have doors.
    method_doors: &'static MethodDoors,
    schedule: Schedule,
    /// The policy that was looked at last.
    policy: Option<Arc<Policy>>,
    wanted: bool,
    /// `Doors.fit`, once it was looked up; empty if no door can be fitted.
    java_half: Option<Option<StaticMethod>>,
    /// The classes that were tried.
    tried: Vec<Weak<Class>>,
    /// The questions that are in place.
    fitted: Vec<(Server, &'static Point, Inserted)>,
    watch: Watch,
    /// Why classes have no door, as the log has it.
    told: Told<MAX_TOLD>,
    doors: Doors,
}

impl Fitter {
    /// Has looked at nothing yet.
    pub(crate) fn new(method_doors: &'static MethodDoors) -> Fitter {
        Fitter {
            method_doors,
            schedule: Schedule::default(),
            policy: None,
            wanted: false,
            java_half: None,
            tried: Vec::new(),
            fitted: Vec::new(),
            watch: Watch::default(),
            told: Told::none(),
            doors: Doors::default(),
        }
    }

    /// A service in this server was named: its container's classes may be there now.
    pub(crate) fn service_named(&mut self, server: Server) {
        // Tenants can make loaders of any other sort without end.
        if self.wanted && server.has_requests() {
            self.schedule.begin(Instant::now());
        }
    }

    /// Looks for classes if it is time to, and fits doors to them. Returns how long it may be left alone.
    pub(crate) fn turn(&mut self, ground: &Ground, jni: &Jni) -> Duration {
        self.follow_policy(ground.policy.in_force());
        if self.schedule.take(Instant::now()) {
            match self.java_half.take() {
                None => self.java_half = Some(java_half(ground, jni)),
                known => self.java_half = known,
            }
            if matches!(self.java_half, Some(Some(_))) {
                self.look(ground, jni);
            } else {
                self.schedule.end();
            }
        }
        self.look_for_requests(ground);
        let now = Instant::now();
        let next = (self.schedule.wait(now)).unwrap_or(Duration::MAX);
        if !self.wanted || self.fitted.is_empty() {
            return next;
        }
        let matters = ground.core.any_shut();
        if self.watch.take(now, matters) {
            self.look_after_doors(ground, jni);
        }
        next.min(self.watch.wait(now, matters))
    }

    /// Counts the doors of libraries at which the first request has come.
    fn look_for_requests(&mut self, ground: &Ground) {
        let begun: Vec<_> = (self.fitted.iter())
            .filter(|(server, ..)| !self.doors.has(*server) && ground.serving.has(*server))
            .map(|(server, point, _)| (*server, *point))
            .collect();
        for (server, point) in begun {
            if !self.doors.has(server) {
                self.fitted(ground, server, point);
            }
        }
    }

    /// Inserts questions again that another agent has taken out.
    fn look_after_doors(&mut self, ground: &Ground, jni: &Jni) {
        let mut lost = Vec::new();
        self.fitted.retain_mut(|(server, point, question)| {
            match question.state(&ground.jvmti, jni) {
                State::There => return true,
                State::Gone => return false,
                State::Lost => {}
            }
            let is_back = question.renew(&ground.jvmti, jni, |class| insert(ground, jni, point, class).is_ok());
            if is_back {
                tracing::warn!(
                    "another agent has changed the class in which {} has its door: the door is there again",
                    point.name
                );
            } else {
                lost.push((*server, *point));
            }
            is_back
        });
        for (server, point) in lost {
            tracing::warn!(
                "another agent changes the class in which {} has its door, again and again: it has no door any more, and errors are thrown as with door = \"off\"",
                point.name
            );
            ground.serving.ended(server.number());
            self.set_door(ground, server, false);
        }
    }

    /// Begins to look if a new policy wants doors.
    fn follow_policy(&mut self, policy: Arc<Policy>) {
        if (self.policy.as_ref()).is_some_and(|known| Arc::ptr_eq(known, &policy)) {
            return;
        }
        self.wanted = wants_doors(&policy);
        self.policy = Some(policy);
        if self.wanted {
            self.schedule.begin(Instant::now());
        } else {
            self.schedule.end();
        }
    }

    /// One pass over the loaded classes.
    fn look(&mut self, ground: &Ground, jni: &Jni) {
        let (gone, tried): (Vec<_>, Vec<_>) =
            (self.tried.drain(..)).partition(|class| jni.is_cleared(class));
        self.tried = tried;
        for class in gone {
            jni.release(class);
        }
        let mut found: Vec<Weak<Class>> = Vec::new();
        let mut is_any_pending = false;
        let mut loaded: BTreeSet<&'static str> = BTreeSet::new();
        ground.jvmti.each_loaded_class(jni, |jni, class| {
            let Ok(signature) = ground.jvmti.signature_of(class) else {
                return;
            };
            let needs = servers::points().filter_map(|(_, point)| point.needs);
            loaded.extend(needs.filter(|needed| *needed == signature));
            if servers::points().any(|(_, point)| point.class == signature)
                && self.tried.len() + found.len() < MAX_TRIED
                && !self.tried.iter().any(|tried| tried.refers_to(jni, class))
            {
                match may_have_door(ground, jni, class) {
                    May::Yes => found.extend(class.weak()),
                    May::NotYet => is_any_pending = true,
                    May::No => {}
                }
            }
        });
        if is_any_pending {
            self.schedule.soon();
        }
        for weak in found {
            if let Some(class) = weak.upgrade(jni)
                && let Some((server, point)) = point_of(ground, &class)
            {
                if point.needs.is_some_and(|needed| !loaded.contains(needed)) {
                    jni.release(weak);
                    continue;
                }
                match self.fit(ground, jni, (server, point), &class) {
                    Ok(()) => self.fitted(ground, server, point),
                    // A class that the door needs may be there for others.
                    Err(why) if point.needs.is_some() || is_of_fork(ground, jni, point) => {
                        tracing::debug!("no door for {}, which has none here: {why}", point.name);
                    }
                    Err(why) => self.told.warn(&format!(
                        "{} gets no door: {why}; requests for its services over their limits are not turned away, and errors are thrown as with door = \"off\"",
                        point.name
                    )),
                }
            }
            self.tried.push(weak);
        }
    }

    /// Fits a door to a class.
    fn fit(
        &mut self,
        ground: &Ground,
        jni: &Jni,
        (server, point): (Server, &'static Point),
        class: &Local<'_, Class>,
    ) -> Result<(), String> {
        let Some(Some(prepare)) = &self.java_half else {
            return Err("the agent's Java half is missing".to_owned());
        };
        let (name, file) = point.guard().map_err(|why| why.to_string())?;
        let guard = jni.define_beside(&ground.jvmti, class, &name, &file);
        let guard = guard.ok_or(
            "its class loader does not take the class that is asked, or has it for another server",
        )?;
        let door =
            (jni.define_in_boot(&ground.jvmti, &point.door)).map_err(|why| why.to_string())?;
        let values = [
            Value::object(&guard),
            Value::object(class),
            Value::object(&door),
            Value::int(if server.is_library() {
                server.number().cast_signed()
            } else {
                -1
            }),
        ];
        if prepare.boolean(jni, &values) != Some(true) {
            return Err("its classes are not those of a release that is known, or its module does not let the agent in".to_owned());
        }
        insert(ground, jni, point, class)?;
        let method = (point.method, point.descriptors);
        let question = Inserted::find(&ground.jvmti, jni, class, method, point.loads);
        if let Some(question) = &question {
            self.method_doors.server_has_door(question.method());
        }
        self.fitted
            .extend(question.map(|question| (server, point, question)));
        Ok(())
    }

    /// A door was fitted: the enforcer may shut it from now on, or from the first request on.
    fn fitted(&mut self, ground: &Ground, server: Server, point: &Point) {
        if server.is_library() && !ground.serving.has(server) {
            tracing::debug!("{} has a door, at which nobody has asked yet", point.name);
            return;
        }
        self.set_door(ground, server, true);
        tracing::info!(
            "{} has a door: new requests for its services over their limits are turned away there",
            point.name
        );
    }

    fn set_door(&mut self, ground: &Ground, server: Server, has_door: bool) {
        self.doors.set(server, has_door);
        ground.core.directory().set_doors(self.doors);
        ground.core.enforcer.wake();
    }
}

/// The point in a class: the first that has its method. Releases and forks of a server may have given one class
/// name different methods; a class with none of them is told of as the first's.
fn point_of(ground: &Ground, class: &Ref<'_, Class>) -> Option<(Server, &'static Point)> {
    let signature = ground.jvmti.signature_of(class).ok()?;
    let has = |point: &Point| {
        (ground.jvmti)
            .held_method(class, point.method, point.descriptors)
            .is_some()
    };
    let mut candidates = servers::points().filter(|(_, point)| point.class == signature);
    let first = candidates.next()?;
    match has(first.1) {
        true => Some(first),
        false => Some(candidates.find(|(_, point)| has(point)).unwrap_or(first)),
    }
}

/// Whether a fork of the server is there, which has another door. Its classes are loaded once a door was tried.
fn is_of_fork(ground: &Ground, jni: &Jni, point: &Point) -> bool {
    let mut is_there = false;
    if let Some(fork) = point.fork {
        ground.jvmti.each_loaded_class(jni, |_, class| {
            is_there |= ground
                .jvmti
                .signature_of(class)
                .is_ok_and(|name| name == fork);
        });
    }
    is_there
}

/// Inserts the question into a class whose guard has its door.
fn insert(
    ground: &Ground,
    jni: &Jni,
    point: &'static Point,
    class: &Ref<'_, Class>,
) -> Result<(), String> {
    fitting::rewrite(ground, jni, class, move |file| {
        let file = point.insert(file).map_err(|why| why.to_string())?;
        Ok((Some(file), ()))
    })
}

/// `Doors.fit`. If no door can be fitted in this JVM, the log says why.
fn java_half(ground: &Ground, jni: &Jni) -> Option<StaticMethod> {
    let found = fitting::is_possible(ground).and_then(|()| {
        // By its loader: an application may have a class of this name.
        jni.boot_class(DOORS)
            .filter(|class| matches!(ground.jvmti.loader_of(jni, class), Ok(None)))
            .and_then(|class| {
                class.static_method(
                    "fit",
                    "(Ljava/lang/Class;Ljava/lang/Class;Ljava/lang/Class;I)Z",
                )
            })
            .ok_or("a class of the agent's Java half is missing")
    });
    if let Err(why) = found {
        tracing::warn!(
            "services have no doors: {why}; requests for services over their limits are not turned away, and errors are thrown as with door = \"off\""
        );
    }
    found.ok()
}

/// Whether a class is a container's, by its loader: see the module. A loader that was not named yet is
/// asked about again.
fn may_have_door(ground: &Ground, jni: &Jni, class: &Ref<'_, Class>) -> May {
    let Ok(loader) = ground.jvmti.loader_of(jni, class) else {
        return May::No;
    };
    // Its methods tell which point it has, and show once it is linked.
    let yes = match ground.jvmti.is_linked(class) {
        true => May::Yes,
        false => May::NotYet,
    };
    let Some(loader) = loader else {
        return yes;
    };
    let id = Recognizer { ground, jni }.loader(&loader);
    match ground.core.identity.loaders.owner(id) {
        // A server that is embedded in a program has its classes from the class path.
        LoaderOwner::Nobody | LoaderOwner::Program(_) => yes,
        LoaderOwner::Pending(_) => May::NotYet,
        LoaderOwner::Service(_) if ground.core.directory().is_spring_boot_application(id) => yes,
        LoaderOwner::Service(_) => May::No,
    }
}

/// Whether a class may get a door.
enum May {
    Yes,
    No,
    /// It is not known yet whose the loader is, or which methods the class has.
    NotYet,
}
