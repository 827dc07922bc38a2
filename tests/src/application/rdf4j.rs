//! Eclipse RDF4J's server in Tomcat 9 and Jetty 12: a triple store behind HTTP.
//!
//! Each load is a request with the statements of one graph, which RDF4J adds in one transaction.

use super::contract::{Application, INTERVAL, TOMCAT, deploy_with_neighbour, write_policy};
use super::triples::{CENSUS, STATEMENTS, census, entries, graph, statements};
use crate::jdk::Vm;
use crate::server::{Installation, Server};
use crate::server_setup;
use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Bytes of heap that one statement takes in a store in memory, measured with compressed references.
const STATEMENT_BYTES: u64 = 1_300;

const REPOSITORY: &str = "/rdf4j-server/repositories/loaded";

/// Whether a store survives a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    /// Lost at the end.
    Memory,
    /// In memory, and all of it on disk as well.
    Disk,
}

/// The web server that the application is deployed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// Tomcat 9.
    Tomcat9,
    /// Jetty 12, with the servlets of before Jakarta.
    Jetty12,
}

/// The server with one repository.
#[derive(Debug)]
pub(super) struct Rdf4j {
    store: Store,
    container: Container,
}

impl Rdf4j {
    /// A server of one kind.
    #[must_use]
    pub(super) const fn new(store: Store, container: Container) -> Self {
        Self { store, container }
    }

    fn configuration(&self) -> String {
        let persist = self.store == Store::Disk;
        format!(
            r#"@prefix rep: <http://www.openrdf.org/config/repository#> .
@prefix sr: <http://www.openrdf.org/config/repository/sail#> .
@prefix sail: <http://www.openrdf.org/config/sail#> .
@prefix ms: <http://www.openrdf.org/config/sail/memory#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
[] a rep:Repository ; rep:repositoryID "loaded" ; rdfs:label "loaded" ;
   rep:repositoryImpl [ rep:repositoryType "openrdf:SailRepository" ;
     sr:sailImpl [ sail:sailType "openrdf:MemoryStore" ; ms:persist {persist} ; ms:syncDelay 0 ] ] .
"#
        )
    }
}

impl Application for Rdf4j {
    fn account(&self) -> &'static str {
        "/rdf4j-server"
    }

    fn front(&self) -> &'static str {
        "/rdf4j-server/protocol"
    }

    fn start(&self, site: Installation, vm: &Vm, data: &Path, policy: &str) -> Server {
        let prepared = match self.container {
            Container::Tomcat9 => server_setup::tomcat(&site, &vm.jdk, TOMCAT, INTERVAL),
            Container::Jetty12 => server_setup::jetty_for(&site, &vm.jdk, INTERVAL, "ee8"),
        };
        write_policy(&site, policy);
        deploy_with_neighbour("rdf4j-server.war", &prepared.base.join("webapps"));
        let mut command = prepared.command;
        let property = format!("-Dorg.eclipse.rdf4j.appdata.basedir={}", data.display());
        match self.container {
            Container::Tomcat9 => command.env("JAVA_OPTS", property),
            Container::Jetty12 => command.env("JDK_JAVA_OPTIONS", property),
        };
        site.start(command, self.front())
    }

    fn prepare(&self, server: &Server) {
        let answer = server
            .send_body(
                "PUT",
                REPOSITORY,
                &[("content-type", "text/turtle")],
                self.configuration().as_bytes(),
            )
            .expect("an answer");
        assert_eq!(answer.status, 204, "{answer:?}\n{}", server.log());
    }

    fn load(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let body = statements(number, true);
        server.send_body(
            "POST",
            &format!("{REPOSITORY}/statements"),
            &[("content-type", "text/x-nquads")],
            body.as_bytes(),
        )
    }

    fn load_bytes(&self) -> u64 {
        u64::from(STATEMENTS) * STATEMENT_BYTES
    }

    fn load_entries(&self) -> u64 {
        u64::from(STATEMENTS)
    }

    fn read(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let path = format!("{REPOSITORY}/statements?context=%3C{}%3E", graph(number));
        server.send("GET", &path, &[("accept", "text/x-nquads")])
    }

    fn entries(&self, answer: &Answer) -> u64 {
        entries(answer)
    }

    fn export(&self, server: &Server) -> Option<io::Result<Answer>> {
        let path = format!("{REPOSITORY}/statements");
        Some(server.send("GET", &path, &[("accept", "text/x-nquads")]))
    }

    fn ask_census(&self, server: &Server) -> io::Result<Answer> {
        let path = format!("{REPOSITORY}?{CENSUS}");
        server.send("GET", &path, &[("accept", "text/csv")])
    }

    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64> {
        census(answer)
    }

    fn delete(&self, server: &Server, _loads: u32) -> io::Result<Answer> {
        server.send("DELETE", &format!("{REPOSITORY}/statements"), &[])
    }
}
