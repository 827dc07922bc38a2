//! `cargo xtask`: the project's own commands. Each looks for the tools it needs before it starts
//! any work, and ends every process it started.

mod bench;
mod classes;
mod dashboards;
mod demo;
mod dist;
mod fuzz;
#[cfg(test)]
mod house;
mod interrupt;
mod picture;
mod process;
mod story;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status after Ctrl-C or `SIGTERM`, as a shell gives it for `SIGINT`.
const INTERRUPTED: u8 = 130;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Heapwarden's own commands", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Three web applications in a real Tomcat: their accounts live, against the truth, and one
    /// of them refused until the policy is edited
    Demo(demo::Options),
    /// Every check and test; ends with the runners' own summary lines
    Test(test::Options),
    /// Measures the cost of Heapwarden (the arguments go to the bench program)
    Bench(bench::Options),
    /// Compiles the agent's Java sources into the class files that it is built with
    Classes,
    /// Writes the Grafana dashboards in `deploy/grafana`
    Dashboards,
    /// Makes what is given away: archive, Debian package, Maven artifacts, image, manifests
    Dist(dist::Options),
    /// Takes the picture of the page that the documents show
    Picture,
    /// Plays the operators' story on two Tomcats and a Prometheus, and writes its transcript into
    /// `docs/story.md`
    Story,
    /// Runs each fuzz target for a while
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = interrupt::install().and_then(|()| match arguments.command {
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Classes => classes::run(),
        Command::Dashboards => dashboards::run(),
        Command::Dist(options) => dist::run(&options),
        Command::Picture => picture::run(),
        Command::Story => story::run(),
        Command::Fuzz(options) => fuzz::run(&options),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<interrupt::Interrupted>() => {
            eprintln!("\n{error}");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
