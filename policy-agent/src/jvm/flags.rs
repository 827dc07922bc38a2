//! The VM's own flags, through `HotSpotDiagnosticMXBean`.
//!
//! The bean alone is asked for: not the platform MBean server, which an application server
//! wants to set up itself, after its logging.

use jvmti_bindings::sys::jni;
use std::ffi::CStr;

use super::java::{Global, Jni, Local, call};

/// Reads and writes flags. Runs code of the JDK: only on the warden's thread.
pub(crate) struct Flags {
    bean: Global,
}

impl Flags {
    /// `None` in a runtime without the module `jdk.management`.
    pub(crate) fn open(jni: &Jni) -> Option<Flags> {
        let wanted = jni.boot_class("com/sun/management/HotSpotDiagnosticMXBean")?;
        let factory = jni.boot_class("java/lang/management/ManagementFactory")?;
        let bean = jni.static_call(
            &factory,
            c"getPlatformMXBean",
            c"(Ljava/lang/Class;)Ljava/lang/management/PlatformManagedObject;",
            &[jni::jvalue { l: wanted.raw() }],
        )?;
        Some(Flags {
            bean: bean.global()?,
        })
    }

    /// A flag's value as text; `None` when this VM has no such flag.
    pub(crate) fn read(&self, jni: &Jni, name: &str) -> Option<String> {
        let name = jni.string(name)?;
        let option = jni.call_object(
            &self.bean.local(jni)?,
            c"getVMOption",
            c"(Ljava/lang/String;)Lcom/sun/management/VMOption;",
            &[jni::jvalue { l: name.raw() }],
        )?;
        jni.call_object(&option, c"getValue", c"()Ljava/lang/String;", &[])?
            .text()
    }

    /// Whether a flag is there and on.
    pub(crate) fn is_on(&self, jni: &Jni, name: &str) -> bool {
        self.read(jni, name).is_some_and(|value| value == "true")
    }

    /// A flag's value as a number.
    pub(crate) fn number(&self, jni: &Jni, name: &str) -> Option<f64> {
        self.read(jni, name)?.parse().ok()
    }

    /// Sets a manageable flag; false when the VM refuses.
    pub(crate) fn write(&self, jni: &Jni, name: &str, value: &str) -> bool {
        let (Some(bean), Some(name), Some(value)) =
            (self.bean.local(jni), jni.string(name), jni.string(value))
        else {
            return false;
        };
        jni.call_void(
            &bean,
            c"setVMOption",
            c"(Ljava/lang/String;Ljava/lang/String;)V",
            &[
                jni::jvalue { l: name.raw() },
                jni::jvalue { l: value.raw() },
            ],
        )
    }
}

impl Jni {
    /// Calls a static method that returns an object. Exceptions are swallowed.
    pub(super) fn static_call(
        &self,
        class: &Local<'_>,
        name: &CStr,
        descriptor: &CStr,
        arguments: &[jni::jvalue],
    ) -> Option<Local<'_>> {
        let method = call!(
            self,
            GetStaticMethodID,
            class.raw(),
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || method.is_null() {
            return None;
        }
        let value = call!(
            self,
            CallStaticObjectMethodA,
            class.raw(),
            method,
            arguments.as_ptr()
        );
        if self.clear_exception() {
            return None;
        }
        // SAFETY: a call that did not throw returns a fresh local reference or null.
        unsafe { Local::adopt(self, value) }
    }

    /// Calls a method that returns nothing; false when it is not there or throws.
    pub(super) fn call_void(
        &self,
        object: &Local<'_>,
        name: &CStr,
        descriptor: &CStr,
        arguments: &[jni::jvalue],
    ) -> bool {
        let class = object.class();
        let method = call!(
            self,
            GetMethodID,
            class.raw(),
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || method.is_null() {
            return false;
        }
        call!(
            self,
            CallVoidMethodA,
            object.raw(),
            method,
            arguments.as_ptr()
        );
        !self.clear_exception()
    }
}
