//! Rewrites the code of loaded classes.
//!
//! JVM TI hands out a class's bytes in the event `ClassFileLoadHook` alone. The event is enabled for all
//! threads, since enabling it for one thread has hung or had no effect, and only while a class is
//! rewritten, or while a [`ClassFiles`] looks at all of them. Meanwhile the VM posts it for every class that
//! any thread loads; the trampoline leaves those calls after one comparison, without a lock or an allocation,
//! unless somebody looks at them.

use std::cell::Cell;
use std::ffi::{c_char, c_uchar};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ::jni::objects::{JObject, JValue};
use jvmti_bindings::sys::{jni, jvmti};

use crate::env::{Jni, call};
use crate::error::JvmTiError;
use crate::guard;
use crate::jvmti::{JvmTi, tools_call};
use crate::kinds::{Anything, Class};
use crate::refs::{Global, Handle, Ref};

/// A call of [`JvmTi::rewrite`] that is under way on a thread.
struct Rewriting<'a> {
    tools: JvmTi,
    class: jni::jclass,
    edit: &'a mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
    /// Whether new bytes were given to the VM, or why they could not be.
    replaced: Result<bool, JvmTiError>,
}

/// Looks at the class file of every class that is loaded, redefined or retransformed.
pub trait ClassFiles: Sync {
    /// Returns the bytes that the VM takes instead, or `None` to leave the class alone. On the thread that
    /// loads the class, which may hold any lock of the program's. `class`: the class whose code is loaded
    /// anew; `None` if a class is loaded, or is in [`JvmTi::rewrite`]. `loader`: `None` is the boot loader.
    ///
    /// Must load no class and call no Java code. A panic is counted and leaves the class alone.
    fn rewritten(
        &self,
        jni: &Jni,
        tools: &JvmTi,
        class: Option<&Ref<'_, Class>>,
        loader: Option<&Ref<'_>>,
        bytes: &[u8],
    ) -> Option<Vec<u8>>;
}

