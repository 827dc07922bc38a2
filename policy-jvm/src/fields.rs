//! Fields of classes known at compile time, and of classes found at run time.

use std::marker::PhantomData;

use jvmti_bindings::sys::jni as sys;

use crate::calls::{RawValue, Value};
use crate::env::{Jni, call};
use crate::jvmti::JvmTi;
use crate::kinds::{Class, JavaClass, JavaType};
use crate::refs::{Global, Handle, Local, Ref};
use crate::weak::Weak;

/// The class that a kind names: the one of the boot loader, which is never unloaded.
#[derive(Debug)]
pub struct KnownClass<C> {
    class: Global<Class>,
    kind: PhantomData<fn() -> C>,
}

impl<'j, T> Ref<'j, T> {
    /// This object as an instance of `class`; `None` if it is none. One call to the VM.
    pub fn as_a<U: JavaClass>(&self, class: &KnownClass<U>) -> Option<&Ref<'j, U>> {
        if !self.is_a(class.class()) {
            return None;
        }
        // SAFETY: the two types have one layout (`repr(C)`, and the kind takes no room), and the object
        // is a `U`, as the VM has just said.
        Some(unsafe { &*(&raw const *self).cast::<Ref<'j, U>>() })
    }
}

impl<'j, T> Local<'j, T> {
    /// This object as an instance of `class`; `None` if it is none. One call to the VM.
    pub fn into_a<U: JavaClass>(self, class: &KnownClass<U>) -> Option<Local<'j, U>> {
        self.is_a(class.class()).then(|| self.retyped())
    }
}

impl<C: JavaClass> KnownClass<C> {
    /// This class as the one that `C` names; `None` if its name or its loader is another.
    pub fn of(tools: &JvmTi, class: &Ref<'_, Class>) -> Option<KnownClass<C>> {
        let is_boot = tools.loader_of(class.jni(), class).ok()?.is_none();
        let is_named = tools.signature_of(class).ok()? == C::descriptor();
        if !is_boot || !is_named {
            return None;
        }
        KnownClass::from_class(class)
    }

    fn from_class(class: &Ref<'_, Class>) -> Option<KnownClass<C>> {
        Some(KnownClass {
            class: class.global()?,
            kind: PhantomData,
        })
    }

    /// The class itself.
    pub fn class(&self) -> &Global<Class> {
        &self.class
    }

    /// An instance field of a reference type; `None` if the class declares none like that.
    pub fn field<V: JavaType>(&self, jni: &Jni, name: &str) -> Option<Field<C, V>> {
        let class = self.class.local(jni)?;
        field_id(&class, name, &V::descriptor()).map(|id| Field {
            id,
            kinds: PhantomData,
        })
    }

    /// An instance field of type `int`; `None` if the class has none of this name.
    pub fn int_field(&self, jni: &Jni, name: &str) -> Option<IntField<C>> {
        let (id, kind) = (self.primitive_id(jni, name, "I")?, PhantomData);
        Some(IntField { id, kind })
    }

    /// An instance field of type `long`; `None` if the class has none of this name.
    pub fn long_field(&self, jni: &Jni, name: &str) -> Option<LongField<C>> {
        let (id, kind) = (self.primitive_id(jni, name, "J")?, PhantomData);
        Some(LongField { id, kind })
    }

    /// An instance field of type `boolean`; `None` if the class has none of this name.
    pub fn boolean_field(&self, jni: &Jni, name: &str) -> Option<BooleanField<C>> {
        let (id, kind) = (self.primitive_id(jni, name, "Z")?, PhantomData);
        Some(BooleanField { id, kind })
    }

    fn primitive_id(&self, jni: &Jni, name: &str, descriptor: &str) -> Option<usize> {
        field_id(&*self.class.local(jni)?, name, descriptor)
    }
}

/// The id of an instance field; it is valid while its class is loaded.
pub(crate) fn field_id(class: &Ref<'_, Class>, name: &str, descriptor: &str) -> Option<usize> {
    let raw = class.raw().0;
    class.jni().with(|env| {
        // SAFETY: `class` is a live reference to a class; the object does not own it.
        let class = unsafe { jni::objects::JClass::from_raw(raw.cast()) };
        Ok(env.get_field_id(&class, name, descriptor)?.into_raw() as usize)
    })
}

/// An instance field of `C` that holds a `V`.
pub struct Field<C, V> {
    id: usize,
    kinds: PhantomData<fn(C) -> V>,
}

impl<C, V> Clone for Field<C, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, V> Copy for Field<C, V> {}

/// Declares the fields of a primitive type.
macro_rules! primitive_field {
    ($name:ident, $words:literal) => {
        #[doc = $words]
        pub struct $name<C> {
            id: usize,
            kind: PhantomData<fn(C)>,
        }

        impl<C> Clone for $name<C> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<C> Copy for $name<C> {}
    };
}

primitive_field!(IntField, "An `int` field of `C`.");
primitive_field!(LongField, "A `long` field of `C`.");
primitive_field!(BooleanField, "A `boolean` field of `C`.");

