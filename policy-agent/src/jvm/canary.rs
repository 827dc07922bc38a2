//! Objects that only a collection of old memory frees: see [`crate::ledger::epoch`].

use jvmti_bindings::sys::jni;
use std::ptr;

use super::java::{Global, Jni, Local, call};

/// A class file of Java 8: `final synthetic class java.lang.HeapwardenCanary extends Object`,
/// without members. It has the package of its lookup class, which the VM demands.
const CLASS_FILE: &[u8] = b"\xCA\xFE\xBA\xBE\0\0\0\x34\0\x05\
    \x01\0\x1Ajava/lang/HeapwardenCanary\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
/// `java.lang.invoke.MethodHandleNatives.Constants.HIDDEN_CLASS`.
const HIDDEN_CLASS: i32 = 2;

impl Jni {
    /// A class that is unloaded once nobody refers to it: hidden, so that it has loader data of
    /// its own, no other agent is shown its bytes, and nothing finds it by its name.
    ///
    /// The native method behind `Lookup.defineHiddenClass` is called, which has had this form
    /// since hidden classes came with JDK 15; the Java code around it would load the JDK's
    /// class file library. `None` where it cannot be made.
    pub(crate) fn unloadable_class(&self) -> Option<Local<'_>> {
        let size = i32::try_from(CLASS_FILE.len()).ok()?;
        let bytes = call!(self, NewByteArray, size);
        self.clear_exception();
        // SAFETY: NewByteArray returns a fresh local reference or null.
        let bytes = unsafe { Local::adopt(self, bytes) }?;
        call!(
            self,
            SetByteArrayRegion,
            bytes.raw(),
            0,
            size,
            CLASS_FILE.as_ptr().cast()
        );
        if self.clear_exception() {
            return None;
        }
        let (loader, lookup) = (
            self.boot_class("java/lang/ClassLoader")?,
            self.boot_class("java/lang/Object")?,
        );
        let name = self.string("java.lang.HeapwardenCanary")?;
        let null = jni::jvalue { l: ptr::null_mut() };
        self.static_call(
            &loader,
            c"defineClass0",
            c"(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;",
            &[
                null,
                jni::jvalue { l: lookup.raw() },
                jni::jvalue { l: name.raw() },
                jni::jvalue { l: bytes.raw() },
                jni::jvalue { i: 0 },
                jni::jvalue { i: size },
                null,
                jni::jvalue { z: 0 },
                jni::jvalue { i: HIDDEN_CLASS },
                null,
            ],
        )
    }

    /// Two arrays of references, of `elements` each, that refer to each other. `None` where
    /// there is no memory for them.
    pub(crate) fn array_pair(&self, elements: i32) -> Option<[Local<'_>; 2]> {
        let class = self.boot_class("java/lang/Object")?;
        let array = || {
            let array = call!(self, NewObjectArray, elements, class.raw(), ptr::null_mut());
            self.clear_exception();
            // SAFETY: NewObjectArray returns a fresh local reference or null.
            unsafe { Local::adopt(self, array) }
        };
        let (one, other) = (array()?, array()?);
        for (from, to) in [(&one, &other), (&other, &one)] {
            call!(self, SetObjectArrayElement, from.raw(), 0, to.raw());
            if self.clear_exception() {
                return None;
            }
        }
        Some([one, other])
    }

    /// Deletes a global reference that is no longer needed.
    pub(crate) fn release_global(&self, global: Global) {
        call!(self, DeleteGlobalRef, global.raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_file_says_how_long_its_names_are() {
        for name in [&b"java/lang/HeapwardenCanary"[..], b"java/lang/Object"] {
            let at = CLASS_FILE
                .windows(name.len())
                .position(|part| part == name)
                .expect("the name is there");
            let length = u16::from_be_bytes([CLASS_FILE[at - 2], CLASS_FILE[at - 1]]);
            assert_eq!(usize::from(length), name.len());
        }
    }
}
