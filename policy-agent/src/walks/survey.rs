//! The JVM's classes, threads and class loaders, which a walk has to know, and the names for what it found.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use policy_jvm::forked_walk::{KnownClass, MAX_HOLDERS, Path, RootKind, Via};
use policy_jvm::kinds::Class;
use policy_jvm::{HeapField, Jni, Ref};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::attribution::Claim;
use crate::identity::classes::ClassId;
use crate::identity::directory::LoaderIdentity;
use crate::identity::loaders::LoaderId;
use crate::identity::names::java_name;
use crate::ledger::{PurseId, Tag};

use super::targets::Wanted;

/// Classes of the JDK whose instances refer to nothing that matters.
const LEAVES: [&str; 9] = [
    "Ljava/lang/Object;",
    "Ljava/lang/Boolean;",
    "Ljava/lang/Byte;",
    "Ljava/lang/Short;",
    "Ljava/lang/Character;",
    "Ljava/lang/Integer;",
    "Ljava/lang/Long;",
    "Ljava/lang/Float;",
    "Ljava/lang/Double;",
];
/// Classes whose `referent` does not keep its object alive.
const WEAK: [&str; 3] = [
    "java/lang/ref/WeakReference",
    "java/lang/ref/PhantomReference",
    "java/lang/ref/FinalReference",
];
/// How many parents of a loader are followed.
const MAX_PARENTS: u32 = 8;

/// The demands of a walk on a survey.
pub(super) struct Asks {
    /// Static fields of retired services are no roots.
    retired: bool,
    /// A string is not looked into.
    strings_are_leaves: bool,
    /// The accounts that are to be told apart as holders, most important first.
    holders: Option<Vec<Arc<str>>>,
}

impl Asks {
    pub(super) fn of_paths(retired: bool, wanted: &Wanted) -> Asks {
        let in_strings = ["byte[]", "char[]", "?"];
        Asks {
            retired,
            strings_are_leaves: !in_strings.iter().any(|class| wanted.has_class(class)),
            // Of a walk in place the first stop may be what these hold.
            holders: (!retired).then(|| wanted.accounts()),
        }
    }

    pub(super) fn of_holders(largest: Vec<Arc<str>>) -> Asks {
        Asks {
            retired: false,
            strings_are_leaves: false,
            holders: Some(largest),
        }
    }
}

/// The JVM as a walk will meet it. While it exists, threads carry tags; dropping it takes them off.
pub(super) struct Survey<'a> {
    ground: &'a Ground,
    jni: &'a Jni,
    classes: Vec<KnownClass>,
    /// Threads by tag, and by id.
    threads: HashMap<i64, String>,
    threads_by_id: HashMap<i64, String>,
    /// The holder of each thread and loader.
    owned: BTreeMap<i64, u8>,
    /// The holders by number; the first is everybody else.
    holders: Vec<Arc<str>>,
}

/// Finds the number of an account's holder.
struct Numbers {
    of_purse: HashMap<PurseId, Arc<str>>,
    of_account: HashMap<Arc<str>, u8>,
}

impl Numbers {
    fn of(&self, purse: Option<PurseId>) -> u8 {
        let account = purse.and_then(|purse| self.of_purse.get(&purse));
        let number = account.and_then(|account| self.of_account.get(account));
        number.copied().unwrap_or(0)
    }
}

