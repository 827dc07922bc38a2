//! Puts the doors of the policy at methods, and takes them out. On the loader thread.
//!
//! Loaded classes are found by one pass when a policy names them; a class that is loaded later is told in its
//! preparation ([`super::at_method`]), so that it has its doors some milliseconds after its first code can run. Only
//! linked classes are changed: to link one would run code of its loader on this thread.
//!
//! A class whose code another agent loads anew loses its doors: see [`crate::inserted`]. They are put in again, and
//! if that does not last, the class is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{DoorMethod, Limit, Matcher, Mode, Policy};
use policy_jvm::kinds::Class;
use policy_jvm::{ClassFile, Global, HeldMethod, Jni, Ref, StaticMethod, Value, Weak};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::loaders::LoaderId;
use crate::identity::names::java_name;
use crate::inserted::{State, Watch};
use crate::ledger::PurseId;
use crate::servers;

use super::at_method::{MethodDoor, MethodDoors, Table};
use super::fitting::{self, Told};
use super::method_edit::{self, DOOR, FIRST_NUMBER, LAST_NUMBER, Named};

const DOOR_FILE: ClassFile = ClassFile::new(
    DOOR,
    include_bytes!("../../java/classes/java/lang/HeapwardenDoor.class"),
);
const JAVA_HALF: ClassFile = ClassFile::new(
    "dev/heapwarden/agent/MethodDoor",
    include_bytes!("../../java/classes/dev/heapwarden/agent/MethodDoor.class"),
);

/// Classes of one name that get doors, and classes in all: each loader may have one.
const MAX_OF_A_NAME: usize = 64;
const MAX_CLASSES: usize = 256;
/// Lines in the log about what has no door, and about what has one.
const MAX_TOLD: usize = 32;
const MAX_ANNOUNCED: usize = 64;
/// How often doors are put in again that another agent has taken out.
const MAX_RENEWALS: u32 = 8;
const LONGEST: Duration = Duration::MAX;

/// The methods that a policy names, by the signature of their class.
type Wanted = BTreeMap<String, BTreeSet<String>>;

/// A class with doors.
struct Fitted {
    class: Weak<Class>,
    signature: String,
    loader: LoaderId,
    doors: Vec<Named>,
    /// The methods that ask, each with the number of its door.
    methods: Vec<(HeldMethod, i32)>,
    renewals: u32,
}

/// See the module. The loader thread owns it.
pub(crate) struct MethodFitter {
    /// Shared with the program's threads: the methods that have doors.
    method_doors: &'static MethodDoors,
    policy: Option<Arc<Policy>>,
    wanted: Wanted,
    /// Whether doors can be fitted in this JVM, once that is known.
    is_possible: Option<bool>,
    /// Who is asked.
    asked: Option<Asked>,
    /// Classes with doors, and those that were tried in vain.
    classes: Vec<Fitted>,
    next_number: i32,
    watch: Watch,
    told: Told<MAX_TOLD>,
    /// Doors that the log has named.
    announced: Told<MAX_ANNOUNCED>,
}

impl MethodFitter {
    /// Has looked at nothing yet.
    pub(crate) fn new(method_doors: &'static MethodDoors) -> MethodFitter {
        MethodFitter {
            method_doors,
            policy: None,
            wanted: Wanted::new(),
            is_possible: None,
            asked: None,
            classes: Vec::new(),
            next_number: FIRST_NUMBER,
            watch: Watch::default(),
            told: Told::none(),
            announced: Told::none(),
        }
    }

    /// Follows the policy, and fits doors to what was loaded. Returns how long it may be left alone.
    pub(crate) fn turn(&mut self, ground: &Ground, jni: &Jni) -> Duration {
        let mut has_changed = self.follow_policy(ground, jni);
        while let Some(class) = self.method_doors.take_prepared() {
            if let Some(class) = class.upgrade(jni) {
                has_changed |= self.meet(ground, jni, &class);
            }
            jni.release(class);
        }
        if self.method_doors.take_missed() && self.is_possible == Some(true) {
            has_changed |= self.look(ground, jni);
        }
        if has_changed {
            self.publish(ground, jni);
        }
        let now = Instant::now();
        if self.classes.is_empty() {
            return LONGEST;
        }
        let matters = ground.core.any_shut();
        if self.watch.take(now, matters) {
            self.look_after(ground, jni);
        }
        self.watch.wait(now, matters)
    }

