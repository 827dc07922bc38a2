//! Applications of others, and what is done to each of them: for the tests, which judge it, and for
//! `cargo xtask bench enforcement`, which measures it.

mod clients;
mod contract;
pub mod course;
mod eureka;
mod fuseki;
mod jackrabbit;
pub mod outcome;
mod rdf4j;
mod triples;

pub use contract::Application;
use contract::NEIGHBOUR;
use course::Course;
use eureka::Eureka;
use fuseki::Fuseki;
use jackrabbit::Jackrabbit;
use rdf4j::{Container, Rdf4j, Store};

/// An application, as it is asked for.
pub struct Subject {
    /// How it is chosen.
    pub name: &'static str,
    /// How it is called in tables.
    pub title: &'static str,
    /// It.
    pub application: &'static dyn Application,
    /// Whether it keeps all of it over a restart.
    persistent: bool,
    /// Whether a neighbour runs in the same server. An executable jar has none.
    shared: bool,
}

impl Subject {
    /// The course of it.
    #[must_use]
    pub fn course(&self) -> Course {
        Course {
            neighbour: self.shared.then_some(NEIGHBOUR),
            restart: self.persistent,
            ..Course::default()
        }
    }
}

/// All of them.
pub static SUBJECTS: [Subject; 6] = [
    Subject {
        name: "rdf4j",
        title: "RDF4J in memory, Tomcat 9",
        application: &Rdf4j::new(Store::Memory, Container::Tomcat9),
        persistent: false,
        shared: true,
    },
    Subject {
        name: "rdf4j-disk",
        title: "RDF4J on disk, Tomcat 9",
        application: &Rdf4j::new(Store::Disk, Container::Tomcat9),
        persistent: true,
        shared: true,
    },
    Subject {
        name: "rdf4j-jetty",
        title: "RDF4J in memory, Jetty 12",
        application: &Rdf4j::new(Store::Memory, Container::Jetty12),
        persistent: false,
        shared: true,
    },
    Subject {
        name: "jackrabbit",
        title: "Jackrabbit in memory, Tomcat 9",
        application: &Jackrabbit,
        persistent: false,
        shared: true,
    },
    Subject {
        name: "fuseki",
        title: "Fuseki (log4j-web), Tomcat 9",
        application: &Fuseki,
        persistent: false,
        shared: true,
    },
    Subject {
        name: "eureka",
        title: "Eureka, Spring Boot 3.5",
        application: &Eureka,
        persistent: false,
        shared: false,
    },
];

/// The application of this name.
#[must_use]
pub fn subject(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}
