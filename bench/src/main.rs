//! Measures the cost of Heapwarden on this machine, side by side with what it is held against.
//!
//! A module a benchmark; what they share (JDK, machine, running JVM, tables) lies beside them.

mod api;
mod bootstrap;
mod build;
mod calm;
mod collector;
mod curves;
mod enforcement;
mod gc_log;
mod jdk;
mod jvm;
mod machine;
mod micro;
mod planner;
mod progress;
mod rows;
mod saved;
mod scrape;
mod stats;
mod table;
mod verdicts;
mod walks;
mod workshop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    about = "What Heapwarden costs on this machine",
    version
)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// One sample: the callback beside the bare JVM TI calls it needs, and its memory
    Micro(micro::Options),
    /// Refusals: overshoot, lag, what the evidence costs, recovery; every JDK and collector
    Enforcement(enforcement::Options),
    /// Below a limit: throughput of a service that holds most of it, with limits and without
    Calm(calm::Options),
    /// The Java API: to enter and to close a scope, beside a thread-local, by JMH
    Api(api::Options),
    /// The papers' benchmarks: time, memory and pauses with and without, beside JFR and async-profiler
    Rows(rows::Options),
    /// How the cost grows: by allocation rate, depth, threads, live samples, accounts, patterns
    Curves(curves::Options),
    /// Advice for a fleet: how near the best plan, in what time; needs no JVM
    Planner(planner::Options),
    /// Walks of the heap: how long the JVM stands still, forked and in place
    Walks(walks::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().bench {
        Bench::Micro(options) => micro::run(&options),
        Bench::Enforcement(options) => enforcement::run(&options),
        Bench::Calm(options) => calm::run(&options),
        Bench::Api(options) => api::run(&options),
        Bench::Rows(options) => rows::run(&options),
        Bench::Curves(options) => curves::run(&options),
        Bench::Planner(options) => planner::run(&options),
        Bench::Walks(options) => walks::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