impl<'a> Survey<'a> {
    /// Looks at all classes and threads, and gives each a tag that has none. On an attached thread of the agent;
    /// some tens of milliseconds, in which nobody waits.
    pub(super) fn make(ground: &'a Ground, jni: &'a Jni, asks: &Asks) -> Survey<'a> {
        let mut holders: Vec<Arc<str>> = vec![crate::report::UNACCOUNTED.into()];
        let named = asks.holders.iter().flatten();
        holders.extend(named.take(usize::from(MAX_HOLDERS) - 1).cloned());
        let numbers = Numbers {
            of_purse: ground.core.directory().accounts_of_purses(),
            of_account: (holders.iter().skip(1).cloned()).zip(1..).collect(),
        };
        let retired = if asks.retired {
            retired_family(ground)
        } else {
            HashSet::new()
        };
        let mut survey = Survey {
            ground,
            jni,
            classes: Vec::new(),
            threads: HashMap::new(),
            threads_by_id: HashMap::new(),
            owned: BTreeMap::new(),
            holders,
        };
        let weak: Vec<_> = WEAK
            .iter()
            .filter_map(|name| jni.boot_class(name)?.global())
            .collect();
        ground.jvmti.each_loaded_class(jni, |jni, class| {
            let is_weak = weak.iter().any(|weak| match weak.local(jni) {
                Some(weak) => weak.is_super_of(class),
                None => false,
            });
            survey.enter_class(jni, class, is_weak, asks, &numbers, &retired);
        });
        survey.enter_threads(&numbers);
        survey
    }

    fn enter_class(
        &mut self,
        jni: &Jni,
        class: &Ref<'_, Class>,
        is_weak: bool,
        asks: &Asks,
        numbers: &Numbers,
        retired: &HashSet<LoaderId>,
    ) {
        let ground = self.ground;
        let id = Recognizer { ground, jni }.class(class);
        let classes = &ground.core.identity.classes;
        let (Some(tag), Ok(signature)) = (classes.tag(id), ground.jvmti.signature_of(class)) else {
            return;
        };
        if id == ClassId::UNKNOWN {
            return;
        }
        let loader = classes.loader(id);
        let is_primitives = signature.len() == 2 && signature.starts_with('[');
        let is_string = signature == "Ljava/lang/String;" && asks.strings_are_leaves;
        let weak_field = is_weak.then(|| {
            let fields = ground.jvmti.heap_fields(jni, class);
            let referent = |field: &HeapField| {
                field.name == "referent" && field.declared_by == "Ljava/lang/ref/Reference;"
            };
            fields.iter().position(referent).map(|index| index as u32)
        });
        let owner = self.owner_of_class(id, loader);
        self.classes.push(KnownClass {
            tag,
            is_class: signature == "Ljava/lang/Class;",
            is_root: !retired.contains(&loader),
            is_of_boot_loader: loader == LoaderId::BOOT,
            is_leaf: is_primitives || is_string || LEAVES.contains(&&*signature),
            weak_field: weak_field.flatten(),
            holder: numbers.of(owner),
        });
        if asks.holders.is_some()
            && loader != LoaderId::BOOT
            && let Some(tag) = ground.core.identity.loaders.tag(loader)
        {
            let of_loader = ground.core.identity.loaders.owner(loader).any_purse();
            self.owned.insert(tag, numbers.of(of_loader));
        }
    }

    /// The purse of the account to which the code of a class belongs.
    fn owner_of_class(&self, id: ClassId, loader: LoaderId) -> Option<PurseId> {
        let identity = &self.ground.core.identity;
        match identity.classes.claim(id, identity.view().1) {
            Claim::Account(purse) | Claim::Library(purse) => Some(purse),
            Claim::Nobody | Claim::Program(_) => identity.loaders.owner(loader).any_purse(),
        }
    }

    fn enter_threads(&mut self, numbers: &Numbers) {
        let (ground, mut next) = (self.ground, 0);
        let Some(java) = ground.java() else { return };
        ground.jvmti.each_thread(self.jni, |jni, thread| {
            let name = java.thread_name(thread);
            (self.threads_by_id).insert(java.thread_id(thread), name.clone());
            let tag = match ground.jvmti.tag(thread) {
                Ok(0) => {
                    next += 1;
                    let tag = Tag::Thread(next).encode();
                    if ground.jvmti.set_tag(thread, tag).is_err() {
                        return;
                    }
                    tag
                }
                Ok(tag) => tag,
                Err(_) => return,
            };
            self.threads.insert(tag, name);
            let context = (java.context_loader).and_then(|field| thread.get(field));
            let loader = context.map(|loader| Recognizer { ground, jni }.loader(loader.any()));
            let purse = loader.and_then(|id| ground.core.identity.loaders.owner(id).any_purse());
            self.owned.insert(tag, numbers.of(purse));
        });
    }

    pub(super) fn classes(&self) -> Vec<KnownClass> {
        self.classes.clone()
    }

    pub(super) fn owned(&self) -> Vec<(i64, u8)> {
        self.owned
            .iter()
            .map(|(&tag, &holder)| (tag, holder))
            .collect()
    }

    /// The classes and threads that belong to the holders that are told apart.
    pub(super) fn roots_of_holders(&self) -> usize {
        let classes = self.classes.iter().filter(|class| class.holder > 0);
        let threads = self.threads.keys().filter(|tag| {
            let holder = self.owned.get(tag);
            holder.is_some_and(|&holder| holder > 0)
        });
        classes.count() + threads.count()
    }

    pub(super) fn holder_count(&self) -> u8 {
        self.holders.len() as u8
    }

    pub(super) fn holders(&self) -> &[Arc<str>] {
        &self.holders
    }

    /// The names of what is on some paths. Classes that were unloaded since have none.
    pub(super) fn names(&self, ground: &Ground, jni: &Jni, paths: &[Path]) -> Names {
        let mut wanted: HashMap<i64, bool> = HashMap::new();
        for path in paths {
            wanted.entry(path.class_tag).or_default();
            for step in &path.steps {
                let has_fields = matches!(step.via, Via::Field(_));
                *wanted.entry(step.class_tag).or_default() |= has_fields;
                // The class that a class object stands for.
                let has_statics = matches!(step.via, Via::Static(_));
                *wanted.entry(step.own_tag).or_default() |= has_statics;
            }
        }
        let mut classes = HashMap::new();
        ground.jvmti.each_loaded_class(jni, |jni, class| {
            let tag = ground.jvmti.tag(class).unwrap_or(0);
            let Some(&has_fields) = wanted.get(&tag).filter(|_| tag != 0) else {
                return;
            };
            let Ok(signature) = ground.jvmti.signature_of(class) else {
                return;
            };
            let fields = match has_fields {
                true => ground.jvmti.heap_fields(jni, class),
                false => Vec::new(),
            };
            let named = NamedClass {
                name: java_name(&signature),
                fields,
            };
            classes.insert(tag, named);
        });
        Names {
            classes,
            threads: self.threads.clone(),
            threads_by_id: self.threads_by_id.clone(),
            methods: methods(ground, jni, paths),
        }
    }
}