    // ---- the policy --------------------------------------------------------------------

    fn follow_policy(&mut self, ground: &Ground, jni: &Jni) -> bool {
        let policy = ground.policy.in_force();
        if (self.policy.as_ref()).is_some_and(|known| Arc::ptr_eq(known, &policy)) {
            return false;
        }
        self.wanted = wanted(&policy);
        self.policy = Some(policy);
        if self.wanted.is_empty() && self.classes.is_empty() {
            self.method_doors.want(Vec::new());
            return false;
        }
        if self.is_possible.is_none() {
            self.is_possible = Some(self.prepare(ground, jni));
        }
        if self.is_possible != Some(true) {
            return false;
        }
        // First: a class that is prepared while the loaded ones are looked at is told.
        let signatures = self.wanted.keys().cloned().collect();
        self.method_doors.want(signatures);
        self.forget_unloaded(jni);
        // Classes that have other doors by the new policy are fitted anew.
        for fitted in std::mem::take(&mut self.classes) {
            let names: BTreeSet<&str> = fitted.doors.iter().map(|d| d.method.as_str()).collect();
            let wanted = self.wanted.get(&fitted.signature);
            let is_same = wanted.is_some_and(|wanted| {
                names.len() == wanted.len() && wanted.iter().all(|name| names.contains(&**name))
            });
            if is_same {
                self.classes.push(fitted);
                continue;
            }
            if wanted.is_none()
                && let Some(class) = fitted.class.upgrade(jni)
            {
                take_out(ground, jni, &class);
            }
            jni.release(fitted.class);
        }
        self.look(ground, jni);
        // Accounts may have other purses under another policy.
        true
    }

    /// Defines what inserted code asks. If that is not possible, the log says why.
    fn prepare(&mut self, ground: &Ground, jni: &Jni) -> bool {
        match prepare(ground, jni) {
            Ok(asked) => {
                self.asked = Some(asked);
                true
            }
            Err(why) => {
                self.told.warn(&format!(
                    "methods get no doors: {why}; accounts that name some in `door` are refused by errors alone"
                ));
                false
            }
        }
    }

    // ---- classes -----------------------------------------------------------------------

    fn forget_unloaded(&mut self, jni: &Jni) {
        for fitted in std::mem::take(&mut self.classes) {
            match jni.is_cleared(&fitted.class) {
                true => jni.release(fitted.class),
                false => self.classes.push(fitted),
            }
        }
    }

    /// One pass over the loaded classes. Whether any was fitted.
    fn look(&mut self, ground: &Ground, jni: &Jni) -> bool {
        if self.wanted.is_empty() {
            return false;
        }
        let mut found: Vec<Weak<Class>> = Vec::new();
        ground.jvmti.each_loaded_class(jni, |_, class| {
            let signature = ground.jvmti.signature_of(class);
            if found.len() < MAX_CLASSES
                && signature.is_ok_and(|signature| self.wanted.contains_key(&signature))
            {
                found.extend(class.weak());
            }
        });
        let mut has_changed = false;
        for weak in found {
            if let Some(class) = weak.upgrade(jni) {
                has_changed |= self.meet(ground, jni, &class);
            }
            jni.release(weak);
        }
        has_changed
    }

