//! Apache Jackrabbit in Tomcat 9, with its content in memory: a repository of files behind WebDAV.

use super::contract::{Application, INTERVAL, TOMCAT, deploy_with_neighbour, write_policy};
use crate::artifacts;
use crate::jdk::Vm;
use crate::server::{Installation, Server};
use crate::server_setup;
use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Bytes of a file: one load.
const FILE_BYTES: usize = 256 << 10;
const FOLDER: &str = "/jackrabbit/repository/default/loads";
/// Any password is right in a repository with simple security.
const ADMINISTRATOR: (&str, &str) = ("authorization", "Basic YWRtaW46YWRtaW4=");

/// How the parts of the application find the repository, as in the configuration that it brings.
const NAMING: &str = "jndi.enabled=true\n\
    java.naming.provider.url=http://www.apache.org/jackrabbit\n\
    java.naming.factory.initial=org.apache.jackrabbit.core.jndi.provider.DummyInitialContextFactory\n";

/// A repository.
#[derive(Debug)]
pub(super) struct Jackrabbit;

fn file(number: u32) -> String {
    format!("{FOLDER}/{number}.txt")
}

impl Jackrabbit {
    fn make_folder(server: &Server) -> io::Result<Answer> {
        server.send("MKCOL", FOLDER, &[ADMINISTRATOR])
    }
}

impl Application for Jackrabbit {
    fn account(&self) -> &'static str {
        "/jackrabbit"
    }

    fn front(&self) -> &'static str {
        "/jackrabbit/"
    }

    fn start(&self, site: Installation, vm: &Vm, _data: &Path, policy: &str) -> Server {
        let prepared = server_setup::tomcat(&site, &vm.jdk, TOMCAT, INTERVAL);
        write_policy(&site, policy);
        deploy_with_neighbour("jackrabbit.war", &prepared.base.join("webapps"));
        // Where the application looks for its configuration: in the working folder of the server.
        let home = site.folder().join("jackrabbit");
        fs::create_dir(&home).expect("writable");
        let configuration = artifacts::repository().join("tests/servers/jackrabbit-repository.xml");
        fs::write(
            home.join("bootstrap.properties"),
            format!(
                "repository.home={}\nrepository.config={}\nrepository.name=jackrabbit.repository\nrmi.enabled=false\n{NAMING}",
                home.display(),
                configuration.display()
            ),
        )
        .expect("writable");
        site.start(prepared.command, self.front())
    }

    fn prepare(&self, server: &Server) {
        let answer = Self::make_folder(server).expect("an answer");
        assert_eq!(answer.status, 201, "{answer:?}\n{}", server.log());
    }

    fn load(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let body = vec![b'x'; FILE_BYTES];
        let put = || {
            let headers = [ADMINISTRATOR, ("content-type", "text/plain")];
            server.send_body("PUT", &file(number), &headers, &body)
        };
        let answer = put()?;
        if answer.status != 409 {
            return Ok(answer);
        }
        // The folder was deleted with what was in it.
        Self::make_folder(server)?;
        put()
    }

    fn load_bytes(&self) -> u64 {
        FILE_BYTES as u64
    }

    fn load_entries(&self) -> u64 {
        FILE_BYTES as u64
    }

    fn read(&self, server: &Server, number: u32) -> io::Result<Answer> {
        server.send("GET", &file(number), &[ADMINISTRATOR])
    }

    fn entries(&self, answer: &Answer) -> u64 {
        answer.body.len() as u64
    }

    fn ask_census(&self, server: &Server) -> io::Result<Answer> {
        let body = "<propfind xmlns=\"DAV:\"><prop><getcontentlength/></prop></propfind>";
        let headers = [
            ADMINISTRATOR,
            ("depth", "1"),
            ("content-type", "application/xml"),
        ];
        server.send_body("PROPFIND", FOLDER, &headers, body.as_bytes())
    }

    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64> {
        let one = |response: &str| {
            let (href, rest) = response.split_once(".txt")?;
            let number = href.rsplit('/').next()?.parse().ok()?;
            let (_, length) = rest.split_once("getcontentlength>")?;
            let (length, _) = length.split_once('<')?;
            Some((number, length.trim().parse().ok()?))
        };
        let responses = answer.body.split("<D:response>");
        responses.filter_map(one).collect()
    }

    fn delete(&self, server: &Server, _loads: u32) -> io::Result<Answer> {
        let mut answer = server.send("DELETE", FOLDER, &[ADMINISTRATOR])?;
        if answer.status == 404 {
            // Sent again: it is deleted already.
            answer.status = 204;
        }
        Ok(answer)
    }
}
