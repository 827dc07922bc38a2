//! One round of a workload, a run with each setting, and what is read of them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::memory::Memory;
use super::published::Row;
use super::rig::Rig;
use super::runs::{AgentFigures, Program, Run, live_bytes};
use super::settings::Setting;
use super::turns;
use crate::gc_log::{self, Pauses};
use crate::jvm::Jvm;
use crate::scrape::{Listener, Metrics};

/// Longest silence of a workload: its warm-up, or its timed part, where every allocation is
/// sampled and the machine has other work to do.
const PATIENCE: Duration = Duration::from_secs(900);

const CPU_SECONDS: &str = "heapwarden_agent_cpu_seconds_total";
const MEMORY_BYTES: &str = "heapwarden_agent_memory_bytes";
const SAMPLES: &str = "heapwarden_samples_total";
const DROPPED: &str = "heapwarden_samples_dropped_total";
const REFUSALS: &str = "heapwarden_account_refusals_total";
const ALLOCATED: &str = "heapwarden_account_allocated_bytes_total";
const UNACCOUNTED: &str = "heapwarden_account_allocated_bytes_total{account=\"_unaccounted\"}";

/// The agent's totals at a moment: processor time by its parts, and samples.
struct Said {
    cpu_seconds: BTreeMap<String, f64>,
    samples: f64,
    dropped: f64,
}

/// Where a JVM waits.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// Before an iteration.
    Turn,
    /// After its last.
    End,
}

/// A JVM with a setting, which takes turns with others.
struct Player<'a> {
    rig: &'a Rig,
    setting: Setting,
    jvm: Jvm,
    at: At,
    listener: Option<Listener>,
    /// Once its timed part has begun.
    begun: Option<Begun>,
    /// Once that has ended.
    ended: Option<Ended>,
}

struct Begun {
    said: Option<Said>,
    log_bytes: usize,
}

struct Ended {
    program: Program,
    memory: Memory,
    pauses: Pauses,
    agent: Option<AgentFigures>,
}

/// Runs a row with each setting, each in a JVM of its own; all are alive at once, and one of them
/// works at a time, an iteration after the other's: this machine's pace changes by a third from one
/// minute to the next, and hardly from one second to the next.
///
/// A failure is given back as such, and the others go on: where the JVM or the workload fails or
/// hangs, or the agent did not do its work (what does nothing costs nothing).
pub(crate) fn measure(
    rig: &Rig,
    row: &Row,
    settings: &[Setting],
    pair: u32,
) -> Vec<(Setting, Result<Run>)> {
    let mut done = Vec::new();
    let mut players = Vec::new();
    for setting in settings {
        match Player::start(rig, row, *setting) {
            Ok(player) => players.push(player),
            Err(error) => done.push((*setting, Err(error))),
        }
    }
    if pair % 2 == 1 {
        players.reverse();
    }
    let (players, failed) = turns::take(players);
    let failed = failed.into_iter();
    done.extend(failed.map(|(setting, error)| (setting, Err(error))));
    let last = |player: Player<'_>| (player.setting, player.finish(row, pair));
    done.extend(players.into_iter().map(last));
    done
}