    /// Fits the doors of a class that the policy may name, unless it was done. Whether it was fitted.
    fn meet(&mut self, ground: &Ground, jni: &Jni, class: &Ref<'_, Class>) -> bool {
        let Ok(signature) = ground.jvmti.signature_of(class) else {
            return false;
        };
        let Some(methods) = self.wanted.get(&signature).cloned() else {
            return false;
        };
        // One that is not linked is told when it is.
        if !ground.jvmti.is_linked(class)
            || (self.classes.iter()).any(|fitted| fitted.class.refers_to(jni, class))
        {
            return false;
        }
        self.forget_unloaded(jni);
        let of_the_name = self.classes.iter().filter(|f| f.signature == signature);
        if of_the_name.count() >= MAX_OF_A_NAME || self.classes.len() >= MAX_CLASSES {
            self.told.warn(&format!(
                "more classes are called {} than get doors: calls of those that are left are not turned away",
                java_name(&signature)
            ));
            return false;
        }
        let Some(weak) = class.weak() else {
            return false;
        };
        let doors = self.number(methods);
        let loader = match ground.jvmti.loader_of(jni, class) {
            Ok(Some(loader)) => Recognizer { ground, jni }.loader(&loader),
            _ => LoaderId::BOOT,
        };
        let methods = match self.fit(ground, jni, class, &signature, &doors) {
            Ok(methods) => methods,
            Err(why) => {
                self.told.warn(&format!(
                    "{} gets no door: {why}; its calls are not turned away",
                    java_name(&signature)
                ));
                Vec::new()
            }
        };
        // Kept also without a door: it is tried once under a policy.
        self.classes.push(Fitted {
            class: weak,
            signature,
            loader,
            doors,
            methods,
            renewals: 0,
        });
        true
    }

    /// Gives doors the next numbers that no class has.
    fn number(&mut self, methods: BTreeSet<String>) -> Vec<Named> {
        let taken: BTreeSet<i32> = (self.classes.iter())
            .flat_map(|fitted| fitted.doors.iter().map(|door| door.number))
            .collect();
        let from = self.next_number;
        let numbers = (from..=LAST_NUMBER).chain(FIRST_NUMBER..from);
        let doors: Vec<Named> = (methods.into_iter())
            .zip(numbers.filter(|number| !taken.contains(number)))
            .map(|(method, number)| Named { method, number })
            .collect();
        let last = doors.last().map_or(from, |door| door.number);
        self.next_number = if last < LAST_NUMBER {
            last + 1
        } else {
            FIRST_NUMBER
        };
        doors
    }

    fn fit(
        &mut self,
        ground: &Ground,
        jni: &Jni,
        class: &Ref<'_, Class>,
        signature: &str,
        doors: &[Named],
    ) -> Result<Vec<(HeldMethod, i32)>, String> {
        if servers::points().any(|(_, point)| point.class == signature) {
            return Err("it has the door of its server".to_owned());
        }
        if signature.starts_with("Ljava/lang/") || signature.starts_with("Ldev/heapwarden/") {
            return Err("doors are asked with it".to_owned());
        }
        let edited = rewrite(ground, jni, class, doors)?;
        let name = java_name(signature);
        for missing in &edited.missing {
            self.told.warn(&format!(
                "{name} has no method {missing} with code: its door there is missing"
            ));
        }
        for (method, why) in &edited.left {
            self.told
                .warn(&format!("{name}#{method} gets no door: {why}"));
        }
        let methods = asking(ground, jni, class, doors);
        for door in doors {
            let count = methods.iter().filter(|(_, n)| *n == door.number).count();
            if count > 0 {
                self.tell_door(&format!("{name}#{}", door.method), count);
            }
        }
        Ok(methods)
    }

    /// Puts doors in again that another agent has taken out.
    fn look_after(&mut self, ground: &Ground, jni: &Jni) {
        self.forget_unloaded(jni);
        let mut lost = Vec::new();
        let mut back = Vec::new();
        for (place, fitted) in self.classes.iter_mut().enumerate() {
            if state(ground, jni, &fitted.methods) != State::Lost {
                continue;
            }
            fitted.renewals += 1;
            let class = fitted.class.upgrade(jni);
            let class = class.filter(|_| fitted.renewals <= MAX_RENEWALS);
            let renewed = class.filter(|class| rewrite(ground, jni, class, &fitted.doors).is_ok());
            let name = java_name(&fitted.signature);
            match renewed {
                Some(class) => {
                    fitted.methods = asking(ground, jni, &class, &fitted.doors);
                    back.push(name);
                }
                None => {
                    fitted.methods.clear();
                    lost.push((place, name));
                }
            }
        }
        for name in &back {
            self.told.warn(&format!(
                "another agent has changed {name}: its doors are there again"
            ));
        }
        for (_, name) in &lost {
            self.told.warn(&format!(
                "another agent changes {name} again and again: it has no doors any more"
            ));
        }
        if !(back.is_empty() && lost.is_empty()) {
            self.publish(ground, jni);
        }
    }

