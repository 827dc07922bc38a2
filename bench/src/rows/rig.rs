//! The built parts, and the command line of a JVM with each setting.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::published::Row;
use super::settings::Setting;
use crate::build;
use crate::collector::Collector;
use crate::gc_log;
use crate::jdk::Jdk;
use crate::jvm::ALIKE;

/// The heap of every run. Of one size, so that no collector's idea of growth is measured.
const HEAP: [&str; 2] = ["-Xms1g", "-Xmx1g"];
/// The young generation of collectors that would else choose its size by how long their pauses took: one
/// JVM collected four times where the next collected six times for the same work.
const YOUNG: &str = "-Xmn600m";

/// Everything that is built.
pub(crate) struct Rig {
    pub(crate) jdk: Jdk,
    collector: Collector,
    folder: PathBuf,
    agent: PathBuf,
    async_profiler: Option<PathBuf>,
    /// The workload's own arguments, the same in each run.
    amount: Vec<String>,
}

impl Rig {
    /// Builds the workloads, the agent unless it is given, and what these settings need. `amount`
    /// is passed to the workloads.
    ///
    /// # Errors
    /// Where something cannot be built, or async-profiler has no library for this machine.
    pub(crate) fn build(
        jdk: &Jdk,
        collector: Collector,
        agent: Option<&Path>,
        settings: &[Setting],
        amount: Vec<String>,
    ) -> Result<Rig> {
        let folder = build::fresh_folder("rows")?;
        build::maven("rows")?;
        let agent = build::agent_or(agent, &folder)?;
        let async_profiler = if settings.contains(&Setting::AsyncProfiler) {
            Some(async_profiler()?)
        } else {
            None
        };
        Ok(Rig {
            jdk: jdk.clone(),
            collector,
            folder,
            agent,
            async_profiler,
            amount,
        })
    }

    /// Returns the JVM flags that all runs have in common, to be saved with them.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = HEAP.map(str::to_owned).to_vec();
        flags.extend(
            self.collector
                .chooses_young_size()
                .then(|| YOUNG.to_owned()),
        );
        flags.extend([ALIKE, self.collector.flag()].map(str::to_owned));
        flags
    }

    /// Where the JVM with this setting writes something.
    pub(crate) fn file(&self, setting: Setting, name: &str) -> PathBuf {
        self.folder.join(format!("{setting}-{name}"))
    }

    /// Where the agent writes its address.
    pub(crate) fn run_file(&self, setting: Setting) -> PathBuf {
        self.file(setting, "run.json")
    }

    /// The JVM's log of its collections.
    pub(crate) fn gc_log(&self, setting: Setting) -> PathBuf {
        self.file(setting, "gc.log")
    }

    /// The arguments of a JVM that runs a row with a setting. Writes the setting's policy file.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn arguments(&self, row: &Row, setting: Setting) -> Result<Vec<String>> {
        let project = build::root().join("bench/java/rows/target");
        let project = project.display();
        let mut arguments = self.flags();
        // The JVM's own messages go to the standard error: the output is the workload's.
        arguments.extend(["-Xlog:disable", "-Xlog:all=warning:stderr"].map(str::to_owned));
        arguments.push(gc_log::flag(&self.gc_log(setting)));
        arguments.extend(self.guest(setting)?);
        arguments.extend([
            format!("-Drows.inputs={project}/inputs"),
            "-cp".to_owned(),
            format!("{project}/rows.jar:{project}/libraries/*"),
            "rows.Main".to_owned(),
            row.program.to_owned(),
            "--turns".to_owned(),
        ]);
        if let Some(warehouses) = row.warehouses {
            arguments.extend(["--threads".to_owned(), warehouses.to_string()]);
        }
        arguments.extend(self.amount.iter().cloned());
        Ok(arguments)
    }

    /// The argument that brings the setting into the JVM.
    fn guest(&self, setting: Setting) -> Result<Option<String>> {
        Ok(match setting {
            Setting::Plain => None,
            // The file is written when the JVM ends; until then the events lie in a folder of the JVM's.
            Setting::Jfr => Some(format!(
                "-XX:StartFlightRecording:settings={},filename={}",
                build::root()
                    .join("bench/java/profilers/memory-leaks.jfc")
                    .display(),
                self.file(setting, "recording.jfr").display()
            )),
            // Its own default interval, 512 KiB.
            Setting::AsyncProfiler => {
                let library = self
                    .async_profiler
                    .as_ref()
                    .context("async-profiler was not built")?;
                Some(format!(
                    "-agentpath:{}=start,event=alloc,live,file={}",
                    library.display(),
                    self.file(setting, "async-profiler.jfr").display()
                ))
            }
            ours => {
                let mut options = format!(
                    "listen=127.0.0.1:0,run-file={}",
                    self.run_file(setting).display()
                );
                options.push_str(setting.option());
                if let Some(policy) = ours.policy() {
                    let config = self.file(setting, "heapwarden.toml");
                    std::fs::write(&config, policy)
                        .with_context(|| format!("{} cannot be written", config.display()))?;
                    options.push_str(&format!(",config={}", config.display()));
                }
                Some(format!("-agentpath:{}={options}", self.agent.display()))
            }
        })
    }
}

/// Its library for this machine, from its artifact.
fn async_profiler() -> Result<PathBuf> {
    let platform = match std::env::consts::ARCH {
        "x86_64" => "linux-x64",
        "aarch64" => "linux-arm64",
        other => bail!("async-profiler has no library for {other}; leave it out of --with"),
    };
    build::maven("profilers")?;
    let library = build::root()
        .join("bench/java/profilers/target/async-profiler")
        .join(platform)
        .join("libasyncProfiler.so");
    library
        .canonicalize()
        .with_context(|| format!("{} is not there", library.display()))
}
