//! `walks`: how long the JVM stands still for a walk of its heap, forked and in place, as a thread of it notices.
//!
//! A Java thread sleeps a millisecond again and again, and keeps its longest gap; nothing is subtracted from it. The
//! same JVM is walked forked a few times, with its first fork among them, and then once in place. Each figure is of
//! one walk: what it was predicted to take, what the call took, what the fork took, and the gap.

mod in_place;
mod report;
mod results;
mod rig;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use heapwarden_harness::jdk::Jdk;

use crate::collector::Collector;
use crate::jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use results::{Case, Results};
use rig::Rig;

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// Memory that the program holds, in MB
    #[arg(long, value_delimiter = ',', default_values_t = [300, 1000, 4000], value_name = "MB")]
    heaps: Vec<u32>,

    /// Only this JDK, by its release
    #[arg(long, value_name = "RELEASE")]
    jdk: Option<u32>,

    /// Every JDK, collector and size of pages with every heap; else the large heaps have a choice of them
    #[arg(long)]
    all: bool,

    /// Instead of forks: walks in place of ten services in one JVM, a slice beside the whole heap
    #[arg(long)]
    in_place: bool,

    /// The agent's library [default: built now]
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// Writes the results to bench/results as Markdown and JSON
    #[arg(long)]
    save: bool,
}

/// Below this a heap is measured with everything, larger ones with a choice, the largest on the newest JDK alone.
const MIDDLE_MB: u32 = 500;
const LARGE_MB: u32 = 2000;

/// Returns the cases to measure, each with its JDK.
fn cases(options: &Options, jdks: &[Jdk]) -> Vec<(Jdk, Case)> {
    let mut cases = Vec::new();
    for &heap_mb in &options.heaps {
        for (number, jdk) in jdks.iter().enumerate() {
            let is_newest = number + 1 == jdks.len();
            for collector in [Collector::G1, Collector::Parallel] {
                let is_g1 = collector == Collector::G1;
                let (is_chosen, forks) = match heap_mb {
                    ..MIDDLE_MB => (true, 3),
                    MIDDLE_MB..LARGE_MB => (is_newest || (number == 0 && is_g1), 2),
                    LARGE_MB.. => (is_newest && is_g1, 1),
                };
                if !(is_chosen || options.all) {
                    continue;
                }
                for huge_pages in [false, true] {
                    let case = Case {
                        jdk: jdk.feature,
                        collector: collector.name(),
                        flag: collector.flag(),
                        heap_mb,
                        huge_pages,
                        forks,
                    };
                    cases.push((jdk.clone(), case));
                }
            }
        }
    }
    cases
}

/// Builds, measures, prints.
///
/// # Errors
/// If something cannot be built, or a walk fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let jdks = jdk::of_releases(options.jdk.as_slice())?;
    let machine = Machine::here();
    println!("{machine}");
    println!("building the agent, the command and the program");
    let rig = Rig::build(&jdk::choose(None)?, options.agent.as_deref())?;
    if options.in_place {
        return in_place::run(&rig, machine, &jdks, &options.heaps, options.save);
    }
    let cases = cases(options, &jdks);
    let mut progress = Progress::of("JVM", cases.len() as u32);
    let mut results = Results::new(machine);
    for (number, (jdk, case)) in cases.into_iter().enumerate() {
        progress.show(number as u32, &case.name());
        results.rows.extend(rig.measure(&jdk, &case)?);
    }
    progress.done();
    saved::publish(&report::text(&results), options.save, || {
        report::save(&results)
    })
}