    // ---- what others read ----------------------------------------------------------------

    /// Tells threads of the program which doors there are, and the enforcer which accounts have one.
    fn publish(&self, ground: &Ground, jni: &Jni) {
        let mut table = Table::default();
        let mut fitted_methods: Vec<DoorMethod> = Vec::new();
        for fitted in &self.classes {
            for door in &fitted.doors {
                let has_door = |(_, number): &&(HeldMethod, i32)| *number == door.number;
                let ids = fitted.methods.iter().filter(has_door);
                let place = table.doors.len();
                let before = table.methods.len();
                (table.methods).extend(ids.map(|(method, _)| (method.id().key(), place)));
                if table.methods.len() == before {
                    continue;
                }
                let method = DoorMethod {
                    class: java_name(&fitted.signature),
                    method: door.method.clone(),
                };
                if !fitted_methods.contains(&method) {
                    fitted_methods.push(method.clone());
                }
                table.doors.push(Arc::new(MethodDoor {
                    number: door.number,
                    packages: self.packages(ground, &method),
                    method: Arc::new(method),
                    loader: fitted.loader,
                }));
            }
        }
        table.doors.sort_by_key(|door| door.number);
        self.method_doors.publish(table);
        // Their accounts may be others, and so their routes: whoever is asked from now on knows none.
        if let Some(asked) = &self.asked
            && !asked.renew(jni)
        {
            tracing::debug!("routes of doors at methods are those of an earlier policy");
        }
        fitted_methods
            .sort_by(|one, other| (&one.class, &one.method).cmp(&(&other.class, &other.method)));
        ground.core.directory().set_method_doors(fitted_methods);
        ground.core.enforcer.wake();
    }

    /// The purses of the accounts of packages that name a method.
    fn packages(&self, ground: &Ground, method: &DoorMethod) -> Vec<PurseId> {
        let Some(policy) = &self.policy else {
            return Vec::new();
        };
        let directory = ground.core.directory();
        (policy.accounts.iter().enumerate())
            .filter(|(_, account)| {
                matches!(account.matcher, Matcher::Packages(_))
                    && account.door.methods().contains(method)
            })
            .filter_map(|(rule, _)| directory.package_purse(rule))
            .collect()
    }

    fn tell_door(&mut self, name: &str, methods: usize) {
        let line = format!("{name} has a door, in {methods} method(s)");
        self.announced.info(&line);
    }
}

/// The methods that a policy names in accounts with a limit that is enforced.
fn wanted(policy: &Policy) -> Wanted {
    let mut wanted = Wanted::new();
    if policy.enforcement.mode != Mode::Enforce {
        return wanted;
    }
    let limited = (policy.accounts.iter()).filter(|account| account.limit != Limit::None);
    for method in limited.flat_map(|account| account.door.methods()) {
        let signature = format!("L{};", method.class.replace('.', "/"));
        wanted
            .entry(signature)
            .or_default()
            .insert(method.method.clone());
    }
    wanted
}

/// Who is asked by inserted code.
struct Asked {
    half: Global<Class>,
    install: StaticMethod,
}

impl Asked {
    /// Has inserted code ask an object of the Java half that knows nothing yet. False if that failed.
    fn renew(&self, jni: &Jni) -> bool {
        let half = self.half.local(jni);
        let both = half.and_then(|half| jni.static_object(&half, "make", "()Ljava/lang/Object;"));
        both.is_some_and(|both| self.install.run(jni, &[Value::object(&both)]))
    }
}

/// Defines the class that inserted code asks, and has it ask the Java half.
fn prepare(ground: &Ground, jni: &Jni) -> Result<Asked, String> {
    fitting::is_possible(ground)?;
    let half = jni.define_in_boot(&ground.jvmti, &JAVA_HALF);
    let half = half.map_err(|why| why.to_string())?;
    let door = jni.define_in_boot(&ground.jvmti, &DOOR_FILE);
    let door = door.map_err(|why| why.to_string())?;
    let install = door.static_method("install", "(Ljava/lang/Object;)V");
    let asked = (half.global().zip(install)).map(|(half, install)| Asked { half, install });
    asked
        .filter(|asked| asked.renew(jni))
        .ok_or_else(|| "a method of the agent's Java half is missing".to_owned())
}

