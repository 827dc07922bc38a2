//! Copies of an error's class that other loaders have loaded, and errors of such a class.
//!
//! A copy is any class that a loader on the stack has loaded under the error's name, so it may be a
//! tenant's own code. The agent runs no constructor of it, and calls nothing of it but its static
//! initialiser, as any `new` does. It accepts a class as a copy if the class directly extends what the
//! error extends, has the error's fields and does not override `fillInStackTrace`.
//!
//! # Rules
//! 1. A thread that is being refused looks up no name. The metadata thread asks the VM which class a loader
//!    has loaded when it inspects a method of that loader ([`ErrorClassCopies::meant_by`]): a class is
//!    linked before its code runs, and linking loads what its handlers catch. The question runs no code
//!    of a loader and loads nothing. The answer is a number that is stored with the method
//!    ([`crate::enforce::throw_points::methods::Meant`]).
//! 2. The metadata thread finds the fields of a copy once, after the copy is initialised: to ask for them
//!    earlier would initialise it, which may run code of a tenant on the agent's thread. So the first
//!    thread that is to get an error of the copy allocates one, which initialises it on that thread. The
//!    stack is judged again when the metadata thread has found the fields
//!    ([`ErrorClassCopies::is_ready`]).
//! 3. Numbers are never used twice. An unloaded copy is removed when the next is found. At most
//!    [`MAX_COPIES`] of one error are known.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use policy_jvm::kinds::{Class, JavaString};
use policy_jvm::{ClassFields, Constructor, Global, Jni, JvmTi, Local, Method, Ref, Value, Weak};

use crate::enforce::throw_points::methods::{MethodKey, Methods};

use super::error_figures::Figures;
use super::stack_walk::StackWalk;

/// Frames that are searched for a copy at the most.
const MAX_FRAMES: usize = 256;
/// Copies of one error that are known at the most: one for each application that brings its own.
const MAX_COPIES: usize = 1024;

/// The loader has loaded no such class.
const NONE: u32 = 0;
/// The boot loader's class.
const OWN: u32 = 1;
/// The first number of a copy.
const FIRST: u32 = 2;

const FILL_IN: (&str, &str) = ("fillInStackTrace", "()Ljava/lang/Throwable;");
const FIELDS: [(&str, &str); 5] = [
    ("account", "Ljava/lang/String;"),
    ("liveBytes", "J"),
    ("limitBytes", "J"),
    ("standardErrorBytes", "J"),
    ("requestedBytes", "J"),
];

/// A class that some loader has loaded under the error's name.
struct Copy {
    number: u32,
    class: Weak<Class>,
    /// [`NEW`] and so on; only rises.
    state: AtomicU8,
    fields: OnceLock<ClassFields<5>>,
}

/// It is not initialised yet, as far as is known.
const NEW: u8 = 0;
/// It is initialised; the metadata thread is to find its fields.
const INITIALISED: u8 = 1;
/// Errors of it can be made.
const READY: u8 = 2;
/// It has the name of the error but is not accepted as a copy.
const NO_COPY: u8 = 3;

/// The names, classes and methods that are needed to find and make copies of one error.
pub(super) struct ErrorClassCopies {
    /// The place of this error among the errors.
    place: usize,
    /// The error's name as `ClassLoader` wants it.
    name: Global<JavaString>,
    find_loaded: Method,
    /// The superclass of the error, and its constructor.
    parent: Global<Class>,
    constructor: Constructor,
    fill_in: Method,
    /// By number. The metadata thread writes; threads that are being refused read.
    known: ArcSwap<Vec<Arc<Copy>>>,
    /// The number of the next copy; the metadata thread's.
    next: Mutex<u32>,
}

impl ErrorClassCopies {
    /// For the error of this class, whose internal name is `name`.
    pub(super) fn find(
        jni: &Jni,
        name: &str,
        class: &Ref<'_, Class>,
        place: usize,
    ) -> Option<ErrorClassCopies> {
        let dotted = name.replace('/', ".");
        let find_loaded = (jni.boot_class("java/lang/ClassLoader")?)
            .method("findLoadedClass0", "(Ljava/lang/String;)Ljava/lang/Class;")?;
        let parent = class.super_class()?;
        Some(ErrorClassCopies {
            place,
            name: jni.new_string(&dotted)?.global()?,
            find_loaded,
            constructor: parent.constructor("()V")?,
            fill_in: parent.method(FILL_IN.0, FILL_IN.1)?,
            parent: parent.global()?,
            known: ArcSwap::default(),
            next: Mutex::new(FIRST),
        })
    }

    // ---- on the metadata thread ----------------------------------------------------

