//! Native memory that Java code takes from the VM: told to a listener, block by block.
//!
//! All of it passes three native methods of `jdk.internal.misc.Unsafe`: that of direct buffers and of arenas, and what
//! code takes by `sun.misc.Unsafe`. Their functions are replaced by those here, which call the VM's own
//! ([`crate::bound_natives`]) in between. No class is rewritten, and compiled code calls the new functions at once: the
//! VM discards the stubs that called the old ones.
//!
//! A block that native code takes from the C library itself is not seen.

use std::sync::OnceLock;

use jni::objects::JClass;
use jvmti_bindings::sys::jni as sys;

use crate::bound_natives;
use crate::env::Jni;
use crate::guard::{self, Latch};
use crate::kinds::Class;
use crate::methods::MethodId;
use crate::refs::{Handle, Local};

/// The fate of a block that a thread asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is given, and not told of.
    Untold,
    /// It is given, if there is memory, and told of with this word.
    Told(u64),
    /// It is not given: the thread sees what it would see if there was no memory.
    Refused,
}

/// Hears of native memory that Java code takes and gives back. A panic is counted, and the block is not told of.
pub trait NativeMemory: Sync {
    /// A thread of the host asks for a block: its frames are on the stack, the uppermost that of the native method. It may
    /// be made to wait. `is_resized`: it has a block, which is to have this size; that is not to be refused.
    fn asked(&self, jni: &Jni, size_bytes: u64, is_resized: bool) -> Asked;
    /// The VM has given a block, which nobody else knows yet. On the thread that asked.
    fn taken(&self, address: u64, answer: u64);
    /// A block is about to be given back, or to change its size. On any thread, perhaps one of the agent's. Returns the word
    /// that it was taken with, if it was told of; where it stays as it is, that is taken again.
    fn given_back(&self, address: u64, is_resized: bool) -> Option<u64>;
}

type Allocate = unsafe extern "system" fn(*mut sys::JNIEnv, sys::jobject, i64) -> i64;
type Reallocate = unsafe extern "system" fn(*mut sys::JNIEnv, sys::jobject, i64, i64) -> i64;
type Free = unsafe extern "system" fn(*mut sys::JNIEnv, sys::jobject, i64);

/// The VM's own functions, and who is told.
struct Watched {
    allocate: Allocate,
    reallocate: Reallocate,
    free: Free,
    listener: &'static dyn NativeMemory,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// Why native memory cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwatched {
    /// The class does not have the methods.
    #[error("this JDK takes it by other methods")]
    OtherMethods,
    /// Their bindings were not noted, as after an attach.
    #[error("the VM has bound its methods before the agent was loaded")]
    BoundBefore,
    /// The VM refuses to bind them.
    #[error("the VM refuses to bind its methods anew")]
    Refused,
}

const CLASS: &str = "jdk/internal/misc/Unsafe";
const ALLOCATE: (&str, &str) = ("allocateMemory0", "(J)J");
const REALLOCATE: (&str, &str) = ("reallocateMemory0", "(JJ)J");
const FREE: (&str, &str) = ("freeMemory0", "(J)V");

