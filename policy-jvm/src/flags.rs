//! The VM's own flags, through `HotSpotDiagnosticMXBean`.
//!
//! The bean alone is asked for: not the platform MBean server, which an application server wants to set
//! up itself, after its logging.

use jni::objects::{JObject, JValue};

use crate::env::Jni;
use crate::refs::{Global, Handle};

/// Reads and writes flags. Runs code of the JDK: not on an allocating thread.
#[derive(Debug)]
pub struct Flags {
    bean: Global,
}

impl Flags {
    /// `None` in a runtime without the module `jdk.management`.
    pub fn open(jni: &Jni) -> Option<Flags> {
        let bean = jni.with_object(|env| {
            let wanted = env.find_class("com/sun/management/HotSpotDiagnosticMXBean")?;
            env.call_static_method(
                "java/lang/management/ManagementFactory",
                "getPlatformMXBean",
                "(Ljava/lang/Class;)Ljava/lang/management/PlatformManagedObject;",
                &[JValue::Object(&wanted)],
            )?
            .l()
        })?;
        Some(Flags {
            bean: bean.global()?,
        })
    }

    /// A flag's value as text; `None` when this VM has no such flag.
    pub fn read(&self, jni: &Jni, name: &str) -> Option<String> {
        let bean = self.bean.raw().0;
        let value = jni.with_object::<crate::kinds::Anything>(|env| {
            // SAFETY: the bean is a live global reference; the object does not own it.
            let bean = unsafe { JObject::from_raw(bean.cast()) };
            let name = env.new_string(name)?;
            let option = env
                .call_method(
                    bean,
                    "getVMOption",
                    "(Ljava/lang/String;)Lcom/sun/management/VMOption;",
                    &[JValue::Object(&name)],
                )?
                .l()?;
            env.call_method(option, "getValue", "()Ljava/lang/String;", &[])?
                .l()
        })?;
        value.text()
    }

    /// Whether a flag is there and on.
    pub fn is_on(&self, jni: &Jni, name: &str) -> bool {
        self.read(jni, name).is_some_and(|value| value == "true")
    }

    /// A flag's value as a number.
    pub fn number(&self, jni: &Jni, name: &str) -> Option<f64> {
        self.read(jni, name)?.parse().ok()
    }

    /// Sets a manageable flag; false when the VM refuses.
    pub fn write(&self, jni: &Jni, name: &str, value: &str) -> bool {
        let bean = self.bean.raw().0;
        let done = jni.with(|env| {
            // SAFETY: as in `Flags::read`.
            let bean = unsafe { JObject::from_raw(bean.cast()) };
            let (name, value) = (env.new_string(name)?, env.new_string(value)?);
            env.call_method(
                bean,
                "setVMOption",
                "(Ljava/lang/String;Ljava/lang/String;)V",
                &[JValue::Object(&name), JValue::Object(&value)],
            )?
            .v()
        });
        done.is_some()
    }
}
