//! Methods that were looked up beforehand, called with arguments of the types that they declare.
//!
//! These are raw JNI calls, cheap enough for an allocating thread.

use std::marker::PhantomData;

use jvmti_bindings::sys::jni as sys;

use crate::env::{Jni, call};
use crate::kinds::{Class, JavaClass, JavaType};
use crate::refs::{Global, Handle, Local, Ref};

/// The most arguments of a call.
const MAX_ARGUMENTS: usize = 8;

/// An argument, or a value for a field.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    pub(crate) raw: RawValue,
    borrowed: PhantomData<&'a ()>,
}

/// A value and its type.
#[derive(Clone, Copy)]
pub(crate) enum RawValue {
    Int(i32),
    Long(i64),
    /// An instance of the class of this internal name, or null.
    Object(&'static str, sys::jobject),
}

impl<'a> Value<'a> {
    /// An `int`.
    pub fn int(number: i32) -> Value<'a> {
        Value::of(RawValue::Int(number))
    }

    /// A `long`.
    pub fn long(number: i64) -> Value<'a> {
        Value::of(RawValue::Long(number))
    }

    /// An object.
    pub fn object<H: Handle>(object: &'a H) -> Value<'a>
    where
        H::Kind: JavaClass,
    {
        Value::of(RawValue::Object(H::Kind::NAME, object.raw().0))
    }

    /// Null, for a parameter of type `T`.
    pub fn null<T: JavaClass>() -> Value<'a> {
        Value::of(RawValue::Object(T::NAME, std::ptr::null_mut()))
    }

    fn of(raw: RawValue) -> Value<'a> {
        Value {
            raw,
            borrowed: PhantomData,
        }
    }

    /// Takes a descriptor that matches this value off the front of `descriptors`; returns the rest.
    fn first_of<'d>(&self, descriptors: &'d str) -> Option<&'d str> {
        match self.raw {
            RawValue::Int(_) => descriptors.strip_prefix('I'),
            RawValue::Long(_) => descriptors.strip_prefix('J'),
            RawValue::Object(class, _) => descriptors
                .strip_prefix('L')?
                .strip_prefix(class)?
                .strip_prefix(';'),
        }
    }

    /// Whether the value is of the type of a descriptor.
    pub(crate) fn fits(&self, descriptor: &str) -> bool {
        self.first_of(descriptor) == Some("")
    }

    fn raw(&self) -> sys::jvalue {
        match self.raw {
            RawValue::Int(i) => sys::jvalue { i },
            RawValue::Long(j) => sys::jvalue { j },
            RawValue::Object(_, l) => sys::jvalue { l },
        }
    }
}

/// The types in a method's descriptor: those of its parameters, and that of its result.
#[derive(Debug)]
struct Declared {
    parameters: String,
    returns: String,
}

impl Declared {
    fn read(descriptor: &str) -> Option<Declared> {
        let (parameters, returns) = descriptor.strip_prefix('(')?.split_once(')')?;
        Some(Declared {
            parameters: parameters.to_owned(),
            returns: returns.to_owned(),
        })
    }

    /// The arguments in the VM's form; `None` if they do not match the declaration.
    fn arguments(&self, values: &[Value<'_>]) -> Option<[sys::jvalue; MAX_ARGUMENTS]> {
        let mut raw = [sys::jvalue { j: 0 }; MAX_ARGUMENTS];
        let mut rest = self.parameters.as_str();
        for (index, value) in values.iter().enumerate() {
            rest = value.first_of(rest)?;
            *raw.get_mut(index)? = value.raw();
        }
        rest.is_empty().then_some(raw)
    }

    fn returns<R: JavaClass>(&self) -> bool {
        let class = self.returns.strip_prefix('L');
        class.and_then(|class| class.strip_suffix(';')) == Some(R::NAME)
    }
}

/// Runs a call; returns its result, or `None` if it has thrown.
fn unless_thrown<T>(jni: &Jni, result: T) -> Option<T> {
    (!jni.clear_exception()).then_some(result)
}

/// An instance method; keeps the class that it was looked up in loaded. Calls swallow exceptions.
#[derive(Debug)]
pub struct Method {
    class: Global<Class>,
    id: usize,
    declared: Declared,
}

/// A constructor; keeps its class loaded.
#[derive(Debug)]
pub struct Constructor(Method);

/// A static method; keeps its class loaded. Calls swallow exceptions.
#[derive(Debug)]
pub struct StaticMethod(Method);

impl<'j> Ref<'j, Class> {
    /// Looks up an instance method of this class, and initialises the class. `None` if there is none of
    /// this name and descriptor. Not on an allocating thread.
    pub fn method(&self, name: &str, descriptor: &str) -> Option<Method> {
        self.found(name, descriptor, false)
    }

