//! The built parts, and the command line of a JVM.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::plan::{Point, Program, TIMED_MS, depths};
use super::settings::Setting;
use crate::build;
use crate::gc_log;
use crate::jdk::Jdk;
use crate::jvm::ALIKE;

/// Of one size, so that no collector's idea of growth is measured.
const HEAP: [&str; 3] = ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC"];

/// Everything that is built, for one JDK.
pub(crate) struct Rig {
    pub(crate) jdk: Jdk,
    folder: PathBuf,
    agent: PathBuf,
    classes: PathBuf,
}

impl Rig {
    /// Builds all.
    ///
    /// # Errors
    /// Where the agent or the programs cannot be built.
    pub(crate) fn build(jdk: &Jdk) -> Result<Rig> {
        let folder = build::fresh_folder("curves")?;
        let chains: Vec<_> = depths()
            .map(|depth| build::chain_source("curves", depth))
            .collect();
        Ok(Rig {
            classes: build::java(jdk, "curves", &chains, &folder)?,
            agent: build::agent(&folder)?,
            jdk: jdk.clone(),
            folder,
        })
    }

    /// Returns the JVM flags that all runs have in common, to be saved with them; a JVM that only says hello compiles
    /// as JVMs do, for that is a part of what is measured.
    pub(crate) fn flags() -> Vec<String> {
        let flags = HEAP.iter().chain([&ALIKE]);
        flags.map(|&flag| flag.to_owned()).collect()
    }

    /// A file of the running JVM.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where the agent writes its address.
    pub(crate) fn run_file(&self) -> PathBuf {
        self.file("run.json")
    }

    /// The JVM's log of its collections.
    pub(crate) fn gc_log(&self) -> PathBuf {
        self.file("gc.log")
    }

    /// Writes the policy file that the agent reads.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn write_policy(&self, text: &str) -> Result<()> {
        let config = self.config();
        std::fs::write(&config, text)
            .with_context(|| format!("{} cannot be written", config.display()))
    }

    fn config(&self) -> PathBuf {
        self.file("heapwarden.toml")
    }

    /// The arguments of a JVM that runs a point with a setting; so many operations, 0 to find out how
    /// many.
    pub(crate) fn arguments(
        &self,
        point: &Point,
        setting: &Setting,
        operations: u64,
    ) -> Vec<String> {
        let mut arguments = Rig::flags();
        arguments.extend(point.flags.iter().map(|&flag| flag.to_owned()));
        if setting.policy.is_some() {
            arguments.push(format!(
                "-agentpath:{}=config={},listen=127.0.0.1:0,run-file={}",
                self.agent.display(),
                self.config().display(),
                self.run_file().display()
            ));
        }
        if point.program == Program::Hello {
            arguments.retain(|flag| flag != ALIKE);
        } else {
            arguments.push(gc_log::flag(&self.gc_log()));
        }
        arguments.extend(["-cp".to_owned(), self.classes.display().to_string()]);
        match point.program {
            Program::Hello => arguments.push("curves.Hello".to_owned()),
            Program::Account => arguments.push("curves.Account".to_owned()),
            Program::Work => arguments.extend([
                "curves.Main".to_owned(),
                operations.to_string(),
                TIMED_MS.to_string(),
            ]),
        }
        arguments.extend(point.arguments.iter().cloned());
        arguments
    }
}
