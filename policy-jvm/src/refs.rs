//! References to Java objects.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use jvmti_bindings::sys::jni as sys;

use crate::env::{Jni, call};
use crate::kinds::{Anything, Array, Class};

/// A raw reference of the VM; never null. Only this crate can read it.
#[derive(Clone, Copy)]
pub struct Raw(pub(crate) sys::jobject);

pub(crate) mod sealed {
    /// Sealed: an implementation of [`super::Handle`] guarantees a valid raw reference.
    pub trait Sealed {}
}

/// A live reference, of whichever sort, that may be used on the calling thread.
pub trait Handle: sealed::Sealed {
    /// The kind of the object.
    type Kind;

    #[doc(hidden)]
    fn raw(&self) -> Raw;
}

/// A borrowed reference: the VM owns it during a callback, or a [`Local`] does.
///
/// It cannot be copied, sent to another thread, or kept longer than its owner.
#[repr(C)]
pub struct Ref<'j, T = Anything> {
    jni: &'j Jni,
    raw: sys::jobject,
    kind: PhantomData<fn() -> T>,
}

impl<T> sealed::Sealed for Ref<'_, T> {}

impl<T> Handle for Ref<'_, T> {
    type Kind = T;

    fn raw(&self) -> Raw {
        Raw(self.raw)
    }
}

impl<T> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({:p})", self.raw)
    }
}

impl<'j, T> Ref<'j, T> {
    /// A reference that is not owned; `None` for null.
    ///
    /// # Safety
    /// `raw` must be null or a valid reference on this thread for all of `'j`, to a `T`.
    pub(crate) unsafe fn borrow(jni: &'j Jni, raw: sys::jobject) -> Option<Ref<'j, T>> {
        (!raw.is_null()).then_some(Ref {
            jni,
            raw,
            kind: PhantomData,
        })
    }

    pub(crate) fn jni(&self) -> &'j Jni {
        self.jni
    }

    /// The object's class.
    pub fn class(&self) -> Local<'j, Class> {
        let raw = call!(self.jni, GetObjectClass, self.raw);
        // SAFETY: GetObjectClass returns a fresh local reference to a class, never null.
        unsafe { Local::adopt(self.jni, raw) }.expect("every object has a class")
    }

    /// Whether both refer to one object.
    pub fn is_same(&self, other: &impl Handle) -> bool {
        call!(self.jni, IsSameObject, self.raw, other.raw().0) != 0
    }

    /// Whether this object is an instance of `class`.
    pub fn is_a(&self, class: &impl Handle<Kind = Class>) -> bool {
        call!(self.jni, IsInstanceOf, self.raw, class.raw().0) != 0
    }

    /// The same reference, as one to an `Object`.
    pub fn any(&self) -> &Ref<'j> {
        // SAFETY: the two types have one layout (`repr(C)`, and the kind takes no room), and every object is an
        // `Object`.
        unsafe { &*(&raw const *self).cast::<Ref<'j>>() }
    }

    /// A strong global reference. `None` when the VM has no memory for it. Not on an allocating thread.
    pub fn global(&self) -> Option<Global<T>> {
        let raw = self.raw;
        let inner = self.jni.with(|env| {
            // SAFETY: the reference is live by this type's contract; the object does not own it.
            let object = unsafe { jni::objects::JObject::from_raw(raw.cast()) };
            env.new_global_ref(&object)
        })?;
        let raw = inner.as_obj().as_raw().cast();
        (!std::ptr::eq(raw, std::ptr::null_mut())).then_some(Global {
            raw,
            _owned: inner,
            kind: PhantomData,
        })
    }
}

impl<'j> Ref<'j, Class> {
    /// The super class of this class; `None` for `Object` and interfaces.
    pub fn super_class(&self) -> Option<Local<'j, Class>> {
        let raw = call!(self.jni, GetSuperclass, self.raw);
        // SAFETY: GetSuperclass returns a fresh local reference to a class, or null.
        unsafe { Local::adopt(self.jni, raw) }
    }

    /// Whether this class is `class` or one of its super classes or interfaces.
    pub fn is_super_of(&self, class: &impl Handle<Kind = Class>) -> bool {
        call!(self.jni, IsAssignableFrom, class.raw().0, self.raw) != 0
    }
}

impl<'j, T> Ref<'j, Array<T>> {
    /// The length of this array.
    pub fn array_length(&self) -> i32 {
        call!(self.jni, GetArrayLength, self.raw)
    }

