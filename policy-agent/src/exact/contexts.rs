//! Contexts: what `java.lang.HeapwardenContexts` counts, with names.
//!
//! Inserted code carries numbers of methods and types, which are given when a class is loaded. The exact thread has
//! the counter tell what is new, and keeps the tree for the listener. Both tables are as bounded as the counter's:
//! further methods and types share a number, and so do those with names longer than [`MAX_NAME_BYTES`].

mod stacks;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use policy_core::exact::ContextOverflow;
use policy_exact::{CALLS, CONTEXTS, ELEMENTS};
use policy_jvm::kinds::JavaString;
use policy_jvm::{ClassFile, Jni, Local, NativeMethod, StaticMethod};
use policy_report::{Arrays, Context, Contexts as Document, Objects, Overflow};

use crate::ground::Ground;

use super::names;

macro_rules! java_lang {
    ($simple:literal) => {
        ClassFile::new(
            concat!("java/lang/", $simple),
            include_bytes!(concat!("../../java/classes/java/lang/", $simple, ".class")),
        )
    };
}

const CLASSES: [ClassFile; 3] = [
    java_lang!("HeapwardenContextCounts"),
    java_lang!("HeapwardenProfile"),
    java_lang!("HeapwardenContexts"),
];
/// Numbers have 16 bits, and none is 0.
const MOST: usize = (1 << 16) - 1;
/// The longest name of a method or class that has a number of its own, its descriptor included.
const MAX_NAME_BYTES: usize = 1_000;
/// The name for all others.
const OTHERS: &str = "(others)";
/// The numbers of the counter's figures that are no reasons.
const LOST: usize = 3;
const MEMORY: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    counter: OnceLock<StaticMethod>,
    methods: Mutex<Numbered>,
    types: Mutex<Numbered>,
    tree: Mutex<Tree>,
}

/// Names by their numbers. The first is that of all which find no room.
#[derive(Debug)]
struct Numbered {
    numbers: HashMap<Box<[u8]>, u16>,
    names: Vec<Arc<str>>,
    /// Of methods: the code that each belongs to, beside its name.
    code: Vec<Option<i32>>,
    /// The number of the first name.
    first: usize,
}

/// As the counter has told it.
#[derive(Debug, Default)]
struct Tree {
    /// Caller and method by node; `None`: it is no node. The root is none.
    nodes: Vec<Option<(u16, u16)>>,
    /// Objects and elements by node and type; calls and executed bytecodes by node and [`CALLS`].
    cells: HashMap<(u16, u16), (u64, u64)>,
    overflow: ContextOverflow,
}

impl Default for Numbered {
    fn default() -> Numbered {
        Numbered {
            numbers: HashMap::new(),
            names: vec![OTHERS.into()],
            code: vec![None],
            first: 1,
        }
    }
}

impl Numbered {
    fn number(&mut self, key: &[u8], code: Option<i32>, name: impl FnOnce() -> String) -> i32 {
        let others = self.first as i32;
        if key.len() > MAX_NAME_BYTES {
            return others;
        }
        if let Some(number) = self.numbers.get(key) {
            return i32::from(*number);
        }
        let next = self.first + self.names.len();
        if next > MOST {
            return others;
        }
        self.names.push(name().into());
        self.code.push(code);
        self.numbers.insert(key.into(), next as u16);
        next as i32
    }

    fn place(&self, number: u16) -> Option<usize> {
        usize::from(number).checked_sub(self.first)
    }

    fn name(&self, number: u16) -> &str {
        let name = self.place(number).and_then(|place| self.names.get(place));
        name.map_or("", AsRef::as_ref)
    }

    fn code(&self, number: u16) -> Option<i32> {
        *self.code.get(self.place(number)?)?
    }

