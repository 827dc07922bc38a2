//! Helpers for tests of `heapwarden paths` and `holders`: the commands, the child processes that walk a heap, and a
//! check that these leave nothing behind.

use heapwarden_harness::proc_files;
use std::process::{Command, Stdio};
use std::time::Duration;

use policy_report::Chain;

use crate::artifacts;
use crate::command::poll;
use crate::jvm::Jvm;

/// Longest that a walk may take: children have the lowest priority, and the machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(900);
/// The policy: many samples, so that every class has some.
pub const FINE: &str = "[sampling]\ninterval = \"4KiB\"\ncpu-budget = \"none\"\n";

/// `heapwarden SUBCOMMAND` of the process with this id, with arguments, and a pause for busy machines.
#[must_use]
pub fn command(of: u32, subcommand: &str, more: &[&str]) -> Command {
    let mut command = Command::new(artifacts::command());
    command
        .args([subcommand, &of.to_string()])
        .args(more)
        // For busy machines: what is predicted after a slow fork may be long.
        .args(["--max-pause", "60s"])
        .env("NO_COLOR", "1");
    command
}

/// A chain as one line, without the numbers of elements and of repeated steps.
#[must_use]
pub fn line(chain: &Chain<'_>) -> String {
    let steps = chain.steps.iter().map(|step| {
        let via = if step.via.starts_with('[') {
            "[*]"
        } else {
            &step.via
        };
        format!(" > {} {via}", step.class)
    });
    format!("{}{}", chain.root, steps.collect::<String>())
}

/// The children of a process, by id.
#[must_use]
pub fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let ids = list.split_whitespace();
            ids.filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

/// The children of a JVM that walk, by id, and theirs.
#[must_use]
pub fn walkers(jvm: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![jvm];
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            if proc_files::read(child, "comm").is_ok_and(|name| name.trim() == "heap-walk") {
                found.push(child);
                parents.push(child);
            }
        }
    }
    found
}

/// Children of a process that have ended and were not reaped.
#[must_use]
pub fn zombies(of: u32) -> Vec<String> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    all.flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let mut words = proc_files::behind_name(stat);
            words.next() == Some("Z") && words.next() == Some(&of.to_string())
        })
        .collect()
}

/// No child, no zombie, and no file.
///
/// # Panics
/// If there is one. A process that is ending has its time.
#[track_caller]
pub fn assert_no_traces(jvm: &Jvm, id: u32) {
    // With the lowest priority they take their time to end on a busy machine.
    let is_clean = poll(LIMIT, || walkers(id).is_empty().then_some(()));
    assert!(is_clean.is_some(), "children stay: {:?}", walkers(id));
    // The parent collects a child a moment after it has ended.
    let is_collected = poll(LIMIT, || zombies(id).is_empty().then_some(()));
    assert!(is_collected.is_some(), "zombies: {:?}", zombies(id));
    let prefix = format!("heapwarden-walk-{id}-");
    let left: Vec<_> = std::fs::read_dir("/tmp")
        .expect("/tmp is there")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let cores = std::fs::read_dir(jvm.folder())
        .expect("the JVM's folder")
        .flatten();
    for entry in cores {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            !name.starts_with("hs_err") && !name.starts_with("core"),
            "{name}"
        );
    }
}

/// Sends a signal (`-KILL`) to a process that a test has started, if it still is there.
pub fn signal(name: &str, id: u32) {
    // The process may have ended meanwhile.
    let _ = Command::new("kill")
        .args([name, &id.to_string()])
        .stderr(Stdio::null())
        .status();
}
