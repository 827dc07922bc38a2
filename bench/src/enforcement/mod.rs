//! `enforcement`: how far a service gets beyond its limit, and what stopping it costs.
//!
//! Programs that know to the byte what they hold run in JVMs of their own, on every JDK and
//! collector found: a leak, for the overshoot, the lag and the recovery; a service that lives at
//! its limit, for what its evidence costs; and one that stays within it, for what it is made to
//! pay. The rounds go through all JVMs in turn, so that a machine that slows down for a while
//! slows down all.
//!
//! Beside them, applications of others are loaded past their limits: [`applications`].

mod applications;
mod cases;
mod our_pauses;
mod report;
mod results;
mod rig;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::collector::Collector;
use crate::jdk::{self, Jdk};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use cases::{LEAKS, Vm};
use results::{Results, VmResults};
use rig::Rig;

/// The kind of program that is loaded past its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Programs that know to the byte what they hold
    Programs,
    /// Servers of others, behind their doors
    Applications,
}

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// Kinds of programs to load past their limit, separated by commas [default: both]
    #[arg(long, value_delimiter = ',')]
    of: Vec<Of>,

    /// A JDK, by its home or its `java` [default: every one found]
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// Collectors, separated by commas [default: every one that the JDK has]
    #[arg(long, value_delimiter = ',')]
    collectors: Vec<Collector>,

    /// Applications of others by name, such as `rdf4j,eureka` [default: every one]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    applications: Vec<String>,

    /// Each application meets every Nth JVM in a round, and others in the next
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    share: u32,

    /// Processes that keep processors busy while applications are loaded
    #[arg(long, value_name = "PROCESSES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    busy: u32,

    /// Reports on saved runs of applications again, and loads nothing
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,

    /// Runs of each leak and of each application, each a JVM of its own; there are four leaks
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Seconds of each run of a service that lives at its limit or within it
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// Writes the results to bench/results as Markdown and JSON
    #[arg(long)]
    save: bool,
}

/// Builds, measures, prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(file) = &options.again {
        return applications::report_again(file, options.save);
    }
    let wanted = |of: Of| options.of.is_empty() || options.of.contains(&of);
    if wanted(Of::Programs) {
        run_programs(options)?;
    }
    if wanted(Of::Applications) {
        let jdk = options.java.as_deref().map(Jdk::at).transpose()?;
        let plan = applications::Plan {
            applications: &options.applications,
            jdk: jdk.as_ref(),
            collectors: &options.collectors,
            rounds: options.rounds,
            share: options.share,
            busy: options.busy,
        };
        applications::run(&plan, options.save)?;
    }
    Ok(())
}

fn run_programs(options: &Options) -> Result<()> {
    let jdks = jdk::every(options.java.as_deref())?;
    let vms = vms(&jdks, &options.collectors);
    ensure!(!vms.is_empty(), "no JDK here has any of these collectors");
    let machine = Machine::here();
    println!("{machine}");
    println!("building the agent and the programs");
    let rig = Rig::build(&jdks[0])?;
    let mut results = Results {
        jdks: jdks.iter().map(|jdk| jdk.name()).collect(),
        machine,
        rounds: options.rounds,
        vms: vms
            .iter()
            .map(|vm| VmResults::new(vm.to_string()))
            .collect(),
    };
    let mut progress = Progress::new(options.rounds);
    for round in 0..options.rounds {
        for (vm, results) in vms.iter().zip(&mut results.vms) {
            progress.show(round, &vm.to_string());
            measure(&rig, vm, options.seconds, round, results)
                .with_context(|| format!("on {vm}"))?;
        }
    }
    progress.done();
    saved::publish(&report::text(&results), options.save, || {
        report::save(&results)
    })
}

/// Each JDK with each of these collectors that it has; with each at all, where none is named.
fn vms(jdks: &[Jdk], collectors: &[Collector]) -> Vec<Vm> {
    let wanted = |collector: &Collector| collectors.is_empty() || collectors.contains(collector);
    let mut vms = Vec::new();
    for jdk in jdks {
        let all = Collector::value_variants().iter().copied();
        for collector in all.filter(wanted).filter(|collector| collector.is_in(jdk)) {
            vms.push(Vm {
                jdk: jdk.clone(),
                collector,
            });
        }
    }
    vms
}

/// One round in one JVM's turn.
fn measure(rig: &Rig, vm: &Vm, seconds: u32, round: u32, results: &mut VmResults) -> Result<()> {
    for leak in LEAKS {
        // One thread and eight let go of the same: to time the recovery, half the runs are enough.
        let (stopped, recovery_ms) = rig.leak(vm, leak, leak.threads == 1)?;
        results.add_leak(leak, stopped);
        results.recovery_ms.extend(recovery_ms);
    }
    results.add_bounce(rig.bounce(vm, seconds)?);
    // Whose turn it is first alternates.
    let first = round.is_multiple_of(2);
    let one = rig.churn(vm, first, seconds)?;
    let other = rig.churn(vm, !first, seconds)?;
    let ((limited, cost), (free, _)) = if first { (one, other) } else { (other, one) };
    results.add_churn(limited, free, cost);
    Ok(())
}
