//! The errors of a refusal: defines their classes in the boot loader, and throws them.
//!
//! The boot loader defines the classes because every other loader delegates to it in the end: loaders that
//! search themselves first (Tomcat's, Jetty's) do not find the classes and ask their parents, and those
//! without a parent ask the boot loader at once. So a `catch` clause means the same class everywhere.
//!
//! A loader that searches itself first may still have a copy of these classes, if a WAR or the module path
//! contains the API. Code of such a loader catches its copy, so the agent throws that: the class that a
//! loader on the stack has loaded under the error's name, the nearest to the allocation first
//! ([`super::error_class_copies`]).
//!
//! Sources are in `java-api/heapwarden-api`; the class files beside them are what `cargo xtask
//! classes` made of them, so that Cargo alone builds the agent.

use policy_config::Throw;
use policy_jvm::kinds::{Class, Throwable};
use policy_jvm::{ClassFile, Constructor, Global, Jni, JvmTi, KnownClass, Local, Method, Ref};

use crate::enforce::throw_points::methods::{Meant, Methods};

use super::error_class_copies::ErrorClassCopies;
use super::error_figures::{AccountName, Figures};

/// With less free heap than this the agent throws an error that it made beforehand: in a full heap the
/// allocation of the error itself could fail, and the VM would report that as exhaustion
/// (`-XX:+ExitOnOutOfMemoryError`, heap dumps).
const ROOM_FOR_ERROR_BYTES: i64 = 1 << 20;

/// A class file of the Java half.
macro_rules! class_file {
    ($simple:literal) => {
        policy_jvm::ClassFile::new(
            concat!("dev/heapwarden/", $simple),
            include_bytes!(concat!(
                "../../java/classes/dev/heapwarden/",
                $simple,
                ".class"
            )),
        )
    };
}
pub(crate) use class_file;

/// Classes that the errors need: the interface before the class that implements it.
const SHARED: [ClassFile; 2] = [
    class_file!("MemoryQuotaExceeded"),
    class_file!("QuotaMessage"),
];
/// Thrown for [`Throw::Oom`], [`Throw::Error`] and [`Throw::Exception`].
const THROWN: [ClassFile; 3] = [
    class_file!("MemoryQuotaExceededError"),
    class_file!("AllocationRefusedError"),
    class_file!("MemoryQuotaExceededException"),
];
/// Account, live, limit, standard error, requested.
const CONSTRUCTOR: &str = "(Ljava/lang/String;JJJJ)V";

/// The errors, ready to be thrown.
pub(crate) struct Errors {
    kinds: [Kind; THROWN.len()],
    throwable: KnownClass<Throwable>,
    heap: Heap,
}

/// One class of error.
struct Kind {
    copies: ErrorClassCopies,
    class: Global<Class>,
    constructor: Constructor,
    /// Without stack trace, suppressed ones and cause: it is shared by all who get it.
    made_beforehand: Global<Throwable>,
}

/// Reads the free heap without any look-up by name.
struct Heap {
    runtime: Global,
    free: Method,
    total: Method,
    max_bytes: i64,
}

impl Errors {
    /// Defines the classes in the boot loader, or finds them there, and looks up what throwing needs. Runs
    /// Java code: not on an allocating thread.
    ///
    /// # Errors
    /// The reason, as a sentence, if that is not possible.
    pub(crate) fn define(
        jni: &Jni,
        jvmti: &JvmTi,
        runtime: &Global,
        heap_max_bytes: u64,
    ) -> Result<Errors, String> {
        for file in &SHARED {
            jni.define_in_boot(jvmti, file)
                .map_err(|why| why.to_string())?;
        }
        let throwable = (jni.java_class()).ok_or("the JDK's classes are others")?;
        let [oom, error, exception] = &THROWN;
        let kind = |place, file| Kind::define(jni, jvmti, &throwable, place, file);
        Ok(Errors {
            kinds: [kind(0, oom)?, kind(1, error)?, kind(2, exception)?],
            throwable,
            heap: Heap::find(jni, runtime, heap_max_bytes).ok_or("the free heap cannot be read")?,
        })
    }

    /// An account's name for [`Figures`]. `None` if the heap has no room. Must neither be made nor dropped
    /// on an allocating thread.
    pub(crate) fn account_name(jni: &Jni, name: &str) -> Option<AccountName> {
        jni.new_string(name)?.global()
    }

    /// Which classes the code of this class's loader means by the errors' names. On the metadata thread.
    pub(crate) fn meant_by(&self, jni: &Jni, jvmti: &JvmTi, class: &Ref<'_, Class>) -> Meant {
        let Ok(Some(loader)) = jvmti.loader_of(jni, class) else {
            return Meant::default();
        };
        (self.kinds.each_ref()).map(|kind| kind.copies.meant_by(jni, &loader, &kind.class))
    }

    /// Prepares the copies that threads wait for. On the metadata thread.
    pub(crate) fn prepare_copies(&self, jni: &Jni) {
        for kind in &self.kinds {
            kind.copies.find_fields(jni);
        }
    }

