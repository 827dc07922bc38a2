//! Java classes as Rust types: the kind of object that a reference refers to.

use std::marker::PhantomData;

/// A class of the boot loader, by its internal name.
///
/// Declaring a kind is safe, because it only names a class. A reference gets this kind only if the VM
/// has told the class of the object, or a cast has checked it.
pub trait JavaClass {
    /// As in `java/lang/Object`.
    const NAME: &'static str;
}

mod sealed {
    /// Kept by this crate: a wrong descriptor would make the VM read invalid memory.
    pub trait Sealed {}
}

/// A type that a field, an argument or a result can be declared with: a class or an array.
pub trait JavaType: sealed::Sealed {
    /// Appends the type's descriptor, as in `Ljava/lang/Object;`.
    fn describe(descriptor: &mut String);

    /// The type's descriptor.
    fn descriptor() -> String {
        let mut descriptor = String::new();
        Self::describe(&mut descriptor);
        descriptor
    }
}

impl<C: JavaClass> sealed::Sealed for C {}

impl<C: JavaClass> JavaType for C {
    fn describe(descriptor: &mut String) {
        descriptor.extend(["L", C::NAME, ";"]);
    }
}

/// An array of references.
#[derive(Debug)]
pub struct Array<T>(PhantomData<T>);

impl<T: JavaType> sealed::Sealed for Array<T> {}

impl<T: JavaType> JavaType for Array<T> {
    fn describe(descriptor: &mut String) {
        descriptor.push('[');
        T::describe(descriptor);
    }
}

/// An array of `long`.
#[derive(Debug)]
pub struct LongArray;

impl sealed::Sealed for LongArray {}

impl JavaType for LongArray {
    fn describe(descriptor: &mut String) {
        descriptor.push_str("[J");
    }
}

/// Declares kinds.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $kind;

        impl JavaClass for $kind {
            const NAME: &'static str = $name;
        }
    )*};
}

kinds! {
    /// Any object: `java.lang.Object`.
    Anything = "java/lang/Object",
    /// `java.lang.Class`.
    Class = "java/lang/Class",
    /// `java.lang.ClassLoader`.
    ClassLoader = "java/lang/ClassLoader",
    /// `java.lang.Runnable`.
    Runnable = "java/lang/Runnable",
    /// `java.lang.String`.
    JavaString = "java/lang/String",
    /// `java.lang.Thread`.
    Thread = "java/lang/Thread",
    /// The part of a platform thread, from JDK 19 on: `java.lang.Thread$FieldHolder`.
    ThreadFieldHolder = "java/lang/Thread$FieldHolder",
    /// `java.lang.Throwable`.
    Throwable = "java/lang/Throwable",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_those_of_class_files() {
        assert_eq!(Thread::descriptor(), "Ljava/lang/Thread;");
        assert_eq!(Array::<Anything>::descriptor(), "[Ljava/lang/Object;");
        assert_eq!(Array::<Array<Class>>::descriptor(), "[[Ljava/lang/Class;");
        assert_eq!(Array::<LongArray>::descriptor(), "[[J");
    }
}