    fn estimated_bytes(&self) -> u64 {
        let names: usize = self.names.iter().map(|name| 2 * name.len() + 64).sum();
        names as u64
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Contexts {
    /// The contexts of this process, static: natives and the hook are given no state. Any thread.
    pub(super) fn get() -> &'static Contexts {
        static CONTEXTS: LazyLock<Contexts> = LazyLock::new(Contexts::new);
        &CONTEXTS
    }

    fn new() -> Contexts {
        let types = Numbered {
            first: CALLS as usize + 1,
            ..Numbered::default()
        };
        Contexts {
            types: Mutex::new(types),
            ..Contexts::default()
        }
    }

    /// The number of a method: its class, name and descriptor. `code`: the number of the code that it belongs to;
    /// methods of one name in two services are two. On the thread that loads its class.
    pub(super) fn method(
        &self,
        code: Option<i32>,
        (class, name, descriptor): (&[u8], &[u8], &[u8]),
    ) -> i32 {
        let service = code.unwrap_or(-1).to_le_bytes();
        // Enough of each that the key of long ones is too long too.
        let [class_part, name_part, descriptor_part] =
            [class, name, descriptor].map(|part| &part[..part.len().min(MAX_NAME_BYTES)]);
        let key = [class_part, b".", name_part, descriptor_part, &service].concat();
        locked(&self.methods).number(&key, code, || names::method(class, name, descriptor))
    }

    /// The number of a class that is instantiated. On the thread that loads the class which does so.
    pub(super) fn class(&self, name: &[u8]) -> i32 {
        locked(&self.types).number(name, None, || names::class(name))
    }

    /// The account of each code that a method belongs to. The names are asked for without a lock.
    fn accounts(&self, name: impl Fn(i32) -> Option<Arc<str>>) -> HashMap<i32, Arc<str>> {
        let mut code: Vec<i32> = locked(&self.methods)
            .code
            .iter()
            .flatten()
            .copied()
            .collect();
        code.sort_unstable();
        code.dedup();
        let named = code
            .into_iter()
            .filter_map(|code| Some((code, name(code)?)));
        named.collect()
    }

    /// Defines what counts, once. On an attached thread of the agent, at the start or later.
    pub(super) fn define(&self, ground: &Ground, jni: &Jni) -> Result<(), String> {
        if self.counter.get().is_some() {
            return Ok(());
        }
        for class in &CLASSES {
            let defined = jni.define_in_boot(&ground.jvmti, class);
            defined.map_err(|why| why.to_string())?;
        }
        let binder = jni.boot_class("dev/heapwarden/agent/Binder");
        let binder = binder.ok_or("the class that binds native methods is missing")?;
        let bound = binder.static_method("bindContexts", "()Z");
        if bound.and_then(|bind| bind.boolean(jni, &[])) != Some(true) {
            return Err("the native methods of the contexts cannot be bound".to_owned());
        }
        let class = jni.boot_class(CONTEXTS);
        let sum = class.and_then(|class| class.static_method("sum", "()V"));
        let sum = sum.ok_or("a method of the contexts is missing")?;
        // Initialises the class, before a thread of the program can.
        if !sum.run(jni, &[]) {
            return Err("the contexts do not know this JVM's threads".to_owned());
        }
        let _ = self.counter.set(sum);
        Ok(())
    }

    /// Has the counter tell what is new. On the exact thread.
    pub(super) fn gather(&self, ground: &Ground, jni: &Jni) {
        let Some(sum) = self.counter.get() else {
            return;
        };
        sum.run(jni, &[]);
        let names = locked(&self.methods).estimated_bytes() + locked(&self.types).estimated_bytes();
        let tree = locked(&self.tree);
        let own = names + (tree.nodes.len() * 8 + tree.cells.len() * 32) as u64;
        let mut overflow = tree.overflow;
        overflow.contexts = tree.nodes.iter().flatten().count() as u64;
        overflow.memory_bytes += own;
        ground.core.exact.contexts_are(overflow);
    }

    /// The document of `/api/v1/contexts`, with a line feed. `account`: the name of the account that code of this number
    /// belongs to. On the listener's thread.
    pub(super) fn document(
        &self,
        packages: Vec<String>,
        account: impl Fn(i32) -> Option<Arc<str>>,
    ) -> Vec<u8> {
        let accounts = self.accounts(account);
        let methods = locked(&self.methods);
        let types = locked(&self.types);
        let tree = locked(&self.tree);
        let mut contexts = vec![Context::default()];
        let mut places = vec![0_u32; tree.nodes.len().max(1)];
        for (node, (caller, method)) in tree.known() {
            places[node] = contexts.len() as u32;
            contexts.push(Context {
                parent: places.get(usize::from(caller)).copied(),
                method: methods.name(method).into(),
                account: (methods.code(method))
                    .and_then(|code| accounts.get(&code))
                    .map(|account| (&**account).into()),
                ..Context::default()
            });
        }
        let mut cells: Vec<_> = tree.cells.iter().collect();
        cells.sort_unstable();
        for (&(node, kind), &(count, elements)) in cells {
            let place = places.get(usize::from(node)).copied().unwrap_or_default();
            let context = &mut contexts[place as usize];
            if i32::from(kind) == CALLS {
                context.calls = Some(count);
                context.bytecodes = Some(elements);
                continue;
            }
            match ELEMENTS.get(usize::from(kind).wrapping_sub(1)) {
                Some(name) => context.arrays.push(Arrays {
                    elements: (*name).into(),
                    arrays: count,
                    elements_total: elements,
                }),
                None => context.objects.push(Objects {
                    class: types.name(kind).into(),
                    objects: count,
                }),
            }
        }
        let overflow = (ContextOverflow::REASONS.iter().zip(tree.overflow.by_reason)).map(
            |(reason, (calls, objects))| Overflow {
                reason: (*reason).into(),
                calls,
                objects,
            },
        );
        let document = Document {
            packages: packages.into_iter().map(Into::into).collect(),
            contexts,
            overflow: overflow.collect(),
            lost_objects: tree.overflow.lost_objects,
        };
        let mut json = serde_json::to_vec(&document).unwrap_or_default();
        json.push(b'\n');
        json
    }
}

impl Tree {
    fn known(&self) -> impl Iterator<Item = (usize, (u16, u16))> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(node, of)| of.map(|of| (node, of)))
    }
}

