//! Weak references to Java objects, and their way from one thread to another.

use jvmti_bindings::sys::jni;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::java::{Jni, Local, call};

/// A weak global reference. Must be given back through [`Jni::release`].
pub(crate) struct Weak {
    raw: jni::jweak,
}

// SAFETY: JNI weak global references are valid on every thread of their VM.
unsafe impl Send for Weak {}
// SAFETY: as above; the reference itself is never changed.
unsafe impl Sync for Weak {}

impl Weak {
    /// # Safety
    /// `object` must be a valid, non-null reference on the calling thread.
    pub(crate) unsafe fn to(jni: &Jni, object: jni::jobject) -> Option<Weak> {
        let raw = call!(jni, NewWeakGlobalRef, object);
        if jni.clear_exception() || raw.is_null() {
            return None;
        }
        Some(Weak { raw })
    }

    /// The object, while it is alive. Under a concurrent collector this keeps it alive until
    /// the next cycle: not to be done often.
    pub(crate) fn upgrade<'j>(&self, jni: &'j Jni) -> Option<Local<'j>> {
        let raw = call!(jni, NewLocalRef, self.raw);
        // SAFETY: NewLocalRef returns a fresh local reference, or null for a dead referent.
        unsafe { Local::adopt(jni, raw) }
    }
}

impl Jni {
    /// Whether the object of a weak reference is gone. Keeps nothing alive.
    pub(crate) fn is_cleared(&self, weak: &Weak) -> bool {
        call!(self, IsSameObject, weak.raw, ptr::null_mut()) != 0
    }

    /// Deletes a weak reference that is no longer needed.
    pub(crate) fn release(&self, weak: Weak) {
        call!(self, DeleteWeakGlobalRef, weak.raw);
    }
}

/// Room for a weak reference that one thread leaves to another: an atomic word. What is still in
/// it when it is dropped stays the VM's.
#[derive(Debug, Default)]
pub(crate) struct WeakSlot {
    raw: AtomicPtr<std::ffi::c_void>,
}

impl WeakSlot {
    /// Leaves a reference; there must be none.
    pub(crate) fn put(&self, weak: Weak) {
        self.raw.store(weak.raw.cast(), Ordering::Release);
    }

    /// Takes the reference. Of several that try, one has it.
    pub(crate) fn take(&self) -> Option<Weak> {
        let raw: jni::jweak = self.raw.swap(ptr::null_mut(), Ordering::AcqRel).cast();
        (!raw.is_null()).then_some(Weak { raw })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.load(Ordering::Relaxed).is_null()
    }
}
