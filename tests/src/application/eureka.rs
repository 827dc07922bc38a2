//! Netflix' Eureka as Spring Cloud ships it: a registry of instances in memory, in Spring Boot's Tomcat.

use super::contract::{Application, write_policy};
use crate::jdk::Vm;
use crate::server::{Installation, Server, installed};
use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{fmt::Write as _, io};

/// Entries of an instance's metadata, and bytes of each.
const ENTRIES: usize = 256;
const ENTRY_BYTES: usize = 1_000;
const REGISTRY: &str = "/eureka/apps/LOADED";

/// A registry.
#[derive(Debug)]
pub(super) struct Eureka;

fn instance(number: u32) -> String {
    format!("load-{number}-instance")
}

impl Application for Eureka {
    fn account(&self) -> &'static str {
        "registry"
    }

    fn front(&self) -> &'static str {
        "/eureka/status"
    }

    fn start(&self, site: Installation, vm: &Vm, _data: &Path, policy: &str) -> Server {
        let mut command = Command::new(vm.jdk.program("java"));
        command.args(site.jvm_flags_with(policy));
        write_policy(&site, policy);
        command
            .arg("-jar")
            .arg(installed().join("eureka/registry.jar"))
            .arg("--server.address=127.0.0.1")
            .arg(format!("--server.port={}", site.http_port()));
        site.start(command, self.front())
    }

    fn prepare(&self, _server: &Server) {}

    fn load(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let id = instance(number);
        let mut metadata = String::new();
        let value = "x".repeat(ENTRY_BYTES);
        for at in 0..ENTRIES {
            let comma = if at == 0 { "" } else { "," };
            write!(metadata, "{comma}\"entry-{at}\":\"{value}-{at}\"").expect("a string takes it");
        }
        let body = format!(
            r#"{{"instance":{{"instanceId":"{id}","hostName":"{id}","app":"LOADED","ipAddr":"127.0.0.1","status":"UP","port":{{"$":80,"@enabled":"true"}},"dataCenterInfo":{{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}},"leaseInfo":{{"durationInSecs":3600}},"metadata":{{{metadata}}}}}}}"#
        );
        let headers = [("content-type", "application/json")];
        server.send_body("POST", REGISTRY, &headers, body.as_bytes())
    }

    fn load_bytes(&self) -> u64 {
        (ENTRIES * ENTRY_BYTES) as u64
    }

    fn load_entries(&self) -> u64 {
        ENTRIES as u64
    }

    fn read(&self, server: &Server, number: u32) -> io::Result<Answer> {
        let path = format!("{REGISTRY}/{}", instance(number));
        server.send("GET", &path, &[("accept", "application/json")])
    }

    fn entries(&self, answer: &Answer) -> u64 {
        answer.body.matches("\"entry-").count() as u64
    }

    /// The page for people: it names each instance, without its metadata.
    fn ask_census(&self, server: &Server) -> io::Result<Answer> {
        server.get("/")
    }

    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64> {
        let after = answer.body.split("load-").skip(1);
        let numbers = after.filter_map(|rest| rest.split_once("-instance")?.0.parse().ok());
        numbers.map(|number| (number, ENTRIES as u64)).collect()
    }

    /// One instance after the other; ends at the first that is turned away.
    fn delete(&self, server: &Server, loads: u32) -> io::Result<Answer> {
        let mut last = server.get("/eureka/status")?;
        for number in 0..loads {
            let path = format!("{REGISTRY}/{}", instance(number));
            last = server.send("DELETE", &path, &[])?;
            if last.status == 404 {
                last.status = 200;
            }
            if last.status != 200 {
                break;
            }
        }
        Ok(last)
    }
}
