//! Methods: their ids, and questions about methods of a class that is held.
//!
//! HotSpot is supposed to return an error for the id of an unloaded method, but has crashed on a method
//! that was being unloaded (JDK-8268364, JDK-8339725). So the VM is asked about an id only while its class
//! is held.

use jvmti_bindings::sys::jni as sys;

use crate::env::Jni;
use crate::jvmti::JvmTi;
use crate::kinds::Class;
use crate::refs::{Handle, Local, Ref};
use crate::weak::Weak;

/// A method as HotSpot names it while its class is loaded. A key for tables only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodId(pub usize);

impl MethodId {
    /// The number; HotSpot gives none twice.
    #[inline]
    pub fn key(self) -> usize {
        self.0
    }
}

/// A method for later questions, with its class. Does not keep the class loaded.
#[derive(Debug)]
pub struct HeldMethod {
    id: MethodId,
    class: Weak<Class>,
}

impl HeldMethod {
    pub(crate) fn new(id: MethodId, class: Weak<Class>) -> HeldMethod {
        HeldMethod { id, class }
    }

    /// The method's id.
    pub fn id(&self) -> MethodId {
        self.id
    }

    /// The method, if its class is still loaded. Any attached thread.
    pub fn upgrade<'j>(&self, tools: &JvmTi, jni: &'j Jni) -> Option<LiveMethod<'j>> {
        Some(LiveMethod::new(*tools, self.id, self.class.upgrade(jni)?))
    }
}

/// A method; keeps its class loaded. Its functions allocate native memory: not for allocating threads.
#[derive(Debug)]
pub struct LiveMethod<'j> {
    tools: JvmTi,
    id: MethodId,
    class: Local<'j, Class>,
}

impl<'j> LiveMethod<'j> {
    pub(crate) fn new(tools: JvmTi, id: MethodId, class: Local<'j, Class>) -> LiveMethod<'j> {
        LiveMethod { tools, id, class }
    }

    /// The method's id.
    pub fn id(&self) -> MethodId {
        self.id
    }

    /// The class that declares it.
    pub fn class(&self) -> &Ref<'j, Class> {
        &self.class
    }

    fn raw(&self) -> sys::jmethodID {
        self.id.0 as sys::jmethodID
    }

    /// Its name; `None` if the VM has no memory for it.
    pub fn name(&self) -> Option<String> {
        // SAFETY: the VM gave the id for a method of `class`, which is kept loaded.
        let name = unsafe { self.tools.wrapper().get_method_name(self.raw()) };
        name.ok().map(|(name, _, _)| name)
    }

    /// Whether it is native.
    pub fn is_native(&self) -> Option<bool> {
        // SAFETY: as in `LiveMethod::name`.
        unsafe { self.tools.wrapper().is_method_native(self.raw()) }.ok()
    }

    /// Its instructions as its class file has them, `None` if it has none.
    pub fn bytecodes(&self) -> Option<Vec<u8>> {
        // SAFETY: as in `LiveMethod::name`.
        unsafe { self.tools.wrapper().get_bytecodes(self.raw()) }.ok()
    }

    /// Where each line of the source begins: the index of the bytecode, and the line. In no particular
    /// order. Empty if the class file does not have it.
    pub fn lines(&self) -> Vec<(u32, u32)> {
        // SAFETY: as in `LiveMethod::name`.
        let lines = unsafe { self.tools.wrapper().get_line_number_table(self.raw()) };
        let lines = lines.unwrap_or_default().into_iter();
        lines
            .filter_map(|line| {
                let start = u32::try_from(line.start_location).ok()?;
                Some((start, u32::try_from(line.line_number).ok()?))
            })
            .collect()
    }

    /// The line of the source at an index of its bytecode, if the class file has it.
    pub fn line(&self, bci: u32) -> Option<u32> {
        let before = self.lines().into_iter().filter(|&(start, _)| start <= bci);
        before.max().map(|(_, line)| line)
    }
}

/// An instance method that a class declares.
pub(crate) struct Declared {
    pub(crate) id: sys::jmethodID,
    pub(crate) name: String,
    pub(crate) descriptor: String,
}

impl JvmTi {
    /// The instance method of this name that a class declares itself, with one of these descriptors. `None`
    /// if there is none, or while the class is not linked. Not on an allocating thread.
    pub fn held_method(
        &self,
        class: &Ref<'_, Class>,
        name: &str,
        descriptors: &[&str],
    ) -> Option<HeldMethod> {
        let mut methods = self.instance_methods(class).into_iter();
        let found = methods.find(|method| {
            method.name == name && descriptors.contains(&method.descriptor.as_str())
        })?;
        Some(HeldMethod::new(MethodId(found.id as usize), class.weak()?))
    }

    /// All methods of this name that a class declares itself and that have code in its class file, static or
    /// not. None while the class is not linked. Not on an allocating thread.
    pub fn held_methods_with_code(&self, class: &Ref<'_, Class>, name: &str) -> Vec<HeldMethod> {
        const WITHOUT_CODE: i32 = 0x0100 | 0x0400;
        // SAFETY: `class` is a live reference to a class.
        let ids = unsafe { self.wrapper().get_class_methods(class.raw().0) };
        let has_name_and_code = |id: &sys::jmethodID| {
            // SAFETY: the id was just returned for a class that `class` keeps loaded.
            let modifiers = unsafe { self.wrapper().get_method_modifiers(*id) };
            // SAFETY: as above.
            let found = unsafe { self.wrapper().get_method_name(*id) };
            modifiers.is_ok_and(|modifiers| modifiers & WITHOUT_CODE == 0)
                && found.is_ok_and(|(found, _, _)| found == name)
        };
        (ids.unwrap_or_default().into_iter())
            .filter(has_name_and_code)
            .filter_map(|id| Some(HeldMethod::new(MethodId(id as usize), class.weak()?)))
            .collect()
    }

    /// The instance methods that a class declares itself, for as long as it is held. Links nothing.
    pub(crate) fn instance_methods(&self, class: &Ref<'_, Class>) -> Vec<Declared> {
        const ACC_STATIC: i32 = 0x0008;
        // SAFETY: `class` is a live reference to a class.
        let Ok(ids) = (unsafe { self.wrapper().get_class_methods(class.raw().0) }) else {
            return Vec::new();
        };
        ids.into_iter()
            .filter_map(|id| {
                // SAFETY: the id was just returned for a class that `class` keeps loaded.
                let modifiers = unsafe { self.wrapper().get_method_modifiers(id) }.ok()?;
                if modifiers & ACC_STATIC != 0 {
                    return None;
                }
                // SAFETY: as above.
                let (name, descriptor, _) = unsafe { self.wrapper().get_method_name(id) }.ok()?;
                Some(Declared {
                    id,
                    name,
                    descriptor,
                })
            })
            .collect()
    }
}
