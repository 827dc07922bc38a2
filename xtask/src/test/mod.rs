//! `cargo xtask test`: every check and every test. A step that fails does not keep the others from
//! running; all are told at the end, and last come the runners' own summary lines.

mod binaries;
mod context;
mod docs;
mod java;
mod runner;
mod share;
mod steps;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use heapwarden_harness::jdk::RUNTIME_21;

use crate::{demo, interrupt, tools};
use context::Context;
use runner::Summary;
use steps::{STEPS, Step};

/// The user's choices.
#[derive(Args)]
pub(crate) struct Options {
    /// Only the steps named (fmt, clippy, doc, docs, build, test, loom, java, demo); may be repeated
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,

    /// Without the slow steps: loom and the demo
    #[arg(long)]
    quick: bool,

    /// Longer storms, and every collector of every JDK in each test
    #[arg(long)]
    long: bool,

    /// When to end a run that hangs, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 86)]
    limit: u64,
}

/// How a step ended.
enum Outcome {
    Passed,
    Failed(anyhow::Error),
    LeftOut(&'static str),
}

/// A step with what came of it.
struct Report {
    step: &'static Step,
    outcome: Outcome,
    took: Duration,
    summaries: Vec<Summary>,
}

/// Runs the steps.
///
/// # Errors
/// A tool that is missing, before any step; or the number of steps that failed, after all.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    steps::check_names(&options.only)?;
    let runtime = RUNTIME_21.install().with_context(|| {
        let (package, version) = (RUNTIME_21.package, RUNTIME_21.version);
        format!("the tests need the JDK 21 runtime of PyPI's {package} {version}")
    })?;
    let context = Context {
        jdks: tools::jdks()?,
        long: options.long,
        deadline: begun + Duration::from_secs(60 * options.limit),
        steps: STEPS.iter().map(|step| step.name).collect(),
    };
    println!("JDKs found:");
    for jdk in &context.jdks {
        println!("  {jdk}");
    }
    println!("installed by this command: {}", runtime.home.display());
    tools::for_builds(&context.jdks)?;
    tools::maven()?;
    demo::check_tools()?;
    println!("promtool: {}", tools::promtool()?.display());
    println!("tmux: {}", tools::tmux()?.display());
    println!("chromium: {}", tools::chromium()?.display());
    println!("go: {}", tools::go()?.display());
    println!("npm: {}", tools::npm()?.display());
    if options.long {
        let (debootstrap, buildah) = tools::debootstrap_and_buildah()?;
        println!("debootstrap: {}", debootstrap.display());
        println!("buildah: {}", buildah.display());
    }

    let mut reports = Vec::new();
    for step in &STEPS {
        let report = run_step(step, options, &context);
        interrupt::check()?;
        reports.push(report);
    }
    conclude(&reports, begun.elapsed())
}

fn run_step(step: &'static Step, options: &Options, context: &Context) -> Report {
    let begun = Instant::now();
    let mut summaries = Vec::new();
    let outcome = if let Some(why) = left_out(step, options) {
        Outcome::LeftOut(why)
    } else {
        println!("\n== {}: {}", step.name, step.does);
        match (step.run)(context, &mut summaries) {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                println!("{} failed: {error:#}", step.name);
                Outcome::Failed(error)
            }
        }
    };
    Report {
        step,
        outcome,
        took: begun.elapsed(),
        summaries,
    }
}

fn left_out(step: &Step, options: &Options) -> Option<&'static str> {
    if !options.only.is_empty() {
        let named = options.only.iter().any(|name| name == step.name);
        return (!named).then_some("left out by --only");
    }
    (options.quick && step.slow).then_some("left out by --quick")
}

/// Prints the table, the runners' lines and the sum.
fn conclude(reports: &[Report], took: Duration) -> Result<()> {
    println!("\n== summary ({:.0} s)", took.as_secs_f64());
    for report in reports {
        let (mark, remark) = match &report.outcome {
            Outcome::Passed => ("ok", String::new()),
            Outcome::Failed(error) => (
                "FAILED",
                error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            ),
            Outcome::LeftOut(why) => ("-", (*why).to_owned()),
        };
        println!(
            "  {:<8}{mark:<8}{:>6.1} s  {remark}",
            report.step.name,
            report.took.as_secs_f64()
        );
    }

    for report in reports {
        if let Outcome::Failed(error) = &report.outcome {
            println!("\n== {} failed: {error:#}", report.step.name);
        }
    }

    println!("\n== what the runners said");
    for report in reports {
        if !report.summaries.is_empty() {
            println!("{}:", report.step.name);
        }
        for summary in &report.summaries {
            println!("{}", summary.line());
        }
    }

    let (passed, failed, ignored) = sum(reports);
    if ignored > 0 {
        println!("{ignored} ignored by their own mark");
    }
    println!("{passed} passed, {failed} failed");
    let broken: Vec<&str> = reports
        .iter()
        .filter(|report| matches!(report.outcome, Outcome::Failed(_)))
        .map(|report| report.step.name)
        .collect();
    if !broken.is_empty() {
        bail!("failed: {}", broken.join(", "));
    }
    Ok(())
}

/// Tests passed, failed and ignored. A step that failed without a failed test (a lint, a build, the
/// demo) counts as one failure, so that no failing run ends in "0 failed".
fn sum(reports: &[Report]) -> (u64, u64, u64) {
    let mut total = (0, 0, 0);
    for report in reports {
        let mut failed = 0;
        for summary in &report.summaries {
            total.0 += summary.passed;
            failed += summary.failed;
            total.2 += summary.ignored;
        }
        if failed == 0 && matches!(report.outcome, Outcome::Failed(_)) {
            failed = 1;
        }
        total.1 += failed;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome, lines: &[&str]) -> Report {
        Report {
            step: &STEPS[0],
            outcome,
            took: Duration::ZERO,
            summaries: lines
                .iter()
                .map(|line| Summary::parse(line).unwrap())
                .collect(),
        }
    }

    fn failure() -> Outcome {
        Outcome::Failed(anyhow::anyhow!("no"))
    }

    #[test]
    fn a_failing_run_never_sums_to_no_failure() {
        let passed = report(
            Outcome::Passed,
            &["test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"],
        );
        let failed = report(
            failure(),
            &["Tests run: 5, Failures: 1, Errors: 1, Skipped: 0"],
        );
        let broken = report(failure(), &[]);
        assert_eq!(sum(&[passed, failed, broken]), (6, 3, 1));
    }

    #[test]
    fn only_and_quick_leave_out_what_they_say() {
        let options = |only: &[&str], quick| Options {
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            quick,
            long: false,
            limit: 1,
        };
        let runs = |options: &Options| -> Vec<&str> {
            STEPS
                .iter()
                .filter(|step| left_out(step, options).is_none())
                .map(|step| step.name)
                .collect()
        };
        assert_eq!(runs(&options(&["loom"], true)), ["loom"]);
        assert_eq!(runs(&options(&[], false)).len(), STEPS.len());
        assert_eq!(
            runs(&options(&[], true)),
            ["fmt", "clippy", "doc", "docs", "build", "test", "java"]
        );
    }
}
