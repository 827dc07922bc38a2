//! Weak references to Java objects, and a slot to pass one to another thread.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use jvmti_bindings::sys::jni as sys;

use crate::env::{Jni, call};
use crate::kinds::Anything;
use crate::refs::{Handle, Local, Ref};
use crate::threads;

/// A weak global reference, valid on every thread. Dropping it on an attached thread deletes it; on
/// another thread it leaks in the VM.
pub struct Weak<T = Anything> {
    raw: sys::jweak,
    kind: PhantomData<fn() -> T>,
}

// SAFETY: JNI weak global references are valid on every thread of their VM.
unsafe impl<T> Send for Weak<T> {}
// SAFETY: as above; the reference itself is never changed.
unsafe impl<T> Sync for Weak<T> {}

impl<T> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weak({:p})", self.raw)
    }
}

impl<T> Ref<'_, T> {
    /// A weak reference to the same object, good on every thread. `None` when the VM has no memory for
    /// it. Any thread, also an allocating one.
    pub fn weak(&self) -> Option<Weak<T>> {
        Weak::to(self)
    }
}

impl<T> Weak<T> {
    pub(crate) fn to(object: &Ref<'_, T>) -> Option<Weak<T>> {
        let jni = object.jni();
        let raw = call!(jni, NewWeakGlobalRef, object.raw().0);
        if jni.clear_exception() || raw.is_null() {
            return None;
        }
        Some(Weak {
            raw,
            kind: PhantomData,
        })
    }

    /// The object, while it is alive. Under a concurrent collector this keeps it alive until the next
    /// cycle, so do not call it often.
    pub fn upgrade<'j>(&self, jni: &'j Jni) -> Option<Local<'j, T>> {
        let raw = call!(jni, NewLocalRef, self.raw);
        // SAFETY: NewLocalRef returns a fresh local reference, or null for a dead referent.
        unsafe { Local::adopt(jni, raw) }
    }

    /// Whether it is a reference to this object. Keeps nothing alive.
    pub fn refers_to(&self, jni: &Jni, object: &impl Handle) -> bool {
        call!(jni, IsSameObject, self.raw, object.raw().0) != 0
    }

    fn into_raw(self) -> sys::jweak {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }
}

impl<T> Drop for Weak<T> {
    fn drop(&mut self) {
        threads::with_current(|jni| call!(jni, DeleteWeakGlobalRef, self.raw));
    }
}

impl Jni {
    /// Whether the object of a weak reference is gone. Keeps nothing alive.
    pub fn is_cleared<T>(&self, weak: &Weak<T>) -> bool {
        call!(self, IsSameObject, weak.raw, ptr::null_mut()) != 0
    }

    /// Deletes a weak reference. Like dropping it, but without looking up the environment.
    pub fn release<T>(&self, weak: Weak<T>) {
        call!(self, DeleteWeakGlobalRef, weak.into_raw());
    }
}

/// A slot through which one thread passes a weak reference to another: an atomic word. A reference that
/// is still in it when it is dropped leaks in the VM.
#[derive(Debug, Default)]
pub struct WeakSlot {
    raw: AtomicPtr<std::ffi::c_void>,
}

impl WeakSlot {
    /// Stores a reference. A reference that was there before leaks in the VM.
    pub fn put(&self, weak: Weak) {
        self.raw.store(weak.into_raw().cast(), Ordering::Release);
    }

    /// Takes the reference. If several threads try, one gets it.
    pub fn take(&self) -> Option<Weak> {
        let raw: sys::jweak = self.raw.swap(ptr::null_mut(), Ordering::AcqRel).cast();
        (!raw.is_null()).then_some(Weak {
            raw,
            kind: PhantomData,
        })
    }

    /// Whether the slot is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.load(Ordering::Relaxed).is_null()
    }
}
