//! Apache Jena Fuseki in Tomcat 9: a triple store in memory whose archive brings `log4j-web`, so that Log4j's
//! filter is a frame of every request.

use super::contract::{Application, INTERVAL, TOMCAT, deploy_with_neighbour, write_policy};
use super::triples::{CENSUS, STATEMENTS, census, entries, graph, statements};
use crate::jdk::Vm;
use crate::server::{Installation, Server};
use crate::server_setup;
use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Bytes of heap that one statement takes in the store, measured with compressed references.
const STATEMENT_BYTES: u64 = 1_700;
const DATASET: &str = "/fuseki/loaded";

/// A server with one dataset.
#[derive(Debug)]
pub(super) struct Fuseki;

fn data(number: u32) -> String {
    format!("{DATASET}/data?graph={}", graph(number))
}

impl Application for Fuseki {
    fn account(&self) -> &'static str {
        "/fuseki"
    }

    fn front(&self) -> &'static str {
        "/fuseki/$/ping"
    }

    fn start(&self, site: Installation, vm: &Vm, data: &Path, policy: &str) -> Server {
        let prepared = server_setup::tomcat(&site, &vm.jdk, TOMCAT, INTERVAL);
        write_policy(&site, policy);
        deploy_with_neighbour("fuseki.war", &prepared.base.join("webapps"));
        let mut command = prepared.command;
        command.env("FUSEKI_BASE", data.join("fuseki"));
        site.start(command, self.front())
    }

    fn prepare(&self, server: &Server) {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let order = b"dbName=loaded&dbType=mem";
        let answer = server.send_body("POST", "/fuseki/$/datasets", &headers, order);
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}\n{}", server.log());
    }

    /// Replaces the graph, in one transaction.
    fn load(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let headers = [("content-type", "application/n-triples")];
        let body = statements(number, false);
        server.send_body("PUT", &data(number), &headers, body.as_bytes())
    }

    fn load_bytes(&self) -> u64 {
        u64::from(STATEMENTS) * STATEMENT_BYTES
    }

    fn load_entries(&self) -> u64 {
        u64::from(STATEMENTS)
    }

    fn read(&self, server: &Server, number: u32) -> io::Result<Answer> {
        server.send("GET", &data(number), &[("accept", "application/n-triples")])
    }

    fn entries(&self, answer: &Answer) -> u64 {
        entries(answer)
    }

    fn export(&self, server: &Server) -> Option<io::Result<Answer>> {
        let path = format!("{DATASET}/data");
        Some(server.send("GET", &path, &[("accept", "application/n-quads")]))
    }

    fn ask_census(&self, server: &Server) -> io::Result<Answer> {
        let path = format!("{DATASET}/query?{CENSUS}");
        server.send("GET", &path, &[("accept", "text/csv")])
    }

    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64> {
        census(answer)
    }

    fn delete(&self, server: &Server, _loads: u32) -> io::Result<Answer> {
        let headers = [("content-type", "application/sparql-update")];
        server.send_body("POST", &format!("{DATASET}/update"), &headers, b"DROP ALL")
    }
}
