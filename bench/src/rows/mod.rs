//! `rows`: the benchmarks by which the papers told their cost, with Heapwarden and without.
//!
//! The workloads are those of ASGMemProf's table 1, on today's libraries (`bench/java/rows`). Each run
//! is a JVM of its own. A round runs each row with each setting, all at once and in turns, an iteration
//! each; only runs of one row and one round are compared. What fails is reported and left out, and the
//! others go on.

mod aims;
mod figures;
mod measure;
mod memory;
mod published;
mod report;
mod rig;
mod runs;
mod settings;
mod tables;
mod turns;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;

use crate::collector::Collector;
use crate::jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use figures::Comparisons;
use published::{ROWS, Row};
use rig::Rig;
use runs::{Failure, Runs};
use settings::{Chosen, Setting};

/// After so many failures a row is run with that setting no more: each may have cost a long wait.
const MAX_FAILURES: usize = 2;
/// Characters that are kept of an error; a JVM may have a lot to say.
const LONGEST_ERROR: usize = 2_000;

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rows, separated by commas [default: each; the order system `jbb` with 4 warehouses alone,
    /// the others are jbb-1, jbb-2 and jbb-3]
    #[arg(long, value_name = "ROW", value_delimiter = ',', value_parser = row)]
    only: Vec<&'static Row>,

    /// Settings to measure beside plain and heapwarden, separated by commas: 512KiB, 64KiB, 16KiB, exact,
    /// exact-accounts, contexts, policy-1, policy-20, limits, jfr, async-profiler, or all; and what a part costs: again
    /// (heapwarden once more), without-leaks
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    with: Vec<Chosen>,

    /// Rounds; 0 reports on what --add names
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pairs: u32,

    /// Iterations that are not timed, first in each run [default: each row's own]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    warmups: Option<u32>,

    /// Iterations that are timed in each run [default: each row's own]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    iterations: Option<u32>,

    /// The JDK, by its home or its `java` [default: the newest found]
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// The agent's library [default: built now]
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// The collector of all runs
    #[arg(long, value_enum, default_value_t = Collector::G1)]
    collector: Collector,

    /// Results saved before, separated by commas, whose runs are put before these
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    add: Vec<PathBuf>,

    /// Writes the results to bench/results as Markdown and JSON, after each round
    #[arg(long)]
    save: bool,
}

fn row(name: &str) -> Result<&'static Row, String> {
    Row::named(name).ok_or_else(|| {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        format!("there are: {}", names.join(", "))
    })
}

impl Options {
    fn rows(&self) -> Vec<&'static Row> {
        let chosen = |row: &&Row| match self.only.as_slice() {
            [] => row.is_default(),
            only => only.iter().any(|one| one.name == row.name),
        };
        ROWS.iter().filter(chosen).collect()
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = vec![Setting::Plain, Setting::Heapwarden];
        settings.extend(self.with.iter().flat_map(|Chosen(some)| some));
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    /// Returns the arguments that tell the workloads how much to do.
    fn amount(&self) -> Vec<String> {
        let told = [
            ("--warmups", self.warmups),
            ("--iterations", self.iterations),
        ];
        told.iter()
            .filter_map(|(name, number)| Some([(*name).to_owned(), (*number)?.to_string()]))
            .flatten()
            .collect()
    }
}

/// Builds, measures, prints.
///
/// # Errors
/// Where nothing can be measured; and after all, where some runs failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let earlier = earlier(&options.add)?;
    let runs = if options.pairs == 0 {
        earlier.context("nothing to report: name saved results with --add")?
    } else {
        measured(options, earlier)?
    };
    let figures = Comparisons::of(&runs);
    let verdicts = aims::verdicts(&figures);
    saved::publish(
        &report::text(&runs, &figures, &verdicts),
        options.save,
        || save(&runs),
    )?;
    let mut failed: Vec<String> = runs
        .failures
        .iter()
        .map(|failure| format!("{} with {}", failure.row, failure.setting))
        .collect();
    failed.dedup();
    if !failed.is_empty() {
        bail!("some runs failed: {}", failed.join(", "));
    }
    Ok(())
}

/// The runs of saved results, put together.
fn earlier(files: &[PathBuf]) -> Result<Option<Runs>> {
    let mut all: Option<Runs> = None;
    for file in files {
        let mut runs: Runs = saved::read(file, "is no result of this benchmark")?;
        if let Some(before) = all {
            runs.add_earlier(before).with_context(|| {
                format!("{} cannot be put together with the others", file.display())
            })?;
        }
        all = Some(runs);
    }
    Ok(all)
}

fn measured(options: &Options, earlier: Option<Runs>) -> Result<Runs> {
    let (rows, settings) = (options.rows(), options.settings());
    let jdk = jdk::choose(options.java.as_deref())?;
    ensure!(
        options.collector.is_in(&jdk),
        "JDK {} has no {}",
        jdk.name(),
        options.collector.name()
    );
    let machine = Machine::here();
    println!("JDK {}, {machine}", jdk.name());
    println!("building the workloads and what is put into their JVMs");
    let agent = options.agent.as_deref();
    let rig = Rig::build(&jdk, options.collector, agent, &settings, options.amount())?;
    let mut runs = Runs {
        machine,
        jdk: jdk.name(),
        collector: options.collector.name().to_owned(),
        flags: rig.flags(),
        runs: Vec::new(),
        failures: Vec::new(),
    };
    if let Some(earlier) = earlier {
        runs.add_earlier(earlier)
            .context("the earlier results can't be added to")?;
    }
    let first = runs.next_pair();
    let steps = rows.len() * options.pairs as usize;
    let mut progress = Progress::of("round of a row", u32::try_from(steps).unwrap_or(u32::MAX));
    let mut step = 0;
    for pair in first..first + options.pairs {
        for row in &rows {
            progress.show(step, row.name);
            step += 1;
            attempt(&rig, row, &settings, pair, &mut runs);
        }
        if options.save {
            save(&runs)?;
        }
    }
    progress.done();
    Ok(runs)
}

/// A run with each setting, or their failures.
fn attempt(rig: &Rig, row: &Row, settings: &[Setting], pair: u32, runs: &mut Runs) {
    let mut settings = settings.to_vec();
    settings.retain(|setting| runs.failures_of(row.name, *setting) < MAX_FAILURES);
    for (setting, measured) in measure::measure(rig, row, &settings, pair) {
        let Err(error) = measured.and_then(|run| runs.add(run)) else {
            continue;
        };
        eprintln!("\n{} with {setting} failed: {error:#}", row.name);
        let error: String = format!("{error:#}").chars().take(LONGEST_ERROR).collect();
        runs.failures.push(Failure {
            row: row.name.to_owned(),
            setting,
            pair,
            error,
        });
    }
}

/// The content of the saved JSON file: the raw runs, which `--add` takes, and for readers the comparisons that follow
/// from them.
#[derive(Serialize)]
struct Saved<'a> {
    #[serde(flatten)]
    runs: &'a Runs,
    comparisons: &'a Comparisons,
}

fn save(runs: &Runs) -> Result<[PathBuf; 2]> {
    let comparisons = &Comparisons::of(runs);
    let verdicts = aims::verdicts(comparisons);
    let text = report::preamble(runs) + &report::text(runs, comparisons, &verdicts);
    let saved = Saved { runs, comparisons };
    saved::save("rows", &runs.machine.date, text, &saved, &verdicts)
}
