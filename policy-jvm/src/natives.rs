//! Native methods of Java classes: safe functions, called through trampolines.
//!
//! The descriptor of a method follows from the types of its function, so the two cannot differ. The VM
//! checks at binding whether the Java class has such a method.

use std::ffi::c_void;
use std::marker::PhantomData;

use jni::objects::JClass;
use jvmti_bindings::sys::jni as sys;

use crate::env::Jni;
use crate::guard;
use crate::kinds::{Class, JavaType};
use crate::refs::{Handle, Local, Ref};

mod sealed {
    /// Kept by this crate: a wrong descriptor would make the VM pass other types.
    pub trait Sealed {}

    impl Sealed for bool {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for () {}
    impl<T: crate::kinds::JavaType> Sealed for T {}
}

/// A type of argument: `bool`, `i32`, `i64`, or what a reference is declared as.
pub trait NativeArgument: sealed::Sealed {
    /// The form in which the VM passes it.
    #[doc(hidden)]
    type Raw;
    /// The form in which the function gets it: the number, or a reference unless it is null.
    type Given<'a>;

    #[doc(hidden)]
    fn describe(descriptor: &mut String);

    /// # Safety
    /// `raw` must be what the VM passed for an argument of this type.
    #[doc(hidden)]
    unsafe fn given(jni: &Jni, raw: Self::Raw) -> Self::Given<'_>;
}

/// A type of result: `()`, `bool`, `i32`, or what a reference is declared as.
pub trait NativeReturn: sealed::Sealed {
    /// The form in which the VM takes it.
    #[doc(hidden)]
    type Raw;
    /// The form in which the function returns it: the number, or a reference, or `None` for null.
    type Given<'a>;

    #[doc(hidden)]
    fn describe(descriptor: &mut String);

    #[doc(hidden)]
    fn raw(given: Self::Given<'_>) -> Self::Raw;

    /// The result if the function panics: nothing, false, 0 or null.
    #[doc(hidden)]
    fn nothing() -> Self::Raw;
}

/// Numbers.
macro_rules! numbers {
    ($($number:ty, $raw:ty, $descriptor:literal, $of:expr, $to:expr;)*) => {$(
        impl NativeArgument for $number {
            type Raw = $raw;
            type Given<'a> = $number;

            fn describe(descriptor: &mut String) {
                descriptor.push_str($descriptor);
            }

            unsafe fn given(_: &Jni, raw: $raw) -> $number {
                let of: fn($raw) -> $number = $of;
                of(raw)
            }
        }

        impl NativeReturn for $number {
            type Raw = $raw;
            type Given<'a> = $number;

            fn describe(descriptor: &mut String) {
                descriptor.push_str($descriptor);
            }

            fn raw(given: $number) -> $raw {
                let to: fn($number) -> $raw = $to;
                to(given)
            }

            fn nothing() -> $raw {
                <$raw>::default()
            }
        }
    )*};
}

numbers! {
    bool, sys::jboolean, "Z", |raw| raw != 0, u8::from;
    i32, i32, "I", |raw| raw, |given| given;
    i64, i64, "J", |raw| raw, |given| given;
}

impl NativeReturn for () {
    type Raw = ();
    type Given<'a> = ();

    fn describe(descriptor: &mut String) {
        descriptor.push('V');
    }

    fn raw((): ()) {}

    fn nothing() {}
}

impl<T: JavaType + 'static> NativeArgument for T {
    type Raw = sys::jobject;
    type Given<'a> = Option<Ref<'a, T>>;

    fn describe(descriptor: &mut String) {
        <T as JavaType>::describe(descriptor);
    }

    unsafe fn given(jni: &Jni, raw: sys::jobject) -> Option<Ref<'_, T>> {
        // SAFETY: the VM passes null or a reference of the declared type, valid in the method.
        unsafe { Ref::borrow(jni, raw) }
    }
}

impl<T: JavaType + 'static> NativeReturn for T {
    type Raw = sys::jobject;
    type Given<'a> = Option<Local<'a, T>>;

    fn describe(descriptor: &mut String) {
        <T as JavaType>::describe(descriptor);
    }

    fn raw(given: Option<Local<'_, T>>) -> sys::jobject {
        // The VM deletes it with the method's frame.
        given.map_or(std::ptr::null_mut(), Local::into_raw)
    }

    fn nothing() -> sys::jobject {
        std::ptr::null_mut()
    }
}

/// A static native method and the function behind it.
pub struct NativeMethod {
    name: &'static str,
    descriptor: String,
    trampoline: *mut c_void,
}

/// A function of size zero, so that a trampoline made for its type needs no pointer to it.
struct Stateless<F>(PhantomData<F>);

impl<F: Copy> Stateless<F> {
    const CHECKED: () = assert!(
        size_of::<F>() == 0,
        "a function's name, not a pointer to one"
    );

    /// # Safety
    /// A value of `F` must have been seen.
    unsafe fn function() -> F {
        let () = Self::CHECKED;
        // SAFETY: a `Copy` type without a size has one value, and such a value was seen, by this
        // function's own contract: reading it anew from nowhere reads nothing.
        unsafe { std::ptr::NonNull::<F>::dangling().read() }
    }
}