    /// Looks up a constructor of this class, like [`Ref::method`]. The descriptor ends with `V`.
    pub fn constructor(&self, descriptor: &str) -> Option<Constructor> {
        self.found("<init>", descriptor, false).map(Constructor)
    }

    /// Looks up a static method of this class, like [`Ref::method`].
    pub fn static_method(&self, name: &str, descriptor: &str) -> Option<StaticMethod> {
        self.found(name, descriptor, true).map(StaticMethod)
    }

    fn found(&self, name: &str, descriptor: &str, is_static: bool) -> Option<Method> {
        let declared = Declared::read(descriptor)?;
        let raw = self.raw().0;
        let id = self.jni().with(|env| {
            // SAFETY: this is a live reference to a class; the object does not own it.
            let class = unsafe { jni::objects::JClass::from_raw(raw.cast()) };
            Ok(if is_static {
                env.get_static_method_id(&class, name, descriptor)?
                    .into_raw() as usize
            } else {
                env.get_method_id(&class, name, descriptor)?.into_raw() as usize
            })
        })?;
        Some(Method {
            class: self.global()?,
            id,
            declared,
        })
    }
}

impl Method {
    /// Whether both are the same method. A class that does not override a method has that of its super
    /// class.
    pub fn is_same(&self, other: &Method) -> bool {
        self.id == other.id
    }

    fn id(&self) -> sys::jmethodID {
        self.id as sys::jmethodID
    }

    /// Calls the method without arguments and returns its `long`. `None` if it throws, is declared
    /// differently, or `on` is not an instance of its class.
    pub fn long(&self, on: &Ref<'_, impl JavaType>) -> Option<i64> {
        let jni = on.jni();
        let arguments = self.declared.arguments(&[])?;
        if self.declared.returns != "J" || !on.is_a(&self.class) {
            return None;
        }
        let value = call!(
            jni,
            CallLongMethodA,
            on.raw().0,
            self.id(),
            arguments.as_ptr()
        );
        unless_thrown(jni, value)
    }

