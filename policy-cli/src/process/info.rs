//! The facts about a process: gathered once, and then only read.

use super::arguments::{Arguments, program, variable};
use super::elf::Machine;
use super::maps::MappedFiles;
use super::printable;
use super::release::Release;
use super::status::Status;
use super::threads::Collector;

/// The facts about a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessInfo {
    /// Its id, as we see it.
    pub(crate) pid: u32,
    /// `/proc/PID/status`
    pub(crate) status: Status,
    /// Its command line, as bytes; the process may have rewritten it.
    pub(crate) command: Vec<u8>,
    /// The processor of its executable.
    pub(crate) machine: Option<Machine>,
    /// The files that it has mapped.
    pub(crate) files: MappedFiles,
    /// The arguments of the JVM.
    pub(crate) arguments: Arguments,
    /// Its `HEAPWARDEN_*` variables.
    pub(crate) environment: Environment,
    /// The `release` file of its Java home, if it is a JVM that has one.
    pub(crate) release: Option<Release>,
    /// Its collector, if it is a HotSpot.
    pub(crate) collector: Option<Collector>,
    /// Whether it sees the same files as this command.
    pub(crate) shares_files: bool,
    /// Whether it has the same network as this command.
    pub(crate) shares_network: bool,
    /// The container that it runs in, by the names of its control groups.
    pub(crate) container: Option<String>,
}

/// The variables of a JVM's environment that the agent reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// `HEAPWARDEN_CONFIG`
    pub(crate) config: Option<String>,
    /// `HEAPWARDEN_LISTEN`
    pub(crate) listen: Option<String>,
    /// `HEAPWARDEN_RUN_FILE`
    pub(crate) run_file: Option<String>,
    /// `HEAPWARDEN_LOG`
    pub(crate) log: Option<String>,
    /// `HEAPWARDEN_ENABLED`
    pub(crate) enabled: Option<String>,
}

impl Environment {
    pub(super) fn parse(environ: &[u8]) -> Environment {
        // The agent ignores an empty variable.
        let given = |name: &str| variable(environ, name).filter(|value| !value.is_empty());
        Environment {
            config: given("HEAPWARDEN_CONFIG"),
            listen: given("HEAPWARDEN_LISTEN"),
            run_file: given("HEAPWARDEN_RUN_FILE"),
            log: given("HEAPWARDEN_LOG"),
            enabled: given("HEAPWARDEN_ENABLED"),
        }
    }
}

impl ProcessInfo {
    /// Its id and name, for a message.
    pub(crate) fn title(&self) -> String {
        format!("process {} ({})", self.pid, printable(&self.status.name))
    }

    /// Its command line on one line.
    pub(crate) fn command_line(&self) -> String {
        let words = self.command.split(|byte| *byte == 0);
        let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
        printable(words.join(" ").trim_end())
    }

    /// Returns the name of what it runs: the main class, `module/class`, or the file name of the jar. As it came.
    pub(crate) fn program(&self) -> String {
        program(&self.command)
    }

    /// Whether a JVM's library is mapped.
    pub(crate) fn is_jvm(&self) -> bool {
        self.files.libjvm().is_some()
    }

    /// Whether it is OpenJ9, as far as its files tell.
    pub(crate) fn is_openj9(&self) -> bool {
        let variant = self.release.as_ref().map_or("", |release| &release.variant);
        self.files.has_openj9() || variant.eq_ignore_ascii_case("openj9")
    }

    /// The feature release of the JDK, where the `release` file tells it.
    pub(crate) fn feature(&self) -> Option<u32> {
        self.release.as_ref()?.feature()
    }

    /// One line: JDK, collector, C library, processor, container.
    pub(crate) fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(release) = &self.release {
            let vendor = match release.vendor.as_str() {
                "" => "JDK",
                vendor => vendor,
            };
            parts.push(printable(&format!("{vendor} {}", release.version)));
        } else if self.is_jvm() {
            parts.push("a JDK of unknown version".to_owned());
        }
        if self.is_jvm() {
            parts.push(
                if self.is_openj9() {
                    "OpenJ9"
                } else {
                    "HotSpot"
                }
                .to_owned(),
            );
        }
        parts.extend(
            self.collector
                .map(|collector| collector.as_str().to_owned()),
        );
        parts.extend(self.files.libc().map(|libc| libc.as_str().to_owned()));
        parts.extend(self.machine.map(Machine::name));
        if let Some(container) = &self.container {
            parts.push(format!("container {}", printable(container)));
        } else if !self.shares_files {
            parts.push("with its own files (a container)".to_owned());
        }
        parts.join(", ")
    }
}