    /// Which class code of this loader means. `own` is the boot loader's.
    pub(super) fn meant_by(&self, jni: &Jni, loader: &Ref<'_>, own: &Global<Class>) -> u32 {
        let name = [Value::object(&self.name)];
        let Some(found) = self.find_loaded.own_object::<Class>(loader, &name) else {
            return NONE;
        };
        if found.is_same(own) {
            return OWN;
        }
        let known = self.known.load_full();
        if let Some(copy) = known.iter().find(|copy| copy.class.refers_to(jni, &found)) {
            return copy.number;
        }
        self.enter(jni, &known, &found)
    }

    /// Gives a class a number, and removes the copies that are unloaded.
    fn enter(&self, jni: &Jni, known: &[Arc<Copy>], class: &Ref<'_, Class>) -> u32 {
        let is_there = |copy: &&Arc<Copy>| !jni.is_cleared(&copy.class);
        let mut copies: Vec<Arc<Copy>> = known.iter().filter(is_there).cloned().collect();
        if copies.len() >= MAX_COPIES {
            return NONE;
        }
        let Some(weak) = class.weak() else {
            return NONE;
        };
        let mut next = self.next.lock().unwrap_or_else(|e| e.into_inner());
        let number = *next;
        *next = next.saturating_add(1);
        copies.push(Arc::new(Copy {
            number,
            class: weak,
            state: AtomicU8::new(NEW),
            fields: OnceLock::new(),
        }));
        self.known.store(Arc::new(copies));
        number
    }

    /// Finds the fields of copies that have been initialised.
    pub(super) fn find_fields(&self, jni: &Jni) {
        for copy in self.known.load().iter() {
            if copy.state.load(Ordering::Acquire) != INITIALISED {
                continue;
            }
            let fields = (copy.class.upgrade(jni)).and_then(|class| self.fields(&class));
            let state = match fields {
                Some(fields) => {
                    let _ = copy.fields.set(fields);
                    READY
                }
                None => NO_COPY,
            };
            copy.state.store(state, Ordering::Release);
        }
    }

    fn fields(&self, class: &Ref<'_, Class>) -> Option<ClassFields<5>> {
        let fill_in = class.method(FILL_IN.0, FILL_IN.1)?;
        if !fill_in.is_same(&self.fill_in) {
            return None;
        }
        ClassFields::find(class, FIELDS)
    }

    // ---- on a thread that ends ------------------------------------------------------

    /// Whether this class is a copy of which the agent can make errors.
    pub(super) fn has_made(&self, jni: &Jni, class: &Ref<'_, Class>) -> bool {
        (self.known.load().iter())
            .any(|copy| copy.fields.get().is_some() && copy.class.refers_to(jni, class))
    }

    // ---- on the thread that is being refused ---------------------------------------

    /// The copy that the code on the calling thread's stack means, the nearest to the allocation
    /// first; `None` if it means the boot loader's class, or none at all.
    fn meant(&self, jni: &Jni, jvmti: &JvmTi, methods: &Methods) -> Option<Arc<Copy>> {
        let known = self.known.load();
        if known.is_empty() {
            return None;
        }
        let table = methods.table();
        let mut walk = StackWalk::new(jni, jvmti);
        let number = (0..MAX_FRAMES)
            .map_while(|depth| walk.frame(depth, MAX_FRAMES))
            .filter_map(|frame| table.get(MethodKey(frame.method().key())))
            .map(|judged| judged.meant[self.place])
            .find(|&number| number != NONE)?;
        let place = known.binary_search_by_key(&number, |copy| copy.number);
        place.ok().map(|place| known[place].clone())
    }

    /// Whether an error can be made now of the class that the code on the calling thread's stack
    /// means. If not, wake the metadata thread: it finds the fields.
    pub(super) fn is_ready(&self, jni: &Jni, jvmti: &JvmTi, methods: &Methods) -> bool {
        let Some(copy) = self.meant(jni, jvmti, methods) else {
            return true;
        };
        if copy.state.load(Ordering::Acquire) == NEW {
            let extends = |class: &Local<'_, Class>| {
                (class.super_class()).is_some_and(|parent| parent.is_same(&self.parent))
            };
            let class = copy.class.upgrade(jni).filter(extends);
            let made = class.and_then(|class| jni.allocate(&class));
            let state = if made.is_some() { INITIALISED } else { NO_COPY };
            // The first of several threads decides.
            let _ = (copy.state).compare_exchange(NEW, state, Ordering::AcqRel, Ordering::Relaxed);
        }
        copy.state.load(Ordering::Acquire) >= READY
    }

    /// An error of the copy that the code on the calling thread's stack means. `None` if that is the
    /// boot loader's class, or none can be made.
    pub(super) fn make<'j>(
        &self,
        jni: &'j Jni,
        jvmti: &JvmTi,
        methods: &Methods,
        figures: &Figures<'_>,
    ) -> Option<Local<'j>> {
        let copy = self.meant(jni, jvmti, methods)?;
        let fields = copy.fields.get()?;
        let error = jni.allocate(&copy.class.upgrade(jni)?)?;
        let made = self.constructor.run_on(&error) && fields.set(&error, figures.values());
        made.then_some(error)
    }
}