    /// Whether [`Errors::throw`] would throw the class that the code on the calling thread's stack means.
    /// If not, wake the metadata thread: it prepares the class.
    pub(crate) fn is_ready(
        &self,
        jni: &Jni,
        jvmti: &JvmTi,
        kind: Throw,
        methods: &Methods,
    ) -> bool {
        let copies = &self.kind(kind).copies;
        self.heap.room_bytes(jni) < ROOM_FOR_ERROR_BYTES || copies.is_ready(jni, jvmti, methods)
    }

    /// Whether an error is of a class that the agent throws, and the account that it names: `None` within if
    /// it was made beforehand. Looks up names: not on an allocating thread.
    pub(crate) fn account_of(
        &self,
        jni: &Jni,
        error: &Ref<'_, Throwable>,
    ) -> Option<Option<String>> {
        let class = error.class();
        let is_thrown = (self.kinds.iter())
            .any(|kind| class.is_same(&kind.class) || kind.copies.has_made(jni, &class));
        is_thrown.then(|| {
            let account = error.get_named("account", "Ljava/lang/String;");
            account.and_then(|account| account.text())
        })
    }

    fn kind(&self, kind: Throw) -> &Kind {
        &self.kinds[match kind {
            Throw::Oom => 0,
            Throw::Error => 1,
            Throw::Exception => 2,
        }]
    }

    /// Leaves an error of this kind pending on the calling thread, which the VM delivers when
    /// the callback returns. After that the callback may not call Java or JVM TI any more.
    ///
    /// The error is made here, under the agent's latch: its memory is charged to nobody. If the heap has
    /// no room for it, or making it fails (a stack too deep for the constructor), the one made beforehand
    /// is thrown. False if nothing was thrown.
    pub(crate) fn throw(
        &self,
        jni: &Jni,
        jvmti: &JvmTi,
        kind: Throw,
        methods: &Methods,
        figures: &Figures<'_>,
    ) -> bool {
        // An exception that is pending already is the program's own.
        if jni.is_exception_pending() {
            return false;
        }
        let kind = self.kind(kind);
        let made = if self.heap.room_bytes(jni) >= ROOM_FOR_ERROR_BYTES {
            (kind.copies.make(jni, jvmti, methods, figures)).or_else(|| kind.make(jni, figures))
        } else {
            None
        };
        match made.as_ref().and_then(|made| made.as_a(&self.throwable)) {
            Some(made) => jni.throw(made),
            None => jni.throw(&kind.made_beforehand),
        }
    }
}

impl Kind {
    fn define(
        jni: &Jni,
        jvmti: &JvmTi,
        throwable: &KnownClass<Throwable>,
        place: usize,
        file: &ClassFile,
    ) -> Result<Kind, String> {
        let class = (jni.define_in_boot(jvmti, file)).map_err(|why| why.to_string())?;
        // Asking for the constructor initialises the class.
        let constructor = class.constructor(CONSTRUCTOR);
        let kept = class.global();
        // No constructor runs, so all fields are null. That makes a `Throwable` without stack trace,
        // suppressed exceptions and cause: nobody can attach anything to it.
        let blank = kept.as_ref().and_then(|class| jni.allocate(class));
        let copies = ErrorClassCopies::find(jni, file.name(), &class, place);
        let blank = blank.and_then(|blank| blank.as_a(throwable)?.global());
        match (constructor, kept, blank, copies) {
            (Some(constructor), Some(class), Some(made_beforehand), Some(copies)) => Ok(Kind {
                copies,
                class,
                constructor,
                made_beforehand,
            }),
            _ => Err(format!("{} cannot be made", file.name())),
        }
    }

    fn make<'j>(&self, jni: &'j Jni, figures: &Figures<'_>) -> Option<Local<'j>> {
        self.constructor.make(jni, &figures.values())
    }
}

impl Heap {
    fn find(jni: &Jni, runtime: &Global, max_bytes: u64) -> Option<Heap> {
        let object = runtime.local(jni)?;
        let class = object.class();
        let free = class.method("freeMemory", "()J")?;
        let total = class.method("totalMemory", "()J")?;
        Some(Heap {
            runtime: object.global()?,
            free,
            total,
            max_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX),
        })
    }

    /// Free heap in bytes, garbage counted as used; 0 if it cannot be read.
    fn room_bytes(&self, jni: &Jni) -> i64 {
        let Some(runtime) = self.runtime.local(jni) else {
            return 0;
        };
        match (self.total.long(&runtime), self.free.long(&runtime)) {
            (Some(total), Some(free)) => self.max_bytes.saturating_sub(total).saturating_add(free),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_files_are_of_java_11_and_of_their_names() {
        for file in SHARED.iter().chain(&THROWN) {
            assert_eq!(file.bytes()[..8], [0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 55]);
            let name = file.name().as_bytes();
            assert!(
                file.bytes().windows(name.len()).any(|part| part == name),
                "{}",
                file.name()
            );
        }
    }
}
