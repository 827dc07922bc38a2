//! `java.lang.HeapwardenCounter`, the class that inserted code calls.

use std::cell::OnceCell;

use policy_jvm::{ClassFile, Jni, StaticMethod, Value};

use crate::capabilities;
use crate::ground::Ground;

use super::natives;

macro_rules! java_lang {
    ($simple:literal) => {
        ClassFile::new(
            concat!("java/lang/", $simple),
            include_bytes!(concat!("../../java/classes/java/lang/", $simple, ".class")),
        )
    };
}

const HELPERS: [ClassFile; 4] = [
    java_lang!("HeapwardenTable"),
    java_lang!("HeapwardenThread"),
    java_lang!("HeapwardenCounts"),
    java_lang!("HeapwardenClass"),
];
/// Binds the native methods.
const BINDER: ClassFile = ClassFile::new(
    "dev/heapwarden/agent/Binder",
    include_bytes!("../../java/classes/dev/heapwarden/agent/Binder.class"),
);
const COUNTER: ClassFile = java_lang!("HeapwardenCounter");
/// Reads the JVM's own figure.
const FIGURE: ClassFile = ClassFile::new(
    "dev/heapwarden/agent/AllocatedBytes",
    include_bytes!("../../java/classes/dev/heapwarden/agent/AllocatedBytes.class"),
);

/// The counter, as the agent calls it.
pub(crate) struct Counter {
    sum: StaticMethod,
    belongs: StaticMethod,
    all_changed: StaticMethod,
    /// Looked up at its first use, because that loads classes; empty inside if the JVM has no figure.
    figure: OnceCell<Option<StaticMethod>>,
}

impl Counter {
    /// Defines the class that counts and prepares it.
    pub(super) fn define(ground: &Ground, jni: &Jni) -> Result<Counter, String> {
        if !ground
            .published_capabilities()
            .contains(&(capabilities::REWRITING, true))
        {
            return Err("the JVM does not let the agent rewrite classes".to_owned());
        }
        for helper in &HELPERS {
            let defined = jni.define_in_boot(&ground.jvmti, helper);
            defined.map_err(|why| why.to_string())?;
        }
        let class = jni.define_in_boot(&ground.jvmti, &COUNTER);
        let class = class.map_err(|why| why.to_string())?;
        let binder = jni.define_in_boot(&ground.jvmti, &BINDER);
        let binder = binder.map_err(|why| why.to_string())?;
        if !natives::bind(jni, &binder) {
            return Err("the native methods of the counter cannot be bound".to_owned());
        }
        let method = |name, descriptor| {
            (class.static_method(name, descriptor)).ok_or("a method of the counter is missing")
        };
        let prepare = method("prepare", "()V")?;
        if !prepare.run(jni, &[]) {
            return Err("the counter does not know this JVM's threads".to_owned());
        }
        Ok(Counter {
            sum: method("sum", "()V")?,
            belongs: method("belongs", "(II)V")?,
            all_changed: method("allChanged", "()V")?,
            figure: OnceCell::new(),
        })
    }

    /// The JVM's own figure for what its threads have allocated, in bytes; `None` if it does not say.
    pub(super) fn jvm_bytes(&self, ground: &Ground, jni: &Jni) -> Option<u64> {
        let figure = self.figure.get_or_init(|| {
            let class = jni.define_in_boot(&ground.jvmti, &FIGURE).ok();
            let method = class.and_then(|class| class.static_method("read", "()J"));
            if method.is_none() {
                tracing::warn!(
                    "exact accounts have no remainder: this runtime does not say what its threads allocate (it has no module jdk.management)"
                );
            }
            method
        });
        let bytes = figure.as_ref()?.long(jni, &[])?;
        u64::try_from(bytes).ok()
    }

    /// Has it tell all sums to [`natives::gathered`].
    pub(super) fn sum(&self, jni: &Jni) {
        self.sum.run(jni, &[]);
    }

    /// Code of this number belongs to this account, as the counter numbers accounts.
    pub(super) fn belongs(&self, jni: &Jni, number: i32, account: i32) {
        let values = [Value::int(number), Value::int(account)];
        self.belongs.run(jni, &values);
    }

    /// All threads are to ask again whom they allocate for.
    pub(super) fn all_changed(&self, jni: &Jni) {
        self.all_changed.run(jni, &[]);
    }
}
