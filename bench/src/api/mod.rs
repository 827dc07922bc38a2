//! `api`: what it costs to enter and to close a scope, by JMH (`bench/java/api`).
//!
//! The same benchmarks run with the agent and without it, on every JDK, round after round; a figure
//! is the median of the rounds, a ratio the median of the ratios to the baseline of the same round.
//! Beside it: what an allocation costs where every one is sampled, or one in 64 KiB, with a scope and
//! without, which shows what it takes the agent to read a thread's scope.

mod jmh;
mod report;
mod results;
mod setting;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::build;
use crate::jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use jmh::Rig;
use results::Results;
use setting::Setting;

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// The JDK, by its home or its `java` [default: every one found]
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// The agent's library [default: built now]
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// How often everything is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Milliseconds of one iteration; a benchmark has 4 to warm up and 5 that count
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(50..=60_000))]
    iteration_millis: u32,

    /// Writes the results to bench/results as Markdown and JSON
    #[arg(long)]
    save: bool,
}

/// Builds, measures, prints.
///
/// # Errors
/// Where something cannot be built, or JMH fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let jdks = jdk::every(options.java.as_deref())?;
    let machine = Machine::here();
    println!("{machine}");
    println!("building the agent and the benchmarks");
    let folder = build::fresh_folder("api")?;
    let agent = build::agent_or(options.agent.as_deref(), &folder)?;
    build::maven("api")?;
    let rig = Rig::new(folder, &agent, options.iteration_millis)?;
    let mut results = Results::new(machine, options.rounds, options.iteration_millis);
    let mut progress = Progress::new(options.rounds);
    for round in 0..options.rounds {
        for jdk in &jdks {
            let show = |progress: &mut Progress, what: &str, setting: Setting| {
                let text = format!("JDK {}, {what}, {}", jdk.feature, setting.name());
                progress.show(round, &text);
            };
            for setting in [Setting::Sampled, Setting::Absent] {
                show(&mut progress, "scopes", setting);
                results.add_scopes(jdk, setting, &rig.measure(jdk, setting, "api.Enter")?)?;
            }
            for setting in [Setting::Absent, Setting::Sampled, Setting::Exact] {
                show(&mut progress, "allocations", setting);
                results.add_allocations(
                    jdk,
                    setting,
                    &rig.measure(jdk, setting, "api.Allocate")?,
                )?;
            }
        }
    }
    progress.done();
    saved::publish(&report::text(&results), options.save, || {
        report::save(&results)
    })
}
