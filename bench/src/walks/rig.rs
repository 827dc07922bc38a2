//! One JVM with a heap, and walks of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use heapwarden_harness::repository;
use serde_json::Value;

use super::results::{Case, How, Row};
use crate::build;
use crate::jdk::Jdk;
use crate::jvm::Jvm;

/// The heap over what is held: a collector needs room.
const ROOM: f64 = 1.35;

/// What is built.
pub(crate) struct Rig {
    folder: PathBuf,
    agent: PathBuf,
    command: PathBuf,
    classes: PathBuf,
}

impl Rig {
    /// Builds all.
    pub(crate) fn build(compiler: &Jdk, agent: Option<&Path>) -> Result<Rig> {
        let folder = build::fresh_folder("walks")?;
        let agent = match agent {
            Some(path) => path
                .canonicalize()
                .with_context(|| format!("{} is not there", path.display()))?,
            None => build::agent(&folder)?,
        };
        build::command()?;
        Ok(Rig {
            classes: build::java(compiler, "walks", &[], &folder)?,
            command: repository::command(),
            agent,
            folder,
        })
    }

    /// Measures the walks of a case in one JVM.
    pub(crate) fn measure(&self, jdk: &Jdk, case: &Case) -> Result<Vec<Row>> {
        let run_file = self.folder.join("run.json");
        let heap_mb = (f64::from(case.heap_mb) * ROOM) as u32 + 64;
        let sign = if case.huge_pages { '+' } else { '-' };
        let arguments = [
            format!(
                "-agentpath:{}=listen=127.0.0.1:0,run-file={}",
                self.agent.display(),
                run_file.display()
            ),
            case.flag.to_owned(),
            format!("-Xms{heap_mb}m"),
            format!("-Xmx{heap_mb}m"),
            format!("-XX:{sign}UseTransparentHugePages"),
            "-cp".to_owned(),
            self.classes.display().to_string(),
            "walks.Watched".to_owned(),
            case.heap_mb.to_string(),
        ];
        let mut jvm = Jvm::start(jdk, &arguments, &self.folder.join("jvm.log"))?;
        jvm.until("ready")?;
        let mut rows = Vec::new();
        for number in 0..case.forks {
            rows.push(self.walk(&mut jvm, case, How::Forked { number })?);
        }
        rows.push(self.walk(&mut jvm, case, How::InPlace)?);
        Ok(rows)
    }

    fn walk(&self, jvm: &mut Jvm, case: &Case, how: How) -> Result<Row> {
        jvm.calm_down()?;
        jvm.go_on()?;
        jvm.until("watching")?;
        let began = Instant::now();
        let mut command = Command::new(&self.command);
        command.args(["paths", &jvm.id().to_string(), "--json"]);
        command.args(["--class", "walks.Watched$Marked[]"]);
        match how {
            How::Forked { .. } => command.args(["--max-pause", "60s"]),
            // A fork that may not stop it at all is never begun.
            How::InPlace => command.args(["--max-pause", "0ms", "--in-place", "600s"]),
        };
        let output = command.output().context("the command cannot be started")?;
        let took_s = began.elapsed().as_secs_f64();
        ensure!(
            output.status.success(),
            "no walk of {}: {}",
            case.name(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let found: Value = serde_json::from_slice(&output.stdout).context("the document")?;
        jvm.go_on()?;
        let said = jvm.until("ready")?;
        let gap_ns: f64 = said
            .first()
            .and_then(|line| line.parse().ok())
            .context("the JVM said no gap")?;
        let number = |key: &str| {
            let value = found[key].as_f64();
            value.with_context(|| format!("the document has no {key}"))
        };
        Ok(Row {
            case: case.clone(),
            how,
            predicted_ms: number("predicted_pause_ms")?,
            pause_ms: number("pause_ms")?,
            fork_ms: number("fork_ms")?,
            gap_ms: gap_ns / 1e6,
            references: number("references")? as u64,
            resident_mb: jvm.resident_bytes()? as f64 / 1e6,
            took_s,
        })
    }
}