/// Binds the native methods; called by way of a class of the boot loader, of whose code the JVM does not warn.
fn bind_now(jni: &Jni) -> bool {
    let Some(class) = jni.boot_class(CONTEXTS) else {
        return false;
    };
    let methods = [
        NativeMethod::of2::<i32, i32, (), _>("node", node),
        NativeMethod::of3::<i32, i64, i64, (), _>("cell", cell),
        NativeMethod::of3::<i32, i64, i64, (), _>("overflow", overflow),
        NativeMethod::of2::<i32, bool, JavaString, _>("name", name),
    ];
    jni.bind(&class, &methods)
}

/// The two halves of a number.
fn halves(number: i32) -> (u16, u16) {
    ((number as u32 >> 16) as u16, number as u16)
}

fn node(_: &Jni, node: i32, caller_and_method: i32) {
    let Ok(node) = usize::try_from(node) else {
        return;
    };
    let mut tree = locked(&Contexts::get().tree);
    if node >= tree.nodes.len() && node <= MOST {
        tree.nodes.resize(node + 1, None);
    }
    if let Some(place) = tree.nodes.get_mut(node) {
        *place = Some(halves(caller_and_method));
    }
}

fn cell(_: &Jni, node_and_type: i32, objects: i64, elements: i64) {
    let mut tree = locked(&Contexts::get().tree);
    let counted = (objects as u64, elements as u64);
    tree.cells.insert(halves(node_and_type), counted);
}

fn overflow(_: &Jni, reason: i32, calls: i64, objects: i64) {
    let mut tree = locked(&Contexts::get().tree);
    let (calls, objects) = (calls as u64, objects as u64);
    match usize::try_from(reason) {
        Ok(LOST) => tree.overflow.lost_objects = objects,
        Ok(MEMORY) => tree.overflow.memory_bytes = objects,
        Ok(reason) => {
            if let Some(place) = tree.overflow.by_reason.get_mut(reason) {
                *place = (calls, objects);
            }
        }
        Err(_) => {}
    }
}

/// For a program that reads its own tree, on its thread.
fn name(jni: &Jni, number: i32, is_method: bool) -> Option<Local<'_, JavaString>> {
    let contexts = Contexts::get();
    let number = u16::try_from(number).ok()?;
    let name = match ELEMENTS.get(usize::from(number).wrapping_sub(1)) {
        Some(element) if !is_method => (*element).to_owned(),
        _ => {
            let table = if is_method {
                &contexts.methods
            } else {
                &contexts.types
            };
            locked(table).name(number).to_owned()
        }
    };
    jni.new_string(&name)
}

/// The native method by which [`bind_now`] is called.
pub(super) fn binder() -> NativeMethod {
    NativeMethod::of0::<bool, _>("bindContextsNow", bind_now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_number_shares_the_first() {
        let contexts = Contexts::new();
        let first = contexts.class(b"com/acme/Cart");
        assert_eq!(first, 12);
        assert_eq!(contexts.class(b"com/acme/Cart"), first);
        assert_eq!(contexts.class(&[b'a'; 1_001]), 11);
        for number in 0..MOST {
            contexts.class(format!("C{number}").as_bytes());
        }
        assert_eq!(contexts.class(b"com/acme/Late"), 11);
        let types = locked(&contexts.types);
        assert_eq!(types.name(11), OTHERS);
        assert_eq!(types.name(12), "com.acme.Cart");
        assert_eq!(types.name(u16::MAX), format!("C{}", MOST - 13));
    }
}