/// Puts the doors into a class.
fn rewrite(
    ground: &Ground,
    jni: &Jni,
    class: &Ref<'_, Class>,
    doors: &[Named],
) -> Result<method_edit::Edited, String> {
    let doors: Arc<[Named]> = doors.into();
    fitting::rewrite(ground, jni, class, move |file| {
        let edited = method_edit::insert(file, &doors);
        let mut edited = edited.map_err(|why| format!("its class file: {why}"))?;
        Ok((edited.file.take(), edited))
    })
}

/// Gives a class its code back as others have left it.
fn take_out(ground: &Ground, jni: &Jni, class: &Ref<'_, Class>) {
    ground.kept_edits.forget(jni, class);
    if ground.jvmti.is_linked(class)
        && let Err(failure) = ground.jvmti.rewrite(jni, class, &mut |_| None)
    {
        // It asks, and is let in: its door has no account any more.
        tracing::debug!(%failure, "a door stays in its class");
    }
}

/// The methods of a class that ask at these doors.
fn asking(
    ground: &Ground,
    jni: &Jni,
    class: &Ref<'_, Class>,
    doors: &[Named],
) -> Vec<(HeldMethod, i32)> {
    let methods = doors.iter().flat_map(|door| {
        let named = ground.jvmti.held_methods_with_code(class, &door.method);
        named.into_iter().map(|method| (method, door.number))
    });
    methods
        .filter(|(method, number)| {
            let method = method.upgrade(&ground.jvmti, jni);
            let code = method.and_then(|method| method.bytecodes());
            code.is_some_and(|code| method_edit::asks(&code, *number))
        })
        .collect()
}

/// Whether the methods ask still. A code that the JVM does not show counts as changed by nobody.
fn state(ground: &Ground, jni: &Jni, methods: &[(HeldMethod, i32)]) -> State {
    for (method, number) in methods {
        let Some(method) = method.upgrade(&ground.jvmti, jni) else {
            return State::Gone;
        };
        let code = method.bytecodes();
        if code.is_some_and(|code| !method_edit::asks(&code, *number)) {
            return State::Lost;
        }
    }
    State::There
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_only_when_their_class_is_gone() {
        let names = |count: usize| (0..count).map(|one| format!("m{one}")).collect();
        let mut fitter = MethodFitter::new(Box::leak(Box::new(MethodDoors::new())));
        let numbers = |doors: Vec<Named>| -> Vec<i32> { doors.iter().map(|d| d.number).collect() };
        assert_eq!(
            numbers(fitter.number(names(2))),
            [FIRST_NUMBER, FIRST_NUMBER + 1]
        );
        fitter.next_number = LAST_NUMBER;
        assert_eq!(
            numbers(fitter.number(names(2))),
            [LAST_NUMBER, FIRST_NUMBER]
        );
        assert_eq!(numbers(fitter.number(names(1))), [FIRST_NUMBER + 1]);
    }

    #[test]
    fn methods_of_enforced_limits_are_wanted_by_class() {
        let of = |mode: &str, account: &str| {
            let text = format!("[enforcement]\nmode = \"{mode}\"\n[[account]]\n{account}\n");
            wanted(&policy_config::parse(&text).policy.expect("a valid policy"))
        };
        let account = "name = \"a\"\npackages = [\"a.b.*\"]\nlimit = \"1MiB\"\ndoor = [\"a.b.C$D#run\", \"a.b.C$D#call\", \"a.E#m\"]";
        let wanted = of("enforce", account);
        let found: Vec<_> = (wanted.iter())
            .map(|(class, methods)| (&**class, methods.len()))
            .collect();
        assert_eq!(found, [("La/E;", 1), ("La/b/C$D;", 2)]);
        assert!(of("observe", account).is_empty());
        let without = account.replace("limit = \"1MiB\"\n", "");
        assert!(of("enforce", &without).is_empty());
    }
}
