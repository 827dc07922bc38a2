//! Applications of others, and what is done to each of them: for the tests, which judge it, and for
//! `cargo xtask bench enforcement`, which measures it.

mod clients;
pub mod course;
mod eureka;
mod fuseki;
mod jackrabbit;
pub mod outcome;
mod rdf4j;
mod triples;

use course::Course;
use eureka::Eureka;
use fuseki::Fuseki;
use jackrabbit::Jackrabbit;
use rdf4j::{Container, Rdf4j, Store};

use crate::jdk::Vm;
use crate::server::{Installation, Server, installed};
use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

const TOMCAT: &str = "apache-tomcat-9.0.117";
/// The sampling interval that servers are set up with; [`write_policy`] goes back to the default.
const INTERVAL: &str = "64KiB";
/// What the neighbour answers.
const NEIGHBOUR: &str = "/other/answer.txt";

/// Replaces the policy that the server was set up with.
fn write_policy(site: &Installation, policy: &str) {
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("writable");
}

/// An application that Maven copied, and a small one beside it.
fn deploy_with_neighbour(archive: &str, webapps: &Path) {
    fs::create_dir(webapps.join("other")).expect("writable");
    fs::write(webapps.join("other/answer.txt"), "done").expect("writable");
    let from = installed().join("applications").join(archive);
    fs::copy(&from, webapps.join(archive))
        .unwrap_or_else(|error| panic!("{} by Maven: {error}", from.display()));
}

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

/// Something that takes loads, keeps them in its heap, and can say which it has.
pub trait Application: Sync {
    /// The account that the agent gives it.
    fn account(&self) -> &'static str;

    /// Where it is asked whether it is up.
    fn front(&self) -> &'static str;

    /// Starts it with this policy; `data` outlives the server.
    fn start(&self, site: Installation, vm: &Vm, data: &Path, policy: &str) -> Server;

    /// What has to be there before the first load.
    fn prepare(&self, server: &Server);

    /// Sends one load.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn load(&self, server: &Server, number: u32) -> io::Result<Answer>;

    /// What one load makes it hold, roughly: for the pace.
    fn load_bytes(&self) -> u64;

    /// Entries of one load.
    fn load_entries(&self) -> u64;

    /// Reads one load back; `entries` counts them in the answer.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn read(&self, server: &Server, number: u32) -> io::Result<Answer>;

    /// How many entries of a load are in an answer of [`Self::read`].
    fn entries(&self, answer: &Answer) -> u64;

    /// Reads everything that it has, if it can in one answer; [`Self::entries`] counts them.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn export(&self, _server: &Server) -> Option<io::Result<Answer>> {
        None
    }

    /// Asks for everything that it has.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn ask_census(&self, server: &Server) -> io::Result<Answer>;

    /// Entries of each load, from an answer of [`Self::ask_census`].
    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64>;

    /// Deletes all loads up to this number. Sent again until it is acknowledged, and until the memory is free.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn delete(&self, server: &Server, loads: u32) -> io::Result<Answer>;
}
