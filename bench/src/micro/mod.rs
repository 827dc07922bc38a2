//! `micro`: one sample, looked at closely.
//!
//! The callback of the agent as built, and the bare JVM TI calls that it cannot do without, run
//! the same programs under one stopwatch (`bench/c/stopwatch.c`), in JVMs of their own that take
//! turns: A B, B A, A B. Each figure is the median of the rounds; a ratio is the median of the
//! ratios within each round, so that a machine that slows down for a while slows down both.

mod cases;
mod memory;
mod report;
mod results;
mod rig;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use cases::{ACCOUNTS, DEPTH_OF_ACCOUNTS, DEPTHS, Policy};
use results::Results;
use rig::{Job, Rig, Timed, Who};

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// The JDK, by its home or its `java` [default: the newest found]
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// Pairs of runs for each figure
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Samples timed at each depth with warm code, in each run
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    samples: u32,

    /// New stacks timed at each depth, in each run
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(50..100_000))]
    stacks: u32,

    /// Writes the results to bench/results as Markdown and JSON
    #[arg(long)]
    save: bool,
}

/// Builds, measures, prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let jdk = jdk::choose(options.java.as_deref())?;
    let machine = Machine::here();
    println!("JDK {}, {machine}", jdk.name());
    println!("building the agent, the bare agent and the programs");
    let rig = Rig::build(&jdk)?;
    let mut results = Results::new(jdk.name(), machine, options.rounds);
    let mut progress = Progress::new(options.rounds);
    for round in 0..options.rounds {
        let pair = |job: &Job| pair(&rig, job, round);
        for policy in Policy::ALL {
            progress.show(round, policy.name());
            let warm = pair(&by_depth(policy, false, options.samples))?;
            results.add_depths(policy, false, warm);
            if policy != Policy::Services {
                let cold = pair(&by_depth(policy, true, options.stacks))?;
                results.add_depths(policy, true, cold);
            }
        }
        for accounts in ACCOUNTS {
            progress.show(round, &format!("{accounts} accounts"));
            results.add_accounts(
                "package accounts",
                accounts,
                pair(&packages(accounts, options))?,
            );
            results.add_accounts("services", accounts, pair(&services(accounts, options))?);
        }
    }
    progress.show(options.rounds - 1, "memory");
    for accounts in [ACCOUNTS[0], ACCOUNTS[ACCOUNTS.len() - 1]] {
        results.add_memory(
            Who::Ours,
            accounts,
            memory::measure(&rig, Who::Ours, accounts)?,
        );
    }
    results.add_memory(Who::Bare, 0, memory::measure(&rig, Who::Bare, 0)?);
    progress.done();
    saved::publish(&report::text(&results), options.save, || {
        report::save(&results)
    })
}

/// One round of a job: both, whose turn it is first alternates.
fn pair(rig: &Rig, job: &Job, round: u32) -> Result<(Vec<Timed>, Vec<Timed>)> {
    if round.is_multiple_of(2) {
        let ours = rig.time(Who::Ours, job)?;
        Ok((ours, rig.time(Who::Bare, job)?))
    } else {
        let bare = rig.time(Who::Bare, job)?;
        Ok((rig.time(Who::Ours, job)?, bare))
    }
}

fn by_depth(policy: Policy, cold: bool, samples: u32) -> Job {
    let class = if cold { "micro.Cold" } else { "micro.Warm" };
    let mut program = vec![class.to_owned(), samples.to_string()];
    program.extend(DEPTHS.map(|depth| depth.to_string()));
    Job {
        policy,
        accounts: 1,
        cold,
        program,
    }
}

fn packages(accounts: usize, options: &Options) -> Job {
    let depth = DEPTH_OF_ACCOUNTS.to_string();
    let program = ["micro.Warm".to_owned(), options.samples.to_string(), depth];
    Job {
        policy: Policy::NothingFound,
        accounts,
        cold: false,
        program: program.to_vec(),
    }
}

fn services(count: usize, options: &Options) -> Job {
    let program = [
        "micro.Services".to_owned(),
        count.to_string(),
        options.samples.to_string(),
        DEPTH_OF_ACCOUNTS.to_string(),
    ];
    Job {
        policy: Policy::Services,
        accounts: 1,
        cold: false,
        program: program.to_vec(),
    }
}