impl<'a> Player<'a> {
    /// Starts the JVM, up to its first turn.
    fn start(rig: &'a Rig, row: &Row, setting: Setting) -> Result<Player<'a>> {
        for stale in [rig.run_file(setting), rig.gc_log(setting)] {
            let _ = fs::remove_file(stale);
        }
        let arguments = rig.arguments(row, setting)?;
        let jvm = Jvm::start(&rig.jdk, &arguments, &rig.file(setting, "jvm.log"))?;
        let mut player = Player {
            rig,
            setting,
            jvm,
            at: At::Turn,
            listener: None,
            begun: None,
            ended: None,
        };
        player.arrive()?;
        Ok(player)
    }

    /// Waits until it waits, and looks at it where its timed part begins or ends.
    fn arrive(&mut self) -> Result<()> {
        let words = ["turn", "begin", "end"];
        let (mut word, mut lines) = self.jvm.until_one_of(&words, PATIENCE)?;
        if word == "begin" {
            self.begin()?;
            self.jvm.go_on()?;
            (word, lines) = self.jvm.until_one_of(&words, PATIENCE)?;
        }
        if word == "end" {
            self.end(&lines)?;
        }
        self.jvm.calm_down()
    }

    fn begin(&mut self) -> Result<()> {
        if self.setting.is_ours() {
            self.listener = Some(self.jvm.listener(&self.rig.run_file(self.setting))?);
        }
        self.begun = Some(Begun {
            said: self.listener.as_ref().map(Said::now).transpose()?,
            log_bytes: self.log()?.len(),
        });
        Ok(())
    }

    fn end(&mut self, lines: &[String]) -> Result<()> {
        self.at = At::End;
        let begun = self.begun.as_ref().context("it ended before it began")?;
        let log = self.log()?;
        // Before the agent is asked: its answer takes memory.
        let memory = Memory::of(&self.jvm, gc_log::heap(&log))?;
        let agent = match (&self.listener, &begun.said) {
            (Some(listener), Some(before)) => Some(figures(listener, before, self.setting)?),
            _ => None,
        };
        let timed = log
            .get(begun.log_bytes..)
            .context("the log of collections has shrunk")?;
        self.ended = Some(Ended {
            program: Program::read(lines)?,
            memory,
            pauses: Pauses::of(timed),
            agent,
        });
        Ok(())
    }

    /// Full collections, and its end.
    fn finish(mut self, row: &Row, pair: u32) -> Result<Run> {
        let Ended {
            program,
            memory,
            pauses,
            agent,
        } = self.ended.take().context("it has not ended")?;
        self.jvm.go_on()?;
        let live_bytes = live_bytes(&self.jvm.until_within("collected", PATIENCE)?)?;
        let memory_after_collection = Memory::of(&self.jvm, gc_log::heap(&self.log()?))?;
        self.jvm.finish()?;
        Ok(Run {
            row: row.name.to_owned(),
            setting: self.setting,
            pair,
            program,
            live_bytes,
            memory,
            memory_after_collection,
            collections: pauses.collections,
            // Not `sum`: of nothing, that is -0.
            pauses_ms: pauses.ms.iter().fold(0.0, |sum, ms| sum + ms),
            longest_pause_ms: pauses.ms.iter().copied().fold(0.0, f64::max),
            agent,
        })
    }

    fn log(&self) -> Result<String> {
        fs::read_to_string(self.rig.gc_log(self.setting))
            .context("the JVM has logged no collections")
    }
}

impl Said {
    fn now(listener: &Listener) -> Result<Said> {
        Said::of(&listener.metrics()?)
    }

    fn of(metrics: &Metrics) -> Result<Said> {
        Ok(Said {
            cpu_seconds: metrics.by_label(CPU_SECONDS)?,
            samples: metrics.sum(SAMPLES)?,
            dropped: metrics.sum(DROPPED)?,
        })
    }
}

impl turns::Player for Player<'_> {
    type Name = Setting;

    fn name(&self) -> Setting {
        self.setting
    }

    fn goes_on(&self) -> bool {
        self.at == At::Turn
    }

    /// One iteration.
    fn turn(&mut self) -> Result<()> {
        self.jvm.go_on()?;
        self.arrive()
    }
}

fn figures(listener: &Listener, before: &Said, setting: Setting) -> Result<AgentFigures> {
    let metrics = listener.metrics()?;
    let after = Said::of(&metrics)?;
    let allocated = metrics.sum(ALLOCATED)?;
    let mut cpu_seconds = after.cpu_seconds;
    for (part, seconds) in &mut cpu_seconds {
        *seconds -= before.cpu_seconds.get(part).copied().unwrap_or(0.0);
    }
    let figures = AgentFigures {
        cpu_seconds,
        samples: after.samples - before.samples,
        dropped: after.dropped - before.dropped,
        memory_bytes: metrics.sum(MEMORY_BYTES)?,
        accounted_share: 1.0 - metrics.value(UNACCOUNTED)? / allocated.max(1.0),
    };
    ensure!(figures.samples > 0.0, "the agent took no sample");
    ensure!(
        !setting.has_accounts() || figures.accounted_share > 0.0,
        "the agent charged no account of its policy"
    );
    let refusals = metrics.sum(REFUSALS)?;
    ensure!(refusals == 0.0, "the agent refused {refusals} allocations");
    Ok(figures)
}