impl<'j, C> Ref<'j, C> {
    /// The object in a field of this object; `None` for null. One call; any thread.
    pub fn get<V>(&self, field: Field<C, V>) -> Option<Local<'j, V>> {
        let value = call!(
            self.jni(),
            GetObjectField,
            self.raw().0,
            field.id as sys::jfieldID
        );
        // SAFETY: GetObjectField returns a fresh local reference or null. The object is a `C`, whose field
        // the id was found as, by the type that it is declared with; classes of the boot loader are not
        // unloaded.
        unsafe { Local::adopt(self.jni(), value) }
    }

    /// The number in an `int` field of this object. One call; any thread.
    pub fn int(&self, field: IntField<C>) -> i32 {
        call!(
            self.jni(),
            GetIntField,
            self.raw().0,
            field.id as sys::jfieldID
        )
    }

    /// The number in a `long` field of this object. One call; any thread.
    pub fn long(&self, field: LongField<C>) -> i64 {
        call!(
            self.jni(),
            GetLongField,
            self.raw().0,
            field.id as sys::jfieldID
        )
    }

    /// The value of a `boolean` field of this object. One call; any thread.
    pub fn boolean(&self, field: BooleanField<C>) -> bool {
        let value = call!(
            self.jni(),
            GetBooleanField,
            self.raw().0,
            field.id as sys::jfieldID
        );
        value != 0
    }
}

/// A static field of a reference type; holds its class.
#[derive(Debug)]
pub struct StaticField {
    class: Global<Class>,
    id: usize,
}

impl StaticField {
    /// The object in the field; `None` for null. One call; any thread.
    pub fn value<'j>(&self, jni: &'j Jni) -> Option<Local<'j>> {
        let id = self.id as sys::jfieldID;
        let value = call!(jni, GetStaticObjectField, self.class.raw().0, id);
        // SAFETY: GetStaticObjectField returns a fresh local reference or null; the id is of this class,
        // found with the descriptor of a reference type.
        unsafe { Local::adopt(jni, value) }
    }
}

impl Jni {
    /// A class of the JDK in a package below `java`, which no other loader may define classes in. Runs
    /// Java code where it is not loaded.
    pub fn java_class<C: JavaClass>(&self) -> Option<KnownClass<C>> {
        if !C::NAME.starts_with("java/") {
            return None;
        }
        KnownClass::from_class(&*self.boot_class(C::NAME)?)
    }

    /// A static field of a reference type, whose class is initialised by this; `None` where there is none
    /// of this name and descriptor.
    pub fn static_field(
        &self,
        class: &Ref<'_, Class>,
        name: &str,
        descriptor: &str,
    ) -> Option<StaticField> {
        if !descriptor.starts_with(['L', '[']) {
            return None;
        }
        let raw = class.raw().0;
        let id = self.with(|env| {
            // SAFETY: `class` is a live reference to a class; the object does not own it.
            let class = unsafe { jni::objects::JClass::from_raw(raw.cast()) };
            Ok(env
                .get_static_field_id(&class, name, descriptor)?
                .into_raw() as usize)
        })?;
        Some(StaticField {
            class: class.global()?,
            id,
        })
    }
}

/// Fields of a class found at run time, to be set. Does not keep the class loaded.
#[derive(Debug)]
pub struct ClassFields<const N: usize> {
    class: Weak<Class>,
    fields: [(usize, &'static str); N],
}

impl<const N: usize> ClassFields<N> {
    /// Looks up the fields of these names and descriptors; `None` if one is missing.
    pub fn find(
        class: &Ref<'_, Class>,
        named: [(&'static str, &'static str); N],
    ) -> Option<ClassFields<N>> {
        let mut fields = [(0, ""); N];
        for (field, (name, descriptor)) in fields.iter_mut().zip(named) {
            *field = (field_id(class, name, descriptor)?, descriptor);
        }
        Some(ClassFields {
            class: class.weak()?,
            fields,
        })
    }

    /// Sets all fields in `object`, in the order in which they were looked up. If `object` is not an
    /// instance of the class, or a value does not match its field, sets nothing and returns false.
    pub fn set(&self, object: &Ref<'_>, values: [Value<'_>; N]) -> bool {
        let jni = object.jni();
        let are_of_their_types = self
            .fields
            .iter()
            .zip(&values)
            .all(|((_, descriptor), value)| value.fits(descriptor));
        let is_instance = (self.class.upgrade(jni)).is_some_and(|class| object.is_a(&class));
        if !is_instance || !are_of_their_types {
            return false;
        }
        let object = object.raw().0;
        for ((id, _), value) in self.fields.iter().zip(values) {
            let id = *id as sys::jfieldID;
            match value.raw {
                RawValue::Int(number) => call!(jni, SetIntField, object, id, number),
                RawValue::Long(number) => call!(jni, SetLongField, object, id, number),
                RawValue::Object(_, raw) => call!(jni, SetObjectField, object, id, raw),
            }
        }
        true
    }
}