    /// Calls this class's own method on an instance of the class or a sub class, even if the sub class
    /// overrides it, and returns its object. `None` if that is null, and as for [`Method::long`].
    pub fn own_object<'j, R: JavaType>(
        &self,
        on: &Ref<'j, impl JavaType>,
        values: &[Value<'_>],
    ) -> Option<Local<'j, R>> {
        let jni = on.jni();
        let arguments = self.declared.arguments(values)?;
        if self.declared.returns != R::descriptor() || !on.is_a(&self.class) {
            return None;
        }
        let value = call!(
            jni,
            CallNonvirtualObjectMethodA,
            on.raw().0,
            self.class.raw().0,
            self.id(),
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: a call that did not throw returns a fresh local reference or null, of the type that the
        // method declares.
        unsafe { Local::adopt(jni, value) }.filter(|_| !failed)
    }
}

impl Constructor {
    /// Makes a new object. `None` if the constructor throws or the values do not match its declaration.
    pub fn make<'j>(&self, jni: &'j Jni, values: &[Value<'_>]) -> Option<Local<'j>> {
        let arguments = self.0.declared.arguments(values)?;
        let made = call!(
            jni,
            NewObjectA,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: NewObjectA returns a fresh local reference or null.
        unsafe { Local::adopt(jni, made) }.filter(|_| !failed)
    }

    /// Runs the constructor, without arguments, on an instance of its class or a sub class that was
    /// allocated without a constructor. False if it throws, has parameters, or `on` is no such
    /// instance.
    pub fn run_on(&self, on: &Ref<'_, impl JavaType>) -> bool {
        let jni = on.jni();
        let Some(arguments) = self.0.declared.arguments(&[]) else {
            return false;
        };
        if !on.is_a(&self.0.class) {
            return false;
        }
        call!(
            jni,
            CallNonvirtualVoidMethodA,
            on.raw().0,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        !jni.clear_exception()
    }
}

impl StaticMethod {
    /// Calls the method. False if it throws, does not return `void`, or the values do not match its
    /// declaration.
    pub fn run(&self, jni: &Jni, values: &[Value<'_>]) -> bool {
        let Some(arguments) = self.0.declared.arguments(values) else {
            return false;
        };
        if self.0.declared.returns != "V" {
            return false;
        }
        call!(
            jni,
            CallStaticVoidMethodA,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        !jni.clear_exception()
    }

    /// Calls the method and returns its `boolean`. `None` if it throws, or the method or the values are not
    /// declared so.
    pub fn boolean(&self, jni: &Jni, values: &[Value<'_>]) -> Option<bool> {
        let arguments = self.0.declared.arguments(values)?;
        if self.0.declared.returns != "Z" {
            return None;
        }
        let value = call!(
            jni,
            CallStaticBooleanMethodA,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        unless_thrown(jni, value != 0)
    }

    /// Calls the method and returns its `long`. `None` if it throws, or the method or the values are not
    /// declared so.
    pub fn long(&self, jni: &Jni, values: &[Value<'_>]) -> Option<i64> {
        let arguments = self.0.declared.arguments(values)?;
        if self.0.declared.returns != "J" {
            return None;
        }
        let value = call!(
            jni,
            CallStaticLongMethodA,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        unless_thrown(jni, value)
    }

    /// Calls the method and returns its object. `None` if that is null, or if the method throws or is
    /// declared differently.
    pub fn object<'j, R: JavaClass>(
        &self,
        jni: &'j Jni,
        values: &[Value<'_>],
    ) -> Option<Local<'j, R>> {
        let arguments = self.0.declared.arguments(values)?;
        if !self.0.declared.returns::<R>() {
            return None;
        }
        let value = call!(
            jni,
            CallStaticObjectMethodA,
            self.0.class.raw().0,
            self.0.id(),
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: a call that did not throw returns a fresh local reference or null, of the type that the
        // method declares.
        unsafe { Local::adopt(jni, value) }.filter(|_| !failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Anything, JavaString};

    #[test]
    fn arguments_are_what_the_descriptor_declares_or_nothing_is_called() {
        let declared = Declared::read("(Ljava/lang/String;IJ)V").unwrap();
        let text = Value::null::<JavaString>();
        let other = Value::null::<Anything>();
        let (int, long) = (Value::int(1), Value::long(2));
        assert!(declared.arguments(&[text, int, long]).is_some());
        for wrong in [
            &[text, int][..],
            &[text, int, long, long],
            &[text, long, int],
            &[other, int, long],
            &[int, text, long],
            &[],
        ] {
            assert!(declared.arguments(wrong).is_none());
        }
        let none = Declared::read("()Ljava/lang/Class;").unwrap();
        assert!(none.arguments(&[]).is_some());
        assert!(none.returns::<Class>() && !none.returns::<Anything>());
        assert!(Declared::read("no descriptor").is_none());
    }

    #[test]
    fn more_arguments_than_there_is_room_for_are_refused() {
        let declared = Declared::read("(JJJJJJJJJ)V").unwrap();
        assert!(declared.arguments(&[Value::long(0); 9]).is_none());
    }

    #[test]
    fn a_value_fits_the_descriptor_of_its_own_type_alone() {
        assert!(Value::long(1).fits("J"));
        assert!(!Value::long(1).fits("I"));
        assert!(Value::null::<JavaString>().fits("Ljava/lang/String;"));
        assert!(!Value::null::<JavaString>().fits("Ljava/lang/StringBuilder;"));
        assert!(!Value::null::<JavaString>().fits("Ljava/lang/String;J"));
    }
}
