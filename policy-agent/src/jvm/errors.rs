//! The errors of a refusal: their classes in the boot loader, and throwing one.
//!
//! The classes are defined in the boot loader because every other loader asks it, sooner or
//! later: those that look into themselves first (Tomcat's, Jetty's) do not find them there and
//! go on to their parents, those without a parent ask the boot loader at once. So a `catch`
//! clause means the same class everywhere.
//!
//! A loader that looks into itself first may hold a copy of these classes all the same: the API
//! lies in a WAR, or on the module path. Code of such a loader means its copy, so that is what is
//! thrown to it: the class that a loader on the stack has loaded under the error's name, the
//! nearest to the allocation first ([`super::copies`]).
//!
//! Sources are in `java-api/heapwarden-api`; the class files beside them are what `cargo xtask
//! classes` made of them, so that Cargo alone builds the agent.

use jvmti_bindings::sys::jni;
use policy_config::Throw;
use std::ffi::CStr;
use std::ptr;

use super::copies::Copies;
use super::java::{Global, Jni, Local, call};
use super::tools::JvmTi;

/// What is free of the heap below which no error is made, but the one made beforehand thrown: at
/// a full heap the error itself could be the allocation that fails, and the VM would report that
/// as exhaustion (`-XX:+ExitOnOutOfMemoryError`, heap dumps).
const ROOM_FOR_ERROR_BYTES: i64 = 1 << 20;

/// A class file and the name it has inside.
pub(super) struct ClassFile {
    name: &'static CStr,
    bytes: &'static [u8],
}

impl ClassFile {
    pub(super) const fn new(name: &'static CStr, bytes: &'static [u8]) -> ClassFile {
        ClassFile { name, bytes }
    }
}

