//! Finds out where the agent in a JVM on this machine listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use policy_config::{Listen, Policy};
use policy_report::RunFile;

use super::info::ProcessInfo;
use super::inspect::Process;
use heapwarden_client::live::{Address, Client, MAX_RUN_FILE_BYTES};

/// Most listeners of a JVM that are asked whether they are the agent's.
const MAX_ASKED: usize = 16;

/// The addresses on which the agent in `process` answers, as seen from here: what its run file
/// says, else the listener of the JVM that answers like an agent. Empty if the JVM has its own
/// network.
pub(crate) fn agents_listeners(process: &Process) -> Vec<SocketAddr> {
    if !process.info.shares_network {
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
    let info = &process.info;
    let option_value = info
        .arguments
        .heapwarden()
        .and_then(|options| option(options, "run-file"));
    let given = option_value.or(info.environment.run_file.as_deref())?;
    let path = given.replace("%p", &info.status.own_id().to_string());
    let bytes = process
        .root
        .read(Path::new(&path), MAX_RUN_FILE_BYTES)
        .ok()?;
    let run: RunFile = serde_json::from_slice(&bytes).ok()?;
    (run.pid == info.status.own_id()).then(|| reachable(run.listen))
}

fn wanted_port(process: &Process) -> Option<u16> {
    match wanted_address(&process.info, None) {
        Listen::Address { port, .. } => Some(port),
        Listen::Off => None,
    }
}

/// Where the agent in this JVM was told to listen: by its option, its environment, its policy, or nowhere.
/// What the policy says now need not be what it said when the JVM was started.
pub(crate) fn wanted_address(info: &ProcessInfo, policy: Option<&Policy>) -> Listen {
    let options = info.arguments.heapwarden();
    let option_value = options.and_then(|options| option(options, "listen"));
    let text = option_value.or(info.environment.listen.as_deref());
    let given = text.and_then(|text| text.parse().ok());
    given
        .or_else(|| policy.map(|policy| policy.agent.listen.clone()))
        .unwrap_or_default()
}

/// The value of one of the agent's options; the last one counts.
pub(crate) fn option<'a>(options: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = options.rsplit(',').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(given, _)| given.trim() == key)
        .map(|(_, value)| value.trim())
}

/// A listener on all addresses is asked on loopback.
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