    /// An element of this array; `None` if it is null or `index` is out of bounds.
    pub fn element(&self, index: i32) -> Option<Local<'j, T>> {
        let value = call!(self.jni, GetObjectArrayElement, self.raw, index);
        if value.is_null() {
            // Null, or out of bounds, which has thrown.
            self.jni.clear_exception();
        }
        // SAFETY: GetObjectArrayElement returns a fresh local reference or null; the elements of an array
        // are of its component type.
        unsafe { Local::adopt(self.jni, value) }
    }

    /// Puts an object into this array; false if `index` is out of bounds, or the array's
    /// component type is not a class of the object.
    pub fn put(&self, index: i32, object: &impl Handle) -> bool {
        call!(
            self.jni,
            SetObjectArrayElement,
            self.raw,
            index,
            object.raw().0
        );
        !self.jni.clear_exception()
    }
}

/// A local reference of this thread, deleted on drop.
#[derive(Debug)]
pub struct Local<'j, T = Anything>(Ref<'j, T>);

impl<T> sealed::Sealed for Local<'_, T> {}

impl<T> Handle for Local<'_, T> {
    type Kind = T;

    fn raw(&self) -> Raw {
        self.0.raw()
    }
}

impl<'j, T> Deref for Local<'j, T> {
    type Target = Ref<'j, T>;

    fn deref(&self) -> &Ref<'j, T> {
        &self.0
    }
}

impl<'j, T> Local<'j, T> {
    /// Takes ownership of a local reference; `None` for null.
    ///
    /// # Panics
    /// If a frame of local references lies above that of `jni`: the reference would be deleted with it.
    ///
    /// # Safety
    /// `raw` must be null or a local reference of this thread, to a `T`, that nobody else deletes.
    pub(crate) unsafe fn adopt(jni: &'j Jni, raw: sys::jobject) -> Option<Local<'j, T>> {
        assert!(!jni.is_suspended(), "another frame makes references now");
        // SAFETY: by this function's own contract; owned, it is valid until it is dropped.
        unsafe { Ref::borrow(jni, raw) }.map(Local)
    }

    /// The reference, for the VM to own.
    pub(crate) fn into_raw(self) -> sys::jobject {
        let raw = self.0.raw;
        std::mem::forget(self);
        raw
    }

    pub(crate) fn retyped<U>(self) -> Local<'j, U> {
        let jni = self.0.jni;
        Local(Ref {
            jni,
            raw: self.into_raw(),
            kind: PhantomData,
        })
    }

    /// The same reference, as one to an `Object`.
    pub fn upcast(self) -> Local<'j> {
        self.retyped()
    }
}

impl<T> Drop for Local<'_, T> {
    fn drop(&mut self) {
        call!(self.0.jni, DeleteLocalRef, self.0.raw);
    }
}

/// A strong reference, good on every thread, deleted on drop.
///
/// Drop it on an attached thread; another thread is attached for a moment.
#[derive(Debug)]
pub struct Global<T = Anything> {
    raw: sys::jobject,
    _owned: jni::objects::GlobalRef,
    kind: PhantomData<fn() -> T>,
}

// SAFETY: JNI global references are valid on every thread of their VM, and `GlobalRef` itself may be
// sent; `raw` is its reference once more.
unsafe impl<T> Send for Global<T> {}
// SAFETY: as above; the reference itself is never changed.
unsafe impl<T> Sync for Global<T> {}

impl<T> sealed::Sealed for Global<T> {}

impl<T> Handle for Global<T> {
    type Kind = T;

    fn raw(&self) -> Raw {
        Raw(self.raw)
    }
}

impl<T> Global<T> {
    /// The object, as a reference of this thread.
    pub fn local<'j>(&self, jni: &'j Jni) -> Option<Local<'j, T>> {
        let raw = call!(jni, NewLocalRef, self.raw);
        // SAFETY: NewLocalRef returns a fresh local reference to the same object, or null.
        unsafe { Local::adopt(jni, raw) }
    }
}

impl Jni {
    /// Allocates an instance without running a constructor; `None` if there is no memory for it, or
    /// the class cannot have instances. Any thread.
    pub fn allocate(&self, class: &impl Handle<Kind = Class>) -> Option<Local<'_>> {
        let object = call!(self, AllocObject, class.raw().0);
        self.clear_exception();
        // SAFETY: AllocObject returns a fresh local reference or null.
        unsafe { Local::adopt(self, object) }
    }
}
