//! Finds the JVMs of this machine that run the agent: those that have its library mapped.

use std::fs;
use std::net::SocketAddr;
use std::thread;

use super::inspect::{Process, mapped};
use super::listeners::agents_listeners;
use super::maps::MappedFiles;

/// Most JVMs that are asked at the same time where their agents listen.
const MAX_AT_A_TIME: usize = 32;

/// A JVM of this machine with the agent in it.
#[derive(Debug, Clone)]
pub(crate) struct LocalAgent {
    /// Its process id, as we see it.
    pub(crate) pid: u32,
    /// Where its agent answers. `None`: nowhere that can be reached from here.
    pub(crate) address: Option<SocketAddr>,
    /// The main class, `module/class`, or the file name of the jar that it runs; as it came.
    pub(crate) program: String,
    /// The version of its JDK; as it came. Empty if its files do not tell.
    pub(crate) version: String,
}

/// The JVMs with the agent that were found on this machine.
#[derive(Debug, Default)]
pub(crate) struct LocalAgents {
    /// In the order of their process ids.
    pub(crate) found: Vec<LocalAgent>,
    /// How many processes called `java` this user may not inspect.
    pub(crate) hidden: usize,
}

impl LocalAgents {
    /// Looks at every process, and asks those that have the agent where it listens.
    pub(crate) fn find() -> LocalAgents {
        let mut with_agent = Vec::new();
        let mut hidden = 0;
        for pid in ids() {
            match mapped(pid) {
                Ok(files) if is_jvm_with_agent(&files) => with_agent.push(pid),
                Ok(_) => {}
                Err(_) => hidden += usize::from(is_called_java(pid)),
            }
        }
        let mut found = Vec::with_capacity(with_agent.len());
        for some in with_agent.chunks(MAX_AT_A_TIME) {
            thread::scope(|scope| {
                let threads: Vec<_> = (some.iter())
                    .map(|&pid| scope.spawn(move || local_agent(pid)))
                    .collect();
                let asked = threads.into_iter().filter_map(|one| one.join().ok());
                found.extend(asked.flatten());
            });
        }
        LocalAgents { found, hidden }
    }
}

/// All process ids, in ascending order.
fn ids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut ids: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
}

fn is_jvm_with_agent(files: &MappedFiles) -> bool {
    files.libjvm().is_some() && files.libheapwarden().is_some()
}

fn is_called_java(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "java")
}

/// `None`: it has ended meanwhile.
fn local_agent(pid: u32) -> Option<LocalAgent> {
    let process = Process::find(pid).ok()?;
    let address = agents_listeners(&process).first().copied();
    let info = &process.info;
    let release = info.release.as_ref();
    Some(LocalAgent {
        pid,
        address,
        program: info.program(),
        version: release.map_or_else(String::new, |release| release.version.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_its_id_and_this_one_is_no_jvm() {
        let ids = ids();
        assert!(ids.contains(&std::process::id()) && ids.is_sorted());
        let agents = LocalAgents::find();
        let own = std::process::id();
        assert!(agents.found.iter().all(|agent| agent.pid != own));
    }

    #[test]
    fn a_program_that_only_maps_the_library_is_not_listed() {
        let of = |paths: &[&str]| {
            let lines = paths
                .iter()
                .map(|path| format!("7f00-7f01 r-xp 00000000 fe:00 1 {path}\n"));
            is_jvm_with_agent(&MappedFiles::parse(&lines.collect::<String>()))
        };
        let (jvm, agent) = (
            "/opt/java/lib/server/libjvm.so",
            "/opt/heapwarden/libheapwarden.so",
        );
        assert!(of(&[jvm, agent]));
        assert!(!of(&[jvm]) && !of(&[agent]));
    }
}