impl Drop for Survey<'_> {
    fn drop(&mut self) {
        let ground = self.ground;
        ground.jvmti.each_thread(self.jni, |_, thread| {
            let tag = ground.jvmti.tag(thread).map(Tag::decode);
            if matches!(tag, Ok(Some(Tag::Thread(_)))) {
                // If it fails, the next survey finds the tag and takes it.
                let _ = ground.jvmti.set_tag(thread, 0);
            }
        });
    }
}

/// The loaders of retired services and those that belong to them.
fn retired_family(ground: &Ground) -> HashSet<LoaderId> {
    let directory = ground.core.directory();
    let is_retired = |id: LoaderId| {
        let mut next = Some(id);
        for _ in 0..MAX_PARENTS {
            let Some(loader) = next.and_then(|id| directory.loader(id)) else {
                return false;
            };
            if loader.retired {
                return true;
            }
            next = match loader.identity {
                LoaderIdentity::ChildOf(parent) => Some(parent),
                _ => None,
            };
        }
        false
    };
    let all = (1..ground.core.identity.loaders.high_water()).map(LoaderId);
    all.filter(|&id| is_retired(id)).collect()
}

/// The methods on whose stacks roots are, as far as they are still there.
fn methods(ground: &Ground, jni: &Jni, paths: &[Path]) -> HashMap<usize, String> {
    let mut wanted: HashMap<i64, HashSet<usize>> = HashMap::new();
    for root in paths.iter().filter_map(|path| path.root) {
        if root.kind == RootKind::StackLocal && root.method != 0 {
            wanted
                .entry(root.thread_id)
                .or_default()
                .insert(root.method);
        }
    }
    let mut methods = HashMap::new();
    let Some(java) = ground.java().filter(|_| !wanted.is_empty()) else {
        return methods;
    };
    ground.jvmti.each_thread(jni, |jni, thread| {
        for &method in wanted.get(&java.thread_id(thread)).into_iter().flatten() {
            let named = ground.jvmti.method_on_stack(jni, thread, method);
            if let Some((class, name)) = named {
                methods.insert(method, format!("{}.{name}", java_name(&class)));
            }
        }
    });
    methods
}

/// A class with its name.
pub(super) struct NamedClass {
    pub(super) name: String,
    /// Its fields by index, if they were asked for.
    pub(super) fields: Vec<HeapField>,
}

/// Names of what is on paths.
pub(super) struct Names {
    pub(super) classes: HashMap<i64, NamedClass>,
    pub(super) threads: HashMap<i64, String>,
    pub(super) threads_by_id: HashMap<i64, String>,
    pub(super) methods: HashMap<usize, String>,
}
