//! One JVM with a heap, and walks of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use heapwarden_harness::repository;
use serde_json::Value;

use super::results::{Case, How, Row};
use crate::build;
use crate::jdk::Jdk;
use crate::jvm::Jvm;
use crate::workshop::Workshop;

/// The heap over what is held: a collector needs room.
const ROOM: f64 = 1.35;

/// How long the JVM is watched while nothing happens.
const IDLE: Duration = Duration::from_millis(1500);

/// Ends watching; the longest gap.
fn gap_ms(jvm: &mut Jvm) -> Result<f64> {
    jvm.go_on()?;
    let said = jvm.until("ready")?;
    let gap_ns: f64 = said
        .first()
        .and_then(|line| line.parse().ok())
        .context("the JVM said no gap")?;
    Ok(gap_ns / 1e6)
}

/// The agent, the command and the program, as they were built, and the folder of the runs.
pub(crate) struct Rig {
    shop: Workshop,
    command: PathBuf,
}

impl Rig {
    /// Builds all.
    pub(crate) fn build(compiler: &Jdk, agent: Option<&Path>) -> Result<Rig> {
        build::command()?;
        Ok(Rig {
            shop: Workshop::build("walks", compiler, &[], agent)?,
            command: repository::command(),
        })
    }

    /// Starts the JVM of a case; `more` are further arguments of the program.
    fn start(&self, jdk: &Jdk, case: &Case, more: &[String]) -> Result<Jvm> {
        let heap_mb = (f64::from(case.heap_mb) * ROOM) as u32 + 64;
        let sign = if case.huge_pages { '+' } else { '-' };
        let mut arguments = vec![
            format!(
                "-agentpath:{}=listen=127.0.0.1:0,run-file={}",
                self.shop.agent.display(),
                self.shop.run_file().display()
            ),
            case.flag.to_owned(),
            format!("-Xms{heap_mb}m"),
            format!("-Xmx{heap_mb}m"),
            format!("-XX:{sign}UseTransparentHugePages"),
        ];
        arguments.extend(self.shop.class_path());
        arguments.extend(["walks.Watched".to_owned(), case.heap_mb.to_string()]);
        arguments.extend_from_slice(more);
        let mut jvm = self.shop.start(jdk, &arguments)?;
        jvm.until("ready")?;
        Ok(jvm)
    }

    /// Measures the walks of a case in one JVM.
    pub(crate) fn measure(&self, jdk: &Jdk, case: &Case) -> Result<Vec<Row>> {
        let mut jvm = self.start(jdk, case, &[])?;
        let mut rows = Vec::new();
        for number in 0..case.forks {
            rows.push(self.walk(&mut jvm, case, How::Forked { number })?);
        }
        rows.push(self.walk(&mut jvm, case, How::InPlace)?);
        Ok(rows)
    }

    /// Starts the JVM of a case whose heap is divided among services.
    pub(crate) fn start_services(&self, jdk: &Jdk, case: &Case, count: u32) -> Result<Jvm> {
        self.start(jdk, case, &[count.to_string()])
    }

    fn walk(&self, jvm: &mut Jvm, case: &Case, how: How) -> Result<Row> {
        let asked: &[&str] = match how {
            How::Forked { .. } => &["--max-pause", "60s"],
            // A fork that may not stop it at all is never begun.
            How::InPlace => &["--max-pause", "0ms", "--in-place", "600s"],
        };
        let class = ["--class", "walks.Held$Marked[]"];
        let asked = self.ask(jvm, &[&class, asked].concat())?;
        Ok(Row {
            case: case.clone(),
            how,
            predicted_ms: asked.number("predicted_pause_ms")?,
            most_predicted_ms: asked.number("most_predicted_pause_ms")?,
            idle_gap_ms: asked.idle_gap_ms,
            pause_ms: asked.number("pause_ms")?,
            fork_ms: asked.number("fork_ms")?,
            gap_ms: asked.gap_ms,
            references: asked.number("references")? as u64,
            resident_mb: jvm.resident_bytes()? as f64 / 1e6,
            took_s: asked.took_s,
        })
    }

    /// Asks `heapwarden paths` while the JVM is watched. An answer that found nothing is one.
    pub(crate) fn ask(&self, jvm: &mut Jvm, arguments: &[&str]) -> Result<Asked> {
        jvm.calm_down()?;
        jvm.go_on()?;
        jvm.until("watching")?;
        thread::sleep(IDLE);
        let idle_gap_ms = gap_ms(jvm)?;
        jvm.go_on()?;
        jvm.until("watching")?;
        let began = Instant::now();
        let mut command = Command::new(&self.command);
        command.args(["paths", &jvm.id().to_string(), "--json"]);
        let output = command.args(arguments).output();
        let output = output.context("the command cannot be started")?;
        let took_s = began.elapsed().as_secs_f64();
        let answer = serde_json::from_slice(&output.stdout).with_context(|| {
            let why = String::from_utf8_lossy(&output.stderr);
            format!("no walk ({}): {}", arguments.join(" "), why.trim())
        })?;
        Ok(Asked {
            answer,
            idle_gap_ms,
            gap_ms: gap_ms(jvm)?,
            took_s,
        })
    }
}

/// An answer, and what the JVM noticed of it.
pub(crate) struct Asked {
    pub(crate) answer: Value,
    pub(crate) idle_gap_ms: f64,
    pub(crate) gap_ms: f64,
    pub(crate) took_s: f64,
}

impl Asked {
    fn number(&self, key: &str) -> Result<f64> {
        let value = self.answer[key].as_f64();
        value.with_context(|| format!("the document has no {key}"))
    }
}