/// Who looks at all class files, once somebody has.
static WATCHER: OnceLock<(JvmTi, &'static dyn ClassFiles)> = OnceLock::new();
/// Whether it looks now.
static WATCHING: AtomicBool = AtomicBool::new(false);
/// Held while the event is needed or switched, so that nobody switches it off under another. The agent's own
/// threads.
static SWITCHING: Mutex<()> = Mutex::new(());

fn switching() -> MutexGuard<'static, ()> {
    SWITCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The call that the calling thread is in; null outside of [`JvmTi::rewrite`].
    static CURRENT: Cell<*mut Rewriting<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Whether the calling thread is in [`JvmTi::rewrite`].
fn is_rewriting() -> bool {
    let current = CURRENT.try_with(Cell::get);
    current.is_ok_and(|current| !current.is_null())
}

/// Keeps [`CURRENT`] set; dropping this clears it.
struct Announced;

impl Announced {
    fn new(rewriting: &mut Rewriting<'_>) -> Announced {
        CURRENT.set(ptr::from_mut(rewriting).cast());
        Announced
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        CURRENT.set(ptr::null_mut());
    }
}

impl JvmTi {
    /// Rewrites a loaded class: `edit` gets the bytes of its class file and returns those to replace
    /// them, or `None` to leave the class alone. The new bytes may change the code of methods only. Calls
    /// that begin afterwards run the new code. Returns whether the class was changed; a class whose new
    /// bytes the VM refuses stays as it was.
    ///
    /// The bytes are those of the class as other agents have left it, or what the VM makes of its own
    /// form of the class. `edit` runs on the calling thread, at most once; a panic in it is counted and
    /// leaves the class alone. Takes milliseconds and stops the world for a moment: on a thread of the
    /// agent. A second thread waits for the first.
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing, the class cannot be linked, or the VM refuses the new
    /// bytes.
    pub fn rewrite(
        &self,
        jni: &Jni,
        class: &Ref<'_, Class>,
        edit: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<bool, JvmTiError> {
        let mut rewriting = Rewriting {
            tools: *self,
            class: class.raw().0,
            edit,
            replaced: Ok(false),
        };
        if !self.link(jni, class) {
            return Err(JvmTiError::CLASS_NOT_PREPARED);
        }
        let switching = switching();
        self.switch_class_file_event(jvmti::JVMTI_ENABLE)?;
        let announced = Announced::new(&mut rewriting);
        let classes = [class.raw().0];
        let done = tools_call!(self, RetransformClasses, 1, classes.as_ptr());
        drop(announced);
        // If this fails, the event goes on in vain: the trampoline does nothing outside of this function.
        if !WATCHING.load(Ordering::Acquire) {
            let _ = self.switch_class_file_event(jvmti::JVMTI_DISABLE);
        }
        drop(switching);
        // Verification may load classes through their loader, whose exceptions are not the caller's.
        jni.clear_exception();
        done?;
        rewriting.replaced
    }

    /// Lets `watcher` look at every class file from now on, or no more. The first watcher stays. Waits for
    /// threads in [`JvmTi::rewrite`].
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn watch_class_files(
        &self,
        watcher: &'static dyn ClassFiles,
        on: bool,
    ) -> Result<(), JvmTiError> {
        let _switching = switching();
        let _ = WATCHER.set((*self, watcher));
        WATCHING.store(on, Ordering::Release);
        self.switch_class_file_event(match on {
            true => jvmti::JVMTI_ENABLE,
            false => jvmti::JVMTI_DISABLE,
        })
    }

    /// Has the VM load the code of these classes anew, from their first class files through every agent's
    /// hook. Stops the world. If the VM refuses one of them, none is changed.
    ///
    /// # Errors
    /// As JVM TI says; [`JvmTiError::CLASS_NOT_PREPARED`] unless all are linked ([`JvmTi::link`]).
    pub fn retransform(&self, jni: &Jni, classes: &[Global<Class>]) -> Result<(), JvmTiError> {
        if !classes.iter().all(|class| self.is_linked(class)) {
            return Err(JvmTiError::CLASS_NOT_PREPARED);
        }
        let raw: Vec<jni::jclass> = classes.iter().map(|class| class.raw().0).collect();
        let count = jni::jint::try_from(raw.len()).map_err(|_| JvmTiError::ILLEGAL_ARGUMENT)?;
        let done = tools_call!(self, RetransformClasses, count, raw.as_ptr());
        jni.clear_exception();
        done
    }

    /// Whether the VM lets the code of a class be changed.
    pub fn is_modifiable(&self, class: &impl Handle<Kind = Class>) -> bool {
        let mut answer = 0;
        tools_call!(self, IsModifiableClass, class.raw().0, &mut answer).is_ok() && answer != 0
    }

    /// Whether a class is linked: verified, and in the form that the VM runs. It stays so. False for arrays.
    pub fn is_linked(&self, class: &impl Handle<Kind = Class>) -> bool {
        let mut status = 0;
        tools_call!(self, GetClassStatus, class.raw().0, &mut status).is_ok()
            && status & jvmti::JVMTI_CLASS_STATUS_PREPARED != 0
    }

    /// Has the VM link a class, without running its code; whether it is linked then. `RetransformClasses` links a
    /// class too, but only after HotSpot has copied its code, and if another thread links it during the copy, what
    /// is copied is half changed and crashes the VM (seen in JDK 21). May load classes, through the class's loader:
    /// on a thread of the agent, which holds no lock.
    pub fn link(&self, jni: &Jni, class: &impl Handle<Kind = Class>) -> bool {
        if self.is_linked(class) {
            return true;
        }
        let raw = class.raw().0;
        // The native half of `Class.getFields`, which links the class first. What Java adds would be kept with the
        // class. Whether it throws does not matter: fields may be of classes that are missing.
        let _ = jni.with(|env| {
            // SAFETY: this is a live reference to a class; the object does not own it.
            let class = unsafe { JObject::from_raw(raw.cast()) };
            let fields = "(Z)[Ljava/lang/reflect/Field;";
            env.call_method(&class, "getDeclaredFields0", fields, &[JValue::Bool(1)])
                .map(drop)
        });
        self.is_linked(class)
    }

    /// How many bytes an object takes in the heap.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn size_of(&self, object: &impl Handle) -> Result<u64, JvmTiError> {
        let mut size: jni::jlong = 0;
        tools_call!(self, GetObjectSize, object.raw().0, &mut size)?;
        Ok(size.max(0) as u64)
    }

    fn switch_class_file_event(&self, mode: jvmti::jvmtiEventMode) -> Result<(), JvmTiError> {
        tools_call!(
            self,
            SetEventNotificationMode,
            mode,
            jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
            ptr::null_mut()
        )
    }

    /// A copy of `bytes` in memory that the VM can take over.
    fn allocated(&self, bytes: &[u8]) -> Result<(jni::jint, *mut c_uchar), JvmTiError> {
        let length = jni::jint::try_from(bytes.len()).map_err(|_| JvmTiError::ILLEGAL_ARGUMENT)?;
        let mut memory = ptr::null_mut();
        tools_call!(self, Allocate, jni::jlong::from(length), &mut memory)?;
        // SAFETY: JVM TI has allocated as many bytes as `bytes` has, for this caller alone.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok((length, memory))
    }
}

/// The trampoline of `ClassFileLoadHook`. It works on classes that the calling thread is rewriting;
/// [`JvmTi::rewrite`] says who replaces the bytes.
pub(crate) unsafe extern "system" fn class_file_loaded(
    _: *mut jvmti::jvmtiEnv,
    env: *mut jni::JNIEnv,
    redefined: jni::jclass,
    loader: jni::jobject,
    _: *const c_char,
    _: jni::jobject,
    length: jni::jint,
    bytes: *const c_uchar,
    new_length: *mut jni::jint,
    new_bytes: *mut *mut c_uchar,
) {
    let watched = WATCHING.load(Ordering::Acquire);
    if redefined.is_null() && !watched {
        // A class is loaded, on whatever thread, perhaps before the VM can serve JNI.
        return;
    }
    let (mut length, mut bytes) = (length, bytes);
    // Kept until the edit below has read it.
    let mut kept = Vec::new();
    if watched && let Some((tools, watcher)) = WATCHER.get() {
        guard::contain(|| {
            let Ok(readable) = usize::try_from(length) else {
                return;
            };
            // SAFETY: the VM passes this thread's environment, which is used in this call alone. It is in the
            // live phase, in which the watching began.
            let jni = unsafe { Jni::from_raw(env) };
            // SAFETY: the event's reference is null or valid in this call, and any object is of this kind.
            let loader = unsafe { Ref::<Anything>::borrow(&jni, loader) };
            let is_rewriting = !redefined.is_null() && is_rewriting();
            let redefined = if is_rewriting {
                ptr::null_mut()
            } else {
                redefined
            };
            // SAFETY: as above; the VM passes a class.
            let class = unsafe { Ref::<Class>::borrow(&jni, redefined) };
            // SAFETY: the VM passes the class file and its length, readable in this call.
            let file = unsafe { std::slice::from_raw_parts(bytes, readable) };
            let edited = watcher.rewritten(&jni, tools, class.as_ref(), loader.as_ref(), file);
            let Some(edited) = edited else {
                return;
            };
            if is_rewriting {
                kept = edited;
            } else if let Ok((new, memory)) = tools.allocated(&edited) {
                // SAFETY: the VM passes where to write both results, and frees the memory itself.
                unsafe {
                    *new_length = new;
                    *new_bytes = memory;
                }
            }
        });
        if let (false, Ok(new)) = (kept.is_empty(), jni::jint::try_from(kept.len())) {
            (length, bytes) = (new, kept.as_ptr());
        }
    }
    if redefined.is_null() {
        return;
    }
    guard::contain(|| {
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null_mut());
        // SAFETY: a pointer that is not null was set by `JvmTi::rewrite` further down on this thread's
        // stack, which clears it before the value ends, and uses the value only after that. The VM does
        // not call this function from within itself: `edit` and `Allocate` load no class.
        let Some(rewriting) = (unsafe { current.as_mut() }) else {
            return;
        };
        // SAFETY: the VM passes this thread's environment, which is used in this call alone.
        let jni = unsafe { Jni::from_raw(env) };
        if call!(&jni, IsSameObject, redefined, rewriting.class) == 0 {
            return;
        }
        let Ok(length) = usize::try_from(length) else {
            return;
        };
        // Once: a panic in `edit` must not leave it half done for another call.
        CURRENT.set(ptr::null_mut());
        // SAFETY: the VM passes the class file and its length, readable in this call.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
        let Some(edited) = (rewriting.edit)(bytes) else {
            return;
        };
        rewriting.replaced = rewriting.tools.allocated(&edited).map(|(length, memory)| {
            // SAFETY: the VM passes where to write both results, and frees the memory itself.
            unsafe {
                *new_length = length;
                *new_bytes = memory;
            }
            true
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls the trampoline as the VM does for a class that is loaded or rewritten.
    fn loaded(redefined: jni::jclass) -> (jni::jint, *mut c_uchar) {
        let (mut new_length, mut new_bytes) = (0, ptr::null_mut());
        // SAFETY: the environment is not touched, since nothing is rewritten on this thread.
        unsafe {
            class_file_loaded(
                ptr::null_mut(),
                ptr::null_mut(),
                redefined,
                ptr::null_mut(),
                ptr::null(),
                ptr::null_mut(),
                4,
                b"\xCA\xFE\xBA\xBE".as_ptr(),
                &mut new_length,
                &mut new_bytes,
            );
        }
        (new_length, new_bytes)
    }

    #[test]
    fn classes_that_this_thread_does_not_rewrite_stay_as_they_are() {
        assert_eq!(loaded(ptr::null_mut()), (0, ptr::null_mut()));
        let another = ptr::without_provenance_mut(8);
        assert_eq!(loaded(another), (0, ptr::null_mut()));
    }

    #[test]
    fn nothing_is_announced_after_a_panic() {
        let gone = guard::contain(|| {
            let mut rewriting = Rewriting {
                // SAFETY: it is not used.
                tools: unsafe { JvmTi::from_raw(ptr::null_mut()) },
                class: ptr::null_mut(),
                edit: &mut |_| None,
                replaced: Ok(false),
            };
            let _announced = Announced::new(&mut rewriting);
            panic!("while a class is rewritten");
        });
        assert!(gone.is_none() && CURRENT.get().is_null());
    }
}