impl Jni {
    /// Tells `listener` of native memory from now on, for as long as the VM lives. [`crate::Event::NativeMethodBind`] must
    /// have been on since before the VM started. To be called in a native method of a class of the boot loader, called
    /// by Java code of the boot loader: the VM prints a warning where other code binds methods of the JDK's. The first
    /// listener stays.
    ///
    /// # Errors
    /// [`Unwatched`]: nothing was changed.
    pub fn watch_native_memory(
        &self,
        listener: &'static dyn NativeMemory,
    ) -> Result<(), Unwatched> {
        let class = self.boot_class(CLASS).ok_or(Unwatched::OtherMethods)?;
        let own = |(name, descriptor)| {
            let method = self
                .method_of(&class, name, descriptor)
                .ok_or(Unwatched::OtherMethods)?;
            bound_natives::function_of(method).ok_or(Unwatched::BoundBefore)
        };
        let (allocate, reallocate, free) = (own(ALLOCATE)?, own(REALLOCATE)?, own(FREE)?);
        // SAFETY: the VM bound these functions to the methods of these names and descriptors, which are instance methods:
        // so they take the environment, the receiver and the arguments of the descriptor, and return its result.
        let watched = unsafe {
            Watched {
                allocate: std::mem::transmute::<*mut _, Allocate>(allocate),
                reallocate: std::mem::transmute::<*mut _, Reallocate>(reallocate),
                free: std::mem::transmute::<*mut _, Free>(free),
                listener,
            }
        };
        // Before a method leads here.
        let _ = WATCHED.set(watched);
        let method =
            |(name, descriptor): (&str, &str), function: *mut std::ffi::c_void| jni::NativeMethod {
                name: name.into(),
                sig: descriptor.into(),
                fn_ptr: function,
            };
        // Frees first: a block that is told of is then always seen to be given back.
        let methods = [
            method(FREE, free_memory as Free as *mut _),
            method(REALLOCATE, reallocate_memory as Reallocate as *mut _),
            method(ALLOCATE, allocate_memory as Allocate as *mut _),
        ];
        let raw = class.raw().0;
        let bound = self.with(|env| {
            // SAFETY: `class` is a live reference to a class; the object does not own it. The functions take and return
            // what the descriptors say, as instance methods.
            let class = unsafe { JClass::from_raw(raw.cast()) };
            env.register_native_methods(&class, &methods)
        });
        bound.ok_or(Unwatched::Refused)
    }

    fn method_of(
        &self,
        class: &Local<'_, Class>,
        name: &str,
        descriptor: &str,
    ) -> Option<MethodId> {
        let raw = class.raw().0;
        self.with(|env| {
            // SAFETY: `class` is a live reference to a class; the object does not own it.
            let class = unsafe { JClass::from_raw(raw.cast()) };
            let id = env.get_method_id(&class, name, descriptor)?;
            Ok(MethodId(id.into_raw() as usize))
        })
    }
}

/// Asks the listener on a thread of the host. The latch is released before the VM's function runs: that may
/// throw, which allocates.
fn ask(watched: &Watched, env: *mut sys::JNIEnv, size_bytes: i64, is_resized: bool) -> Asked {
    let asked = guard::contain(|| {
        let _latch = Latch::enter()?;
        // SAFETY: the VM passes a native method its thread's environment, which is used in this call alone.
        let jni = unsafe { Jni::from_raw(env) };
        Some(watched.listener.asked(&jni, size_bytes as u64, is_resized))
    });
    asked.flatten().unwrap_or(Asked::Untold)
}

fn tell_taken(watched: &Watched, address: i64, word: Option<u64>) {
    if let (Some(word), true) = (word, address != 0) {
        guard::contain(|| watched.listener.taken(address as u64, word));
    }
}

fn tell_given_back(watched: &Watched, address: i64, is_resized: bool) -> Option<u64> {
    guard::contain(|| watched.listener.given_back(address as u64, is_resized)).flatten()
}

unsafe extern "system" fn allocate_memory(
    env: *mut sys::JNIEnv,
    on: sys::jobject,
    size_bytes: i64,
) -> i64 {
    let Some(watched) = WATCHED.get() else {
        // Nothing is bound to this before it is set. As if the system had no memory: the caller throws.
        return 0;
    };
    let word = match ask(watched, env, size_bytes, false) {
        Asked::Refused => return 0,
        Asked::Told(word) => Some(word),
        Asked::Untold => None,
    };
    // SAFETY: the VM's own function, with what the VM has passed.
    let address = unsafe { (watched.allocate)(env, on, size_bytes) };
    tell_taken(watched, address, word);
    address
}

unsafe extern "system" fn reallocate_memory(
    env: *mut sys::JNIEnv,
    on: sys::jobject,
    address: i64,
    size_bytes: i64,
) -> i64 {
    let Some(watched) = WATCHED.get() else {
        return 0;
    };
    let asked = ask(watched, env, size_bytes, true);
    // Before another thread may get this address.
    let before = tell_given_back(watched, address, true);
    // SAFETY: as in `allocate_memory`.
    let moved = unsafe { (watched.reallocate)(env, on, address, size_bytes) };
    match (moved, asked) {
        // It stays where it is.
        (0, _) => tell_taken(watched, address, before),
        (moved, Asked::Told(word)) => tell_taken(watched, moved, Some(word)),
        (_, Asked::Untold | Asked::Refused) => {}
    }
    moved
}

