//! The `heapwarden` command: one module for each subcommand.

mod attach;
mod check;
mod completions;
mod contexts;
mod diff;
mod doctor;
mod leaks;
mod manual;
mod process;
mod profile;
mod snapshot;
mod status;
mod targets;
mod top;
mod ui;
mod walk;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use heapwarden_fleet::{advise, replay, suggest};

/// Gives every service inside one JVM its own memory limit.
#[derive(Parser)]
#[command(name = "heapwarden", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Advise which services to move to which JVM, from the metrics of a fleet in Prometheus
    Advise(Box<advise::Arguments>),
    /// Load the agent into a running JVM
    Attach(attach::Arguments),
    /// Check policy files and explain them
    Check(check::Arguments),
    /// Print who holds the memory that each account made
    Holders(walk::HoldersArguments),
    /// Print the largest, oldest or equal objects of an account, or the capacity that they waste
    Instances(walk::InstancesArguments),
    /// Print the chains of references that keep objects alive
    Paths(walk::PathsArguments),
    /// Print a shell's completions for this command
    Completions(completions::Arguments),
    /// Print what running JVMs allocated, by calling context
    Contexts(contexts::Arguments),
    /// Compare two snapshots: what came and what went, with the error of the difference
    Diff(diff::Arguments),
    /// Find out why a JVM's accounts are empty, imprecise or not enforced
    Doctor(doctor::Arguments),
    /// Write what the accounts of a running JVM hold and have allocated as a profile, for pprof and others
    Profile(profile::Arguments),
    /// Take a snapshot of everything that the accounts of a running JVM hold
    Snapshot(snapshot::Arguments),
    /// Print what leaks in running JVMs, where it is allocated, and when the memory is used up
    Leaks(leaks::Arguments),
    /// Write the manual pages of this command
    #[command(hide = true)]
    Manual(manual::Arguments),
    /// Write the page of a JVM or a snapshot into one file that opens without a network
    Report(ui::ReportArguments),
    /// Print the accounts of running JVMs once
    Status(status::Arguments),
    /// Show which accounts a policy would have refused in an observed period
    Replay(replay::Arguments),
    /// Suggest a policy with limits from an observed period
    Suggest(suggest::Arguments),
    /// Show the accounts of running JVMs, refreshed continuously
    Top(top::Arguments),
    /// Show running JVMs and snapshots in a browser
    Ui(ui::Arguments),
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let done = match command {
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Attach(arguments) => attach::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Holders(arguments) => walk::run_holders(&arguments),
        Command::Instances(arguments) => walk::run_instances(&arguments),
        Command::Paths(arguments) => walk::run_paths(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Command::Contexts(arguments) => contexts::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Leaks(arguments) => leaks::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments, Cli::command()),
        Command::Status(arguments) => status::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Suggest(arguments) => suggest::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Report(arguments) => ui::run_report(&arguments),
        Command::Ui(arguments) => ui::run(&arguments),
    };
    match done {
        Ok(code) => code,
        // The reader of our output has closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heapwarden: cannot write the output: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_subcommands_options_fit_together() {
        super::Cli::command().debug_assert();
    }
}
