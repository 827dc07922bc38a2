//! Where the agent in a JVM of this machine listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::facts::Process;
use crate::live::{Address, Client};

/// Largest run file that is read, in bytes.
const MAX_RUN_FILE_BYTES: u64 = 4096;
/// Most listeners of a JVM that are asked whether they are the agent's.
const MAX_ASKED: usize = 16;

/// The addresses on which the agent in `process` answers, as seen from here: what its run file
/// says, else those of the JVM's listeners that answer as an agent does. Empty where the JVM has a
/// network of its own.
pub(crate) fn agents_listeners(process: &Process) -> Vec<SocketAddr> {
    if !process.facts.shares_network {
        return Vec::new();
    }
    if let Some(address) = of_run_file(process) {
        return vec![address];
    }
    let client = Client::new();
    let mut listening = process.listening().unwrap_or_default();
    let wanted = wanted_port(process);
    // The likely one first; the rest are the application's own.
    listening.sort_by_key(|address| Some(address.port()) != wanted);
    let reachable = listening.into_iter().map(reachable).take(MAX_ASKED);
    let mut agents = reachable.filter(|address| {
        let address: Result<Address, _> = address.to_string().parse();
        address.is_ok_and(|address| client.is_agent(&address))
    });
    // An agent has one listener.
    agents.next().into_iter().collect()
}

fn of_run_file(process: &Process) -> Option<SocketAddr> {
    let facts = &process.facts;
    let told = facts
        .arguments
        .heapwarden()
        .and_then(|options| option(options, "run-file"));
    let path = told.or(facts.environment.run_file.as_deref())?;
    let bytes = process
        .root
        .read(Path::new(path), MAX_RUN_FILE_BYTES)
        .ok()?;
    let run: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let is_its = run["pid"] == facts.status.own_id();
    let listen = run["listen"].as_str().filter(|_| is_its)?;
    listen.parse().ok().map(reachable)
}

fn wanted_port(process: &Process) -> Option<u16> {
    let facts = &process.facts;
    let told = facts
        .arguments
        .heapwarden()
        .and_then(|options| option(options, "listen"));
    let told = told.or(facts.environment.listen.as_deref());
    let listen = told.and_then(|text| text.parse().ok()).unwrap_or_default();
    match listen {
        policy_config::Listen::Address { port, .. } => Some(port),
        policy_config::Listen::Off => None,
    }
}

/// The value of one of the agent's options; the last one counts.
pub(crate) fn option<'a>(options: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = options.rsplit(',').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(given, _)| given.trim() == key)
        .map(|(_, value)| value.trim())
}

/// What listens on every address is asked on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_counts() {
        let options = "listen=off, listen = 127.0.0.1:1 ,run-file=/r=1,x";
        assert_eq!(option(options, "listen"), Some("127.0.0.1:1"));
        assert_eq!(option(options, "run-file"), Some("/r=1"));
        assert_eq!(option(options, "log"), None);
    }

    #[test]
    fn every_address_is_reached_by_loopback() {
        let of = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:9464"), "127.0.0.1:9464");
        assert_eq!(of("[::]:9464"), "[::1]:9464");
        assert_eq!(of("10.0.0.1:9464"), "10.0.0.1:9464");
    }
}
