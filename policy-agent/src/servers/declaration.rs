//! The form of a server's declaration.

use policy_jvm::{ClassFile, Local};
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName};

use super::container::{Container, Lineage};

/// The declaration of a server.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) server: Server,
    /// Whether a loader with this lineage is one of its.
    pub(crate) recognises: fn(&Lineage) -> bool,
    /// Whether such a loader is one of its only if the loader's class is the container's own, so that no application
    /// which defines a class of this name, and sets its fields, names itself. Else `find` has to see to it, as by asking
    /// getters, which are never called where they are an application's.
    pub(crate) own_classes_alone: bool,
    /// Finds out about such a loader.
    pub(crate) find: for<'j> fn(&Container<'_, 'j>, &Lineage, &Local<'j>) -> Found<'j>,
    /// Whether the server has stopped the service of this loader, which still exists; `None` if its loaders do
    /// not show that.
    pub(crate) is_stopped: Option<for<'j> fn(&Container<'_, 'j>, &Local<'j>) -> bool>,
    /// Where it hands requests over, in every release that is known; empty if it takes none, or has no door.
    pub(crate) points: &'static [Point],
    /// How the names of its main classes begin: a JVM with such a class is no program of its own.
    pub(crate) main_classes: &'static [&'static str],
}

/// The finding about a loader.
pub(crate) enum Found<'j> {
    /// A service's.
    Service(ServiceName),
    /// The program itself, which pays for what nobody else does.
    Program(ServiceName),
    /// Belongs to the same service as this loader.
    ChildOf(Local<'j>),
    /// Belongs to no service.
    Nobody,
    /// The container has not named it yet: ask again.
    NotYet,
}

/// A method through which every request for a service comes, before any of the service's code runs.
#[derive(Debug)]
pub(crate) struct Point {
    /// The server's name in the log.
    pub(crate) name: &'static str,
    /// The signature of its class.
    pub(crate) class: &'static str,
    pub(crate) method: &'static str,
    /// The descriptors that releases of the server have given it.
    pub(crate) descriptors: &'static [&'static str],
    /// The locals that the door gets, all of them references: first the one that says what service a request is for,
    /// then the one that says what it asks. 0 is `this`.
    pub(crate) loads: &'static [u8],
    /// How it is left once the request was answered.
    pub(crate) leave: Leave,
    /// The subclass of `dev.heapwarden.agent.Door` that is asked.
    pub(crate) door: ClassFile,
    /// The signature of a class that is there in a fork alone, which has the class and another door.
    pub(crate) fork: Option<&'static str>,
    /// The signature of a class without which nobody asks anything there: the door is fitted once it is loaded.
    pub(crate) needs: Option<&'static str>,
}
