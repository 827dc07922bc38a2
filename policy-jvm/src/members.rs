//! Members looked up by name at each use, through the crate `jni`. Not on an allocating thread.

use jni::objects::{JClass, JObject};

use crate::env::{Jni, call};
use crate::jvmti::JvmTi;
use crate::kinds::{Anything, Array, Class};
use crate::refs::{Handle, Local, Ref};

impl Jni {
    /// Calls a static method without arguments that returns an object. `None` if there is none,
    /// or if it throws or returns null. Runs Java code.
    pub fn static_object(
        &self,
        class: &Ref<'_, Class>,
        name: &str,
        descriptor: &str,
    ) -> Option<Local<'_>> {
        let raw = class.raw().0;
        self.with_object(|env| {
            // SAFETY: `class` is a live reference to a class; the object does not own it.
            let class = unsafe { JClass::from_raw(raw.cast()) };
            env.call_static_method(&class, name, descriptor, &[])?.l()
        })
    }

    /// Calls a method without arguments that returns a `long`; `None` if there is none or it
    /// throws. Runs Java code.
    pub fn call_long<T>(&self, object: &Ref<'_, T>, name: &str) -> Option<i64> {
        let raw = object.raw().0;
        self.with(|env| {
            // SAFETY: `object` is a live reference; the object made of it does not own it.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.call_method(&object, name, "()J", &[])?.j()
        })
    }

    /// Calls a method without arguments that returns nothing; false if there is none or it
    /// throws. Runs Java code.
    pub fn call_void<T>(&self, object: &Ref<'_, T>, name: &str) -> bool {
        let raw = object.raw().0;
        let done = self.with(|env| {
            // SAFETY: as in `Jni::call_long`.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.call_method(&object, name, "()V", &[])?.v()
        });
        done.is_some()
    }
}

impl<'j, T> Ref<'j, T> {
    /// The object in the field of this name and descriptor, found through its class.
    pub fn get_named(&self, name: &str, descriptor: &str) -> Option<Local<'j>> {
        let raw = self.raw().0;
        self.jni().with_object(|env| {
            // SAFETY: this is a live reference; the object made of it does not own it.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.get_field(&object, name, descriptor)?.l()
        })
    }

    /// The number in the `int` field of this name, found through its class; `None` if there is none.
    pub fn int_named(&self, name: &str) -> Option<i32> {
        let raw = self.raw().0;
        self.jni().with(|env| {
            // SAFETY: as in `Ref::get_named`.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.get_field(&object, name, "I")?.i()
        })
    }

    /// The number in the `long` field of this name, found through its class; `None` if there is none.
    pub fn long_named(&self, name: &str) -> Option<i64> {
        let raw = self.raw().0;
        self.jni().with(|env| {
            // SAFETY: as in `Ref::get_named`.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.get_field(&object, name, "J")?.j()
        })
    }

    /// The value of the `boolean` field of this name, found through its class; `None` if there is none.
    pub fn boolean_named(&self, name: &str) -> Option<bool> {
        let raw = self.raw().0;
        self.jni().with(|env| {
            // SAFETY: as in `Ref::get_named`.
            let object = unsafe { JObject::from_raw(raw.cast()) };
            env.get_field(&object, name, "Z")?.z()
        })
    }

    /// Calls a getter (no arguments, returns an object), whatever its declared return type, found by name
    /// along the super classes. Exceptions are swallowed.
    ///
    /// Runs Java code, but only if `trusted` accepts the class that declares the method.
    pub fn getter(
        &self,
        tools: &JvmTi,
        name: &str,
        trusted: impl Fn(&Local<'j, Class>) -> bool,
    ) -> Option<Local<'j>> {
        self.call_getter(tools, name, "()L", trusted)
    }

    /// As [`Ref::getter`], for one that returns an array of objects.
    pub fn array_getter(
        &self,
        tools: &JvmTi,
        name: &str,
        trusted: impl Fn(&Local<'j, Class>) -> bool,
    ) -> Option<Local<'j, Array<Anything>>> {
        self.call_getter(tools, name, "()[L", trusted)
    }

    /// The descriptor of the method begins with `descriptor`, and so it returns a reference of the type `U`.
    fn call_getter<U>(
        &self,
        tools: &JvmTi,
        name: &str,
        descriptor: &str,
        trusted: impl Fn(&Local<'j, Class>) -> bool,
    ) -> Option<Local<'j, U>> {
        let mut class = Some(self.class());
        while let Some(current) = class {
            let found = tools
                .instance_methods(&current)
                .into_iter()
                .find(|method| method.name == name && method.descriptor.starts_with(descriptor));
            if let Some(method) = found {
                if !trusted(&current) {
                    return None;
                }
                let value = call!(
                    self.jni(),
                    CallObjectMethodA,
                    self.raw().0,
                    method.id,
                    std::ptr::null()
                );
                let failed = self.jni().clear_exception();
                // SAFETY: a call that did not throw returns a fresh local reference of the method's type or null.
                return unsafe { Local::adopt(self.jni(), value) }.filter(|_| !failed);
            }
            class = current.super_class();
        }
        None
    }
}
