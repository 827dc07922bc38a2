//! A benchmark's parts as they were built, the files of its runs, and the JVMs that are started with them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::build;
use crate::jdk::Jdk;
use crate::jvm::Jvm;

/// The agent and the programs of `bench/java/NAME`, in a folder of the benchmark's own.
pub(crate) struct Workshop {
    pub(crate) folder: PathBuf,
    /// The agent's library.
    pub(crate) agent: PathBuf,
    classes: PathBuf,
}

impl Workshop {
    /// Builds the programs, with `generated` ones beside them, and the agent unless it is given.
    ///
    /// # Errors
    /// If something cannot be built.
    pub(crate) fn build(
        name: &str,
        jdk: &Jdk,
        generated: &[(String, String)],
        agent: Option<&Path>,
    ) -> Result<Workshop> {
        let folder = build::fresh_folder(name)?;
        Ok(Workshop {
            classes: build::java(jdk, name, generated, &folder)?,
            agent: build::agent_or(agent, &folder)?,
            folder,
        })
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
    /// If it cannot be written.
    pub(crate) fn write_policy(&self, text: &str) -> Result<()> {
        let config = self.config();
        std::fs::write(&config, text)
            .with_context(|| format!("{} cannot be written", config.display()))
    }

    fn config(&self) -> PathBuf {
        self.file("heapwarden.toml")
    }

    /// The agent's options: its policy, any free port, and where it writes its address.
    pub(crate) fn options(&self) -> String {
        format!(
            "config={},listen=127.0.0.1:0,run-file={}",
            self.config().display(),
            self.run_file().display()
        )
    }

    /// The JVM's argument that loads the agent with its policy.
    pub(crate) fn agent_path(&self) -> String {
        format!("-agentpath:{}={}", self.agent.display(), self.options())
    }

    /// The JVM's arguments that name the programs.
    pub(crate) fn class_path(&self) -> [String; 2] {
        ["-cp".to_owned(), self.classes.display().to_string()]
    }

    /// Starts a JVM.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(&self, jdk: &Jdk, arguments: &[String]) -> Result<Jvm> {
        Jvm::start(jdk, arguments, &self.file("jvm.log"))
    }
}