unsafe extern "system" fn free_memory(env: *mut sys::JNIEnv, on: sys::jobject, address: i64) {
    if let Some(watched) = WATCHED.get() {
        // Before another thread may get this address.
        tell_given_back(watched, address, false);
        // SAFETY: as in `allocate_memory`.
        unsafe { (watched.free)(env, on, address) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Mutex;

    /// Blocks as the functions of the VM hand them out, in a test.
    static NEXT: Mutex<i64> = Mutex::new(0x1000);

    unsafe extern "system" fn allocate(_: *mut sys::JNIEnv, _: sys::jobject, size: i64) -> i64 {
        let mut next = NEXT.lock().expect("no panic");
        *next += 16;
        if size > 1_000_000 { 0 } else { *next }
    }

    unsafe extern "system" fn reallocate(
        env: *mut sys::JNIEnv,
        on: sys::jobject,
        _: i64,
        size: i64,
    ) -> i64 {
        // SAFETY: it uses neither pointer.
        unsafe { allocate(env, on, size) }
    }

    unsafe extern "system" fn free(_: *mut sys::JNIEnv, _: sys::jobject, _: i64) {}

    #[derive(Default)]
    struct Listener(Mutex<HashMap<u64, u64>>);

    impl NativeMemory for Listener {
        fn asked(&self, _: &Jni, size_bytes: u64, is_resized: bool) -> Asked {
            assert_ne!(size_bytes, 666, "inside a native method");
            match size_bytes {
                0..=10 => Asked::Untold,
                777 if !is_resized => Asked::Refused,
                told => Asked::Told(told),
            }
        }

        fn taken(&self, address: u64, answer: u64) {
            let known = self.0.lock().expect("no panic").insert(address, answer);
            assert_eq!(known, None, "an address is live once");
        }

        fn given_back(&self, address: u64, _: bool) -> Option<u64> {
            self.0.lock().expect("no panic").remove(&address)
        }
    }

    #[test]
    fn blocks_are_told_of_from_when_they_are_taken_to_when_they_are_given_back() {
        let listener: &'static Listener = Box::leak(Box::default());
        let watched = Watched {
            allocate,
            reallocate,
            free,
            listener,
        };
        assert!(WATCHED.set(watched).is_ok());
        let nothing = std::ptr::null_mut();
        // SAFETY: neither the functions above nor the listener use the pointers.
        let take = |size| unsafe { allocate_memory(nothing, nothing.cast(), size) };
        // SAFETY: as above.
        let resize = |at, size| unsafe { reallocate_memory(nothing, nothing.cast(), at, size) };
        // SAFETY: as above.
        let free = |at| unsafe { free_memory(nothing, nothing.cast(), at) };
        let known = || {
            let known = listener.0.lock().expect("no panic");
            let mut known: Vec<u64> = known.values().copied().collect();
            known.sort_unstable();
            known
        };
        let first = take(100);
        assert_ne!(take(5), 0, "given, and not told of");
        assert_eq!(take(2_000_000), 0, "there is no memory");
        assert_ne!(take(666), 0, "a panic costs nobody a block");
        assert_eq!(take(777), 0, "refused");
        assert_eq!(known(), [100]);
        let moved = resize(first, 300);
        assert_eq!(known(), [300]);
        assert_eq!(resize(moved, 3_000_000), 0);
        assert_eq!(known(), [300], "it is where it was");
        free(first);
        assert_eq!(known(), [300], "unknown by now");
        let untold = take(5);
        assert_ne!(resize(untold, 40), 0);
        assert_eq!(known(), [40, 300], "told of from its new size on");
        let second = take(20);
        free(moved);
        free(second);
        assert_eq!(known(), [40]);
    }
}