macro_rules! class_file {
    ($simple:literal) => {
        $crate::jvm::errors::ClassFile::new(
            match std::ffi::CStr::from_bytes_with_nul(
                concat!("dev/heapwarden/", $simple, "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
            include_bytes!(concat!(
                "../../java/classes/dev/heapwarden/",
                $simple,
                ".class"
            )),
        )
    };
}
pub(super) use class_file;

/// What the errors are made of: the interface before those that have it.
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
const CONSTRUCTOR: &CStr = c"(Ljava/lang/String;JJJJ)V";

/// What an error tells. Bytes.
pub(crate) struct Figures<'a> {
    /// The account's name as [`Errors::account_name`] makes it.
    pub(crate) account: &'a Global,
    pub(crate) live_bytes: u64,
    pub(crate) limit_bytes: u64,
    pub(crate) standard_error_bytes: u64,
    pub(crate) requested_bytes: u64,
}

/// The errors, ready to be thrown.
pub(crate) struct Errors {
    kinds: [Kind; THROWN.len()],
    heap: Heap,
}

/// One class of error.
struct Kind {
    copies: Copies,
    class: Global,
    constructor: usize,
    /// Without stack trace, suppressed ones and cause: it is shared by all who get it.
    made_beforehand: Global,
}

/// How the free heap is read without looking anything up.
struct Heap {
    runtime: Global,
    free: usize,
    total: usize,
    max_bytes: i64,
}

impl Errors {
    /// Defines the classes in the boot loader, or finds them there, and makes ready what
    /// throwing needs. Runs Java code: not on an allocating thread. Says why where it cannot be.
    pub(crate) fn define(
        jni: &Jni,
        tools: &JvmTi,
        runtime: &Global,
        heap_max_bytes: u64,
    ) -> Result<Errors, String> {
        for file in &SHARED {
            jni.boot_defined(tools, file)?;
        }
        let [oom, error, exception] = &THROWN;
        let kind = |file| Kind::define(jni, tools, file);
        Ok(Errors {
            kinds: [kind(oom)?, kind(error)?, kind(exception)?],
            heap: Heap::find(jni, runtime, heap_max_bytes).ok_or("the free heap cannot be read")?,
        })
    }

    /// An account's name as [`Figures`] want it. `None` where the heap has no room. Not on an
    /// allocating thread; given back by [`Errors::forget_account_name`].
    pub(crate) fn account_name(jni: &Jni, name: &str) -> Option<Global> {
        jni.new_string(name)?.global()
    }

    /// Gives back what [`Errors::account_name`] made, once no thread can be using it.
    pub(crate) fn forget_account_name(jni: &Jni, name: Global) {
        call!(jni, DeleteGlobalRef, name.raw());
    }

    /// Leaves an error of this kind pending on the calling thread, which the VM delivers when
    /// the callback returns. After that the callback may not call Java or JVM TI any more.
    ///
    /// The error is made here, under the agent's latch: what it takes of the heap is nobody's.
    /// Where the heap has no room for it, or making it fails (a stack too deep for the
    /// constructor), the one made beforehand is thrown. False where nothing was thrown.
    pub(crate) fn throw(
        &self,
        jni: &Jni,
        tools: &JvmTi,
        kind: Throw,
        figures: &Figures<'_>,
    ) -> bool {
        // An exception that is pending already is the program's own.
        if call!(jni, ExceptionCheck) != 0 {
            return false;
        }
        let kind = &self.kinds[match kind {
            Throw::Oom => 0,
            Throw::Error => 1,
            Throw::Exception => 2,
        }];
        let made = if self.heap.room_bytes(jni) >= ROOM_FOR_ERROR_BYTES {
            let copy = kind.copies.seen(jni, tools, &kind.class);
            copy.and_then(|copy| kind.copies.make(jni, &copy, figures))
                .or_else(|| kind.make(jni, figures))
        } else {
            None
        };
        let thrown = made.as_ref().map_or(kind.made_beforehand.raw(), Local::raw);
        call!(jni, Throw, thrown) == 0
    }
}

impl Kind {
    fn define(jni: &Jni, tools: &JvmTi, file: &ClassFile) -> Result<Kind, String> {
        let class = jni.boot_defined(tools, file)?;
        // Asking for the constructor initialises the class.
        let constructor = jni.method_id(&class, c"<init>", CONSTRUCTOR);
        let kept = class.global();
        // No constructor runs, so all fields are null, which is how `Throwable` has one without
        // stack trace, suppressed exceptions and cause: nobody can hang anything on it.
        let blank = kept.as_ref().and_then(|class| jni.allocate(class));
        let copies = Copies::find(jni, file.name, &class);
        let blank = blank.and_then(|blank| blank.global());
        match (constructor, kept, blank, copies) {
            (Some(constructor), Some(class), Some(made_beforehand), Some(copies)) => Ok(Kind {
                copies,
                class,
                constructor,
                made_beforehand,
            }),
            _ => Err(format!("{} cannot be made", file.name.to_string_lossy())),
        }
    }

    fn make<'j>(&self, jni: &'j Jni, figures: &Figures<'_>) -> Option<Local<'j>> {
        let bytes = |bytes: u64| jni::jvalue {
            j: i64::try_from(bytes).unwrap_or(i64::MAX),
        };
        let arguments = [
            jni::jvalue {
                l: figures.account.raw(),
            },
            bytes(figures.live_bytes),
            bytes(figures.limit_bytes),
            bytes(figures.standard_error_bytes),
            bytes(figures.requested_bytes),
        ];
        let error = call!(
            jni,
            NewObjectA,
            self.class.raw(),
            self.constructor as jni::jmethodID,
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: NewObjectA returns a fresh local reference or null.
        unsafe { Local::adopt(jni, error) }.filter(|_| !failed)
    }
}

impl Heap {
    fn find(jni: &Jni, runtime: &Global, max_bytes: u64) -> Option<Heap> {
        let object = runtime.local(jni)?;
        let class = object.class();
        let free = jni.method_id(&class, c"freeMemory", c"()J")?;
        let total = jni.method_id(&class, c"totalMemory", c"()J")?;
        Some(Heap {
            runtime: object.global()?,
            free,
            total,
            max_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX),
        })
    }

    /// What the heap still has, garbage counted as used; 0 where it cannot be read.
    fn room_bytes(&self, jni: &Jni) -> i64 {
        let read = |method: usize| {
            let value = call!(
                jni,
                CallLongMethodA,
                self.runtime.raw(),
                method as jni::jmethodID,
                ptr::null()
            );
            (!jni.clear_exception()).then_some(value)
        };
        match (read(self.total), read(self.free)) {
            (Some(total), Some(free)) => self.max_bytes.saturating_sub(total).saturating_add(free),
            _ => 0,
        }
    }
}

impl Jni {
    /// The class of this name in the boot loader, defined from `file` unless it is there.
    pub(super) fn boot_defined(
        &self,
        tools: &JvmTi,
        file: &ClassFile,
    ) -> Result<Local<'_>, String> {
        if let Some(class) = self.boot_new(file) {
            return Ok(class);
        }
        let name = file.name.to_string_lossy();
        let class = self
            .boot_class(&name)
            .ok_or_else(|| format!("{name} cannot be defined"))?;
        match tools.loader_of(self, &class) {
            Ok(None) => Ok(class),
            Ok(Some(_)) => Err(format!("{name} is another class loader's")),
            Err(failure) => Err(format!("{name} has no loader to be read ({failure})")),
        }
    }

    /// A new class of the boot loader; `None` where it has one of this name, or cannot.
    pub(super) fn boot_new(&self, file: &ClassFile) -> Option<Local<'_>> {
        let size = i32::try_from(file.bytes.len()).unwrap_or(i32::MAX);
        let defined = call!(
            self,
            DefineClass,
            file.name.as_ptr(),
            ptr::null_mut(),
            file.bytes.as_ptr().cast(),
            size
        );
        // It throws where the loader has the class: the API may lie on the boot class path.
        let failed = self.clear_exception();
        // SAFETY: DefineClass returns a fresh local reference or null.
        unsafe { Local::adopt(self, defined) }.filter(|_| !failed)
    }

    /// The id of an instance method or constructor, valid while its class is loaded.
    pub(super) fn method_id(
        &self,
        class: &Local<'_>,
        name: &CStr,
        descriptor: &CStr,
    ) -> Option<usize> {
        let id = call!(
            self,
            GetMethodID,
            class.raw(),
            name.as_ptr(),
            descriptor.as_ptr()
        );
        (!self.clear_exception() && !id.is_null()).then_some(id as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_files_are_of_java_11_and_of_their_names() {
        for file in SHARED.iter().chain(&THROWN) {
            assert_eq!(file.bytes[..8], [0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 55]);
            let name = file.name.to_bytes();
            assert!(
                file.bytes.windows(name.len()).any(|part| part == name),
                "{:?}",
                file.name
            );
        }
    }
}
