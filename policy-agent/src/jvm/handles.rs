//! What the agent needs of the JDK's own classes, found once at the start.

use super::java::{FieldId, Global, Jni, StaticField};

/// References into the JDK's own classes, found once.
pub(crate) struct JavaHandles {
    /// The field of `java.lang.Thread` that holds the context class loader.
    pub(crate) context_loader: Option<FieldId>,
    /// The fields `name` and `parent` of `java.lang.ClassLoader` itself: a loader may have
    /// fields of its own by those names.
    pub(crate) loader_name: Option<FieldId>,
    pub(crate) loader_parent: Option<FieldId>,
    /// `java.lang.Object`, of which canaries are.
    pub(crate) object_class: Option<Global>,
    /// The hooks that run when the VM goes down; null from then on. The field is found when no
    /// thread is allocating yet that would have to initialise its class.
    pub(crate) shutdown_hooks: Option<StaticField>,
    /// The one `java.lang.Runtime`.
    pub(crate) runtime: Option<Global>,
}

impl JavaHandles {
    /// Looks everything up. What is not found is done without.
    pub(crate) fn find(jni: &Jni) -> JavaHandles {
        let loader = jni.boot_class("java/lang/ClassLoader");
        let loader_field = |name, descriptor| jni.field(loader.as_ref()?, name, descriptor);
        JavaHandles {
            loader_name: loader_field("name", "Ljava/lang/String;"),
            loader_parent: loader_field("parent", "Ljava/lang/ClassLoader;"),
            context_loader: jni.boot_class("java/lang/Thread").and_then(|class| {
                jni.field(&class, "contextClassLoader", "Ljava/lang/ClassLoader;")
            }),
            object_class: jni
                .boot_class("java/lang/Object")
                .and_then(|class| class.global()),
            shutdown_hooks: jni
                .boot_class("java/lang/ApplicationShutdownHooks")
                .and_then(|class| jni.static_field(&class, "hooks", "Ljava/util/IdentityHashMap;")),
            runtime: jni
                .boot_class("java/lang/Runtime")
                .and_then(|class| jni.static_object(&class, "getRuntime", "()Ljava/lang/Runtime;"))
                .and_then(|runtime| runtime.global()),
        }
    }

    /// Whether the VM has begun to go down: `ApplicationShutdownHooks` gives its hooks away, under
    /// its lock, before it starts the first. One field is read; any Java thread.
    pub(crate) fn is_shutting_down(&self, jni: &Jni) -> bool {
        self.shutdown_hooks
            .as_ref()
            .is_some_and(|hooks| jni.static_value(hooks).is_none())
    }
}
