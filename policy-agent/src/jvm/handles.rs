//! References into the JDK's own classes, looked up once at the start.

use policy_jvm::kinds::{Class, ClassLoader, JavaString, Runnable, Thread, ThreadFieldHolder};
use policy_jvm::{
    BooleanField, Field, Global, Jni, KnownClass, Local, LongField, Ref, StaticField,
};

/// The field of `java.lang.Thread` that holds the context class loader.
pub(crate) type ContextLoader = Field<Thread, ClassLoader>;

/// Where `java.lang.Thread` keeps its task, and whether it is a daemon.
#[derive(Clone, Copy)]
enum TaskFields {
    /// From JDK 19 on.
    Held {
        holder: Field<Thread, ThreadFieldHolder>,
        task: Field<ThreadFieldHolder, Runnable>,
        daemon: BooleanField<ThreadFieldHolder>,
    },
    Own {
        task: Field<Thread, Runnable>,
        daemon: BooleanField<Thread>,
    },
}

impl TaskFields {
    fn find(jni: &Jni, thread: &KnownClass<Thread>) -> Option<TaskFields> {
        if let Some(task) = thread.field(jni, "target") {
            let daemon = thread.boolean_field(jni, "daemon")?;
            return Some(TaskFields::Own { task, daemon });
        }
        let held = jni.java_class::<ThreadFieldHolder>()?;
        Some(TaskFields::Held {
            holder: thread.field(jni, "holder")?,
            task: held.field(jni, "task")?,
            daemon: held.boolean_field(jni, "daemon")?,
        })
    }
}

/// See the module. A field that is `None` was not found; what needs it does without.
pub(crate) struct JavaHandles {
    /// The field of the loader that `Thread`'s own getter returns, for platform and virtual threads.
    pub(crate) context_loader: Option<ContextLoader>,
    task: Option<TaskFields>,
    /// The fields `name` and `tid` of `java.lang.Thread` itself: a thread of a class of its own may have others by those
    /// names, and that class need not be initialised yet.
    thread_name: Option<Field<Thread, JavaString>>,
    thread_id: Option<LongField<Thread>>,
    loader_class: Option<KnownClass<ClassLoader>>,
    /// The fields `name` and `parent` of `java.lang.ClassLoader` itself: a loader may have
    /// fields of its own by those names.
    loader_name: Option<Field<ClassLoader, JavaString>>,
    loader_parent: Option<Field<ClassLoader, ClassLoader>>,
    /// `java.lang.Object`, of which canaries are.
    pub(crate) object_class: Option<Global<Class>>,
    /// The hooks that run when the VM goes down; null from then on. The field is found when no
    /// thread is allocating yet that would have to initialise its class.
    shutdown_hooks: Option<StaticField>,
    /// The one `java.lang.Runtime`.
    pub(crate) runtime: Option<Global>,
}

impl JavaHandles {
    /// Looks everything up.
    pub(crate) fn find(jni: &Jni) -> JavaHandles {
        let loader_class = jni.java_class::<ClassLoader>();
        let loader = loader_class.as_ref();
        let thread_class = jni.java_class::<Thread>();
        let thread = thread_class.as_ref();
        JavaHandles {
            loader_name: loader.and_then(|class| class.field(jni, "name")),
            loader_parent: loader.and_then(|class| class.field(jni, "parent")),
            loader_class,
            context_loader: thread.and_then(|class| class.field(jni, "contextClassLoader")),
            task: thread.and_then(|class| TaskFields::find(jni, class)),
            thread_name: thread.and_then(|class| class.field(jni, "name")),
            thread_id: thread.and_then(|class| class.long_field(jni, "tid")),
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

    /// The task that a thread was made with, until it ends; `None` for a thread that is its own.
    pub(crate) fn task_of<'j>(&self, thread: &Ref<'j, Thread>) -> Option<Local<'j, Runnable>> {
        match self.task? {
            TaskFields::Held { holder, task, .. } => thread.get(holder)?.get(task),
            TaskFields::Own { task, .. } => thread.get(task),
        }
    }

    /// Whether a thread lets the VM end.
    pub(crate) fn is_daemon(&self, thread: &Ref<'_, Thread>) -> bool {
        match self.task {
            Some(TaskFields::Held { holder, daemon, .. }) => {
                (thread.get(holder)).is_some_and(|held| held.boolean(daemon))
            }
            Some(TaskFields::Own { daemon, .. }) => thread.boolean(daemon),
            None => false,
        }
    }

    /// The name of a thread, at most 1,024 units of it. Not on an allocating thread.
    pub(crate) fn thread_name(&self, thread: &Ref<'_, Thread>) -> String {
        let name = (self.thread_name).and_then(|field| thread.get(field)?.text());
        name.unwrap_or_default()
    }

    /// The id of a thread, as `Thread.getId()` gives it; 0 if it cannot be read.
    pub(crate) fn thread_id(&self, thread: &Ref<'_, Thread>) -> i64 {
        self.thread_id.map_or(0, |field| thread.long(field))
    }

    /// The JDK's name of a loader; overridden `getName()` methods mislead.
    pub(crate) fn loader_name(&self, loader: &Local<'_>) -> Option<String> {
        let loader = loader.as_a(self.loader_class.as_ref()?)?;
        loader.get(self.loader_name?)?.text()
    }

    /// The parent of a loader, as it was told when it was made.
    pub(crate) fn loader_parent<'j>(&self, loader: &Local<'j>) -> Option<Local<'j>> {
        let loader = loader.as_a(self.loader_class.as_ref()?)?;
        loader.get(self.loader_parent?).map(Local::upcast)
    }

    /// Whether the VM has begun to go down: `ApplicationShutdownHooks` gives its hooks away, under
    /// its lock, before it starts the first. One field is read; any Java thread.
    pub(crate) fn is_shutting_down(&self, jni: &Jni) -> bool {
        self.shutdown_hooks
            .as_ref()
            .is_some_and(|hooks| hooks.value(jni).is_none())
    }
    /// Used bytes of the heap now, garbage included. Runs Java code: on an attached thread of the
    /// agent.
    pub(crate) fn used_heap_bytes(&self, jni: &Jni) -> Option<u64> {
        let runtime = self.runtime.as_ref()?.local(jni)?;
        let total = jni.call_long(&runtime, "totalMemory")?;
        let free = jni.call_long(&runtime, "freeMemory")?;
        Some(total.saturating_sub(free).max(0) as u64)
    }
}