/// Methods of so many arguments.
macro_rules! methods {
    ($($make:ident, $count:literal, $($type:ident $value:ident),*;)*) => {$(
        impl NativeMethod {
            #[doc = concat!("A method with ", $count, " as arguments: their types, and that of the result, are to be")]
            /// written out. `function` is called on the thread that called the method, with the environment
            /// of that call; it may wait. After a panic, which is counted, the result is nothing, false, 0 or null.
            pub fn $make<$($type: NativeArgument,)* R: NativeReturn, F>(
                name: &'static str,
                function: F,
            ) -> NativeMethod
            where
                F: for<'a> Fn(&'a Jni $(, $type::Given<'a>)*) -> R::Given<'a> + Copy + 'static,
            {
                unsafe extern "system" fn trampoline<$($type: NativeArgument,)* R: NativeReturn, F>(
                    env: *mut sys::JNIEnv,
                    _: sys::jclass
                    $(, $value: $type::Raw)*
                ) -> R::Raw
                where
                    F: for<'a> Fn(&'a Jni $(, $type::Given<'a>)*) -> R::Given<'a> + Copy + 'static,
                {
                    guard::contain(|| {
                        // SAFETY: `$make` was given one.
                        let function = unsafe { Stateless::<F>::function() };
                        // SAFETY: the VM passes a native method its thread's environment, which is used in
                        // this call alone.
                        let jni = unsafe { Jni::from_raw(env) };
                        // SAFETY: the VM passes arguments of the types that the descriptor was made of.
                        R::raw(function(&jni $(, unsafe { $type::given(&jni, $value) })*))
                    })
                    .unwrap_or_else(R::nothing)
                }
                let _ = function;
                let mut descriptor = String::from("(");
                $(<$type as NativeArgument>::describe(&mut descriptor);)*
                descriptor.push(')');
                <R as NativeReturn>::describe(&mut descriptor);
                NativeMethod {
                    name,
                    descriptor,
                    trampoline: trampoline::<$($type,)* R, F> as *mut c_void,
                }
            }
        }
    )*};
}

methods! {
    of0, "no types", ;
    of1, "one type", A a;
    of2, "two types", A a, B b;
    of3, "three types", A a, B b, C c;
    of4, "four types", A a, B b, C c, D d;
}

impl NativeMethod {
    /// The descriptor of the Java method.
    pub fn descriptor(&self) -> &str {
        &self.descriptor
    }
}

impl Jni {
    /// Binds static native methods to their class; false if it does not have all of them. Not on an
    /// allocating thread.
    pub fn bind(&self, class: &Ref<'_, Class>, methods: &[NativeMethod]) -> bool {
        if !self.are_static(class, methods) {
            return false;
        }
        let raw = class.raw().0;
        let methods: Vec<jni::NativeMethod> = methods
            .iter()
            .map(|method| jni::NativeMethod {
                name: method.name.into(),
                sig: method.descriptor.as_str().into(),
                fn_ptr: method.trampoline,
            })
            .collect();
        let bound = self.with(|env| {
            // SAFETY: `class` is a live reference to a class; the object does not own it. The trampolines
            // take and return what the descriptors say, for static methods, as was asked above.
            let class = unsafe { JClass::from_raw(raw.cast()) };
            env.register_native_methods(&class, &methods)
        });
        bound.is_some()
    }

    /// Whether the class has static methods of these names and descriptors. Initialises it.
    fn are_static(&self, class: &Ref<'_, Class>, methods: &[NativeMethod]) -> bool {
        let raw = class.raw().0;
        methods.iter().all(|method| {
            let found = self.with(|env| {
                // SAFETY: as in `Jni::bind`.
                let class = unsafe { JClass::from_raw(raw.cast()) };
                env.get_static_method_id(&class, method.name, &method.descriptor)
            });
            found.is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Anything, Array, JavaString, LongArray};

    fn three<'a>(
        _: &'a Jni,
        _: Option<Ref<'a>>,
        _: Option<Ref<'a, JavaString>>,
        _: i64,
    ) -> Option<Local<'a, Array<Anything>>> {
        None
    }

    #[test]
    fn descriptors_follow_from_the_types() {
        let method =
            NativeMethod::of3::<Anything, JavaString, i64, Array<Anything>, _>("three", three);
        assert_eq!(
            method.descriptor(),
            "(Ljava/lang/Object;Ljava/lang/String;J)[Ljava/lang/Object;"
        );
        let method = NativeMethod::of2::<i32, bool, LongArray, _>("two", |_, _, _| None);
        assert_eq!(method.descriptor(), "(IZ)[J");
        let method = NativeMethod::of1::<bool, (), _>("one", |_, _| ());
        assert_eq!(method.descriptor(), "(Z)V");
    }

    #[test]
    fn a_panic_in_a_native_method_is_answered_with_nothing() {
        let method = NativeMethod::of1::<i64, i32, _>("one", |_, number| {
            assert!(number < 0, "inside a native method");
            7
        });
        type Trampoline = unsafe extern "system" fn(*mut sys::JNIEnv, sys::jclass, i64) -> i32;
        // SAFETY: it was made of a trampoline of this type.
        let trampoline: Trampoline = unsafe { std::mem::transmute(method.trampoline) };
        // SAFETY: the function does not touch the environment, which is none.
        let called =
            |number| unsafe { trampoline(std::ptr::null_mut(), std::ptr::null_mut(), number) };
        assert_eq!(called(-1), 7);
        let before = guard::panics();
        assert_eq!(called(1), 0);
        assert!(guard::panics() > before);
    }
}
