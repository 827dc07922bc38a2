//! The declarations' questions: the classes of a loader, and getters of a container's own classes.

use policy_jvm::kinds::Class;
use policy_jvm::{Jni, JvmTi, Local, Ref};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::identity::names::{ServiceName, java_name};

/// Superclasses of a loader's class that are read at the most.
const MAX_SUPER_CLASSES: usize = 32;

/// The names of a loader's class and its super classes, the nearest first.
#[derive(Debug)]
pub(crate) struct Lineage(Vec<String>);

impl Lineage {
    /// Reads it.
    pub(crate) fn of(jvmti: &JvmTi, loader: &Local<'_>) -> Lineage {
        let mut names = Vec::new();
        let mut class = Some(loader.class());
        while let Some(current) = class {
            if let Ok(signature) = jvmti.signature_of(&current) {
                names.push(java_name(&signature));
            }
            if names.len() >= MAX_SUPER_CLASSES {
                break;
            }
            class = current.super_class();
        }
        Lineage(names)
    }

    /// The name of the loader's own class; empty if the JVM does not tell.
    pub(crate) fn own(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Whether the loader is of this class, or of one that extends it.
    pub(crate) fn is(&self, class: &str) -> bool {
        self.0.iter().any(|name| name == class)
    }
}

/// Elements of an array of texts that are read.
const MAX_TEXTS: i32 = 64;

/// Calls getters of the container's classes, and of no others.
pub(crate) struct Container<'a, 'j> {
    pub(crate) ground: &'a Ground,
    pub(crate) jni: &'j Jni,
    /// Finds the name of the one Spring Boot application in the JVM.
    pub(crate) spring_boot: fn(&Jni, &JvmTi) -> ServiceName,
    /// Finds the main class that the JVM was started with.
    pub(crate) main_class: fn(&Jni, &JvmTi) -> &'static str,
}

impl<'j> Container<'_, 'j> {
    /// The object that a getter returns; `None` if there is no such getter, or an application's class declares it.
    pub(crate) fn get(&self, object: &Local<'j>, getter: &str) -> Option<Local<'j>> {
        let jvmti = &self.ground.jvmti;
        object.getter(jvmti, getter, |class| self.is_own(class) == Some(true))
    }

    /// Whether a class is the container's own or the JDK's, not an application's; `None` if its loader is not known
    /// yet. A container that is embedded in a program has its classes from the class path.
    pub(crate) fn is_own(&self, class: &Ref<'_, Class>) -> Option<bool> {
        match self.ground.jvmti.loader_of(self.jni, class) {
            Ok(Some(loader)) => self.is_services(&loader).map(|is_services| !is_services),
            Ok(None) => Some(true),
            Err(_) => Some(false),
        }
    }

    /// Whether a loader belongs to a service; `None` if it is not known yet.
    pub(crate) fn is_services(&self, loader: &Local<'_>) -> Option<bool> {
        let owner = (self.ground.core.identity.loaders).owner(self.number(loader));
        match owner {
            LoaderOwner::Nobody | LoaderOwner::Program(_) => Some(false),
            LoaderOwner::Service(_) => Some(true),
            LoaderOwner::Pending(_) => None,
        }
    }

    /// Hands out the elements of a collection of the JDK's, at most so many, until one is null.
    pub(crate) fn each(
        &self,
        collection: &Local<'j>,
        most: usize,
        mut with: impl FnMut(&Local<'j>),
    ) {
        let Some(iterator) = self.get(collection, "iterator") else {
            return;
        };
        // At the end it throws, which is `None`.
        for element in (0..most).map_while(|_| self.get(&iterator, "next")) {
            with(&element);
        }
    }

    /// Hands out the keys and values of a map of the JDK's, at most so many.
    pub(crate) fn each_entry(
        &self,
        map: &Local<'j>,
        most: usize,
        mut with: impl FnMut(&Local<'j>, &Local<'j>),
    ) {
        let Some(entries) = self.get(map, "entrySet") else {
            return;
        };
        self.each(&entries, most, |entry| {
            let part = |name| entry.get_named(name, "Ljava/lang/Object;");
            if let (Some(key), Some(value)) = (part("key"), part("value")) {
                with(&key, &value);
            }
        });
    }

    /// The text in a field of an object.
    pub(crate) fn text_in(&self, object: &Local<'j>, field: &str) -> Option<String> {
        object.get_named(field, "Ljava/lang/String;")?.text()
    }

    /// The first texts of the array of texts that a getter returns; none if there is no such getter.
    pub(crate) fn texts(&self, object: &Local<'j>, getter: &str) -> Vec<String> {
        let jvmti = &self.ground.jvmti;
        let array = object.array_getter(jvmti, getter, |class| self.is_own(class) == Some(true));
        array.map_or_else(Vec::new, |array| {
            let length = array.array_length().min(MAX_TEXTS);
            (0..length)
                .filter_map(|at| array.element(at)?.text())
                .collect()
        })
    }

    fn number(&self, loader: &Local<'_>) -> LoaderId {
        let recognizer = Recognizer {
            ground: self.ground,
            jni: self.jni,
        };
        recognizer.loader(loader)
    }

    /// The name of the one Spring Boot application in the JVM.
    pub(crate) fn spring_boot_application(&self) -> ServiceName {
        (self.spring_boot)(self.jni, &self.ground.jvmti)
    }

    /// The main class that the JVM was started with; empty if it is not known.
    pub(crate) fn main_class(&self) -> &'static str {
        (self.main_class)(self.jni, &self.ground.jvmti)
    }

    /// Whether a class is one of the Spring Boot application that is an executable jar.
    pub(crate) fn is_spring_boots(&self, class: &Ref<'_, Class>) -> bool {
        let loader = self.ground.jvmti.loader_of(self.jni, class);
        loader.is_ok_and(|loader| {
            loader.is_some_and(|loader| {
                (self.ground.core.directory()).is_spring_boot_application(self.number(&loader))
            })
        })
    }

    /// The text that a getter returns.
    pub(crate) fn text(&self, object: &Local<'j>, getter: &str) -> Option<String> {
        self.get(object, getter)?.text()
    }

    /// The class of an object, in source form.
    pub(crate) fn class_name(&self, object: &Local<'j>) -> Option<String> {
        let signature = self.ground.jvmti.signature_of(&object.class());
        signature.ok().map(|signature| java_name(&signature))
    }

    /// The `name` field of `java.lang.ClassLoader`; overridden `getName()` methods mislead.
    pub(crate) fn jdk_name(&self, loader: &Local<'_>) -> Option<String> {
        let name = self.ground.java()?.loader_name(loader)?;
        (!name.is_empty()).then_some(name)
    }

    /// The parent of a loader; `None` for the boot loader.
    pub(crate) fn parent(&self, loader: &Local<'j>) -> Option<Local<'j>> {
        self.ground.java()?.loader_parent(loader)
    }
}
