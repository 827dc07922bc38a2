//! Classes defined in the boot loader or beside others, and objects that only a collection of old memory
//! frees.

use jni::objects::{JObject, JValue};

use crate::env::Jni;
use crate::jvmti::JvmTi;
use crate::kinds::{Anything, Array, Class};
use crate::refs::{Handle, Local, Ref};

/// A class file with its internal name.
#[derive(Debug, Clone, Copy)]
pub struct ClassFile {
    name: &'static str,
    bytes: &'static [u8],
}

impl ClassFile {
    /// A class file of this internal name.
    pub const fn new(name: &'static str, bytes: &'static [u8]) -> ClassFile {
        ClassFile { name, bytes }
    }

    /// The internal name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The bytes of the file.
    pub const fn bytes(&self) -> &'static [u8] {
        self.bytes
    }
}

/// Why a class could not be defined in the boot loader.
#[derive(Debug, thiserror::Error)]
pub enum NotDefined {
    /// The VM rejects it, and no loader has a class of this name.
    #[error("{0} cannot be defined")]
    Refused(&'static str),
    /// Another loader has a class of this name.
    #[error("{0} is another class loader's")]
    Foreign(&'static str),
    /// The VM does not tell the loader of the class.
    #[error("{0} has no loader to be read ({1})")]
    Unknown(&'static str, crate::JvmTiError),
}

/// A class file of Java 8: `final synthetic class java.lang.UnloadableClass extends Object`, without
/// members. It has the package of its lookup class, which the VM demands.
const EMPTY_CLASS: &[u8] = b"\xCA\xFE\xBA\xBE\0\0\0\x34\0\x05\
    \x01\0\x19java/lang/UnloadableClass\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
/// `java.lang.invoke.MethodHandleNatives.Constants.HIDDEN_CLASS`.
const HIDDEN_CLASS: i32 = 2;

impl Jni {
    /// The class of this name in the boot loader. Defined from `file` if it does not exist.
    ///
    /// # Errors
    /// If the boot loader has no class of this name and rejects `file`.
    pub fn define_in_boot(
        &self,
        tools: &JvmTi,
        file: &ClassFile,
    ) -> Result<Local<'_, Class>, NotDefined> {
        if let Some(class) = self.define_new_in_boot(file) {
            return Ok(class);
        }
        let class = (self.boot_class(file.name)).ok_or(NotDefined::Refused(file.name))?;
        match tools.loader_of(self, &class) {
            Ok(None) => Ok(class),
            Ok(Some(_)) => Err(NotDefined::Foreign(file.name)),
            Err(error) => Err(NotDefined::Unknown(file.name, error)),
        }
    }

    /// Defines a class in the boot loader; `None` if it has one of this name or the VM rejects it.
    pub fn define_new_in_boot(&self, file: &ClassFile) -> Option<Local<'_, Class>> {
        // It throws if the loader has the class. define_class returns a class.
        self.with_object(|env| {
            let boot = JObject::null();
            Ok(env.define_class(file.name, &boot, file.bytes)?.into())
        })
    }

    /// Defines a class of an internal name in the class loader of another class, which then finds it by name without asking
    /// the loader's Java code. `None` if the loader has a class of this name already, or the VM rejects
    /// the file or does not tell the loader. Not on an allocating thread.
    pub fn define_beside(
        &self,
        tools: &JvmTi,
        neighbour: &Ref<'_, Class>,
        name: &str,
        file: &[u8],
    ) -> Option<Local<'_, Class>> {
        let loader = tools.loader_of(self, neighbour).ok()?;
        let raw = (loader.as_ref()).map_or(std::ptr::null_mut(), |loader| loader.raw().0);
        // define_class returns a class.
        self.with_object(|env| {
            // SAFETY: null or a live reference to a class loader; the object does not own it.
            let loader = unsafe { JObject::from_raw(raw.cast()) };
            Ok(env.define_class(name, &loader, file)?.into())
        })
    }

    /// A class that is unloaded once nothing refers to it. It is hidden, so it has its own loader data,
    /// other agents do not see its bytes, and it cannot be found by name.
    ///
    /// Calls the native method behind `Lookup.defineHiddenClass`, whose form has not changed since JDK 15
    /// introduced hidden classes. The Java code around it would load the JDK's class file library.
    /// `None` if the class cannot be made. Not on an allocating thread.
    pub fn unloadable_class(&self) -> Option<Local<'_, Class>> {
        let size = i32::try_from(EMPTY_CLASS.len()).ok()?;
        // The method returns a class.
        self.with_object(|env| {
            let bytes = env.byte_array_from_slice(EMPTY_CLASS)?;
            let lookup = env.find_class("java/lang/Object")?;
            let name = env.new_string("java.lang.UnloadableClass")?;
            let null = JObject::null();
            env.call_static_method(
                "java/lang/ClassLoader",
                "defineClass0",
                "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;",
                &[
                    JValue::Object(&null),
                    JValue::Object(&lookup),
                    JValue::Object(&name),
                    JValue::Object(&bytes),
                    JValue::Int(0),
                    JValue::Int(size),
                    JValue::Object(&null),
                    JValue::Bool(0),
                    JValue::Int(HIDDEN_CLASS),
                    JValue::Object(&null),
                ],
            )?
            .l()
        })
    }

    /// Two arrays of references, of `elements` each, that refer to each other. `None` if the heap
    /// has no room. Not on an allocating thread.
    pub fn array_pair(&self, elements: i32) -> Option<[Local<'_, Array<Anything>>; 2]> {
        let array = || {
            // new_object_array returns an array of that type.
            self.with_object(|env| {
                Ok(env
                    .new_object_array(elements, "java/lang/Object", JObject::null())?
                    .into())
            })
        };
        let (one, other) = (array()?, array()?);
        for (from, to) in [(&one, &other), (&other, &one)] {
            if !from.put(0, to) {
                return None;
            }
        }
        Some([one, other])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_file_says_how_long_its_names_are() {
        for name in [&b"java/lang/UnloadableClass"[..], b"java/lang/Object"] {
            let at = EMPTY_CLASS
                .windows(name.len())
                .position(|part| part == name)
                .expect("the name is there");
            let length = u16::from_be_bytes([EMPTY_CLASS[at - 2], EMPTY_CLASS[at - 1]]);
            assert_eq!(usize::from(length), name.len());
        }
    }
}
