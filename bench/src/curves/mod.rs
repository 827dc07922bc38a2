//! `curves`: how the agent's cost grows, one thing varied at a time, each as a picture.
//!
//! A point of a curve is a program that does a fixed amount of work, found out by a run in plain Java
//! before. Each run is a JVM of its own. A round runs each point with each setting, plain Java among
//! them, one right after the other, in an order that is turned round with each round; only runs of
//! one point and one round are compared. What fails is reported and left out, and the others go on.

mod axis;
mod chart;
mod draw;
mod figures;
mod hello;
mod measure;
mod numbers;
mod pictures;
mod plan;
mod report;
mod rig;
mod runs;
mod settings;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use figures::Figures;
use plan::{Curve, Point};
use rig::Rig;
use runs::{Failure, Runs};
use settings::Setting;

/// Rounds by default: as many as forty minutes hold.
const PAIRS: u32 = 5;
/// After so many failures a point is run with that setting no more: each may have cost a long wait.
const MAX_FAILURES: usize = 2;

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// Curves, separated by commas [default: each]
    #[arg(long, value_name = "CURVE", value_delimiter = ',')]
    only: Vec<Curve>,

    /// Rounds
    #[arg(long, default_value_t = PAIRS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,

    /// The JDK, by its home or its `java` [default: the newest found]
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// Writes the pictures and the results to bench/results, after each round
    #[arg(long)]
    save: bool,
}

impl Options {
    fn points(&self) -> Vec<Point> {
        Curve::value_variants()
            .iter()
            .filter(|curve| self.only.is_empty() || self.only.contains(curve))
            .flat_map(|curve| curve.points())
            .collect()
    }
}

/// Builds, measures, prints.
///
/// # Errors
/// Where nothing can be measured; and after all, where some runs failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let jdk = jdk::choose(options.java.as_deref())?;
    let points = options.points();
    let machine = Machine::here();
    println!("JDK {}, {machine}", jdk.name());
    println!(
        "points: {}, rounds: {}; about {:.0} minutes on an idle machine",
        points.len(),
        options.pairs,
        plan::seconds(&points, options.pairs) / 60.0
    );
    println!("building the agent and the programs");
    let rig = Rig::build(&jdk)?;
    let runs = Runs {
        machine,
        jdk: jdk.name(),
        flags: Rig::flags(),
        pairs: options.pairs,
        runs: Vec::new(),
        failures: Vec::new(),
    };
    let runs = measured(options, &rig, &points, runs)?;
    saved::publish(
        &report::text(&Figures::of(&points, &runs), &runs),
        options.save,
        || report::save(&Figures::of(&points, &runs), &runs),
    )?;
    let mut failed: Vec<String> = runs
        .failures
        .iter()
        .map(|failure| format!("{} with {}", failure.point, failure.setting))
        .collect();
    failed.sort();
    failed.dedup();
    if !failed.is_empty() {
        bail!("some runs failed: {}", failed.join(", "));
    }
    Ok(())
}

/// All rounds.
fn measured(options: &Options, rig: &Rig, points: &[Point], mut runs: Runs) -> Result<Runs> {
    let settings: usize = points.iter().map(|point| point.settings.len()).sum();
    let calibrations = points.iter().filter(|point| point.has_amount()).count();
    let steps = calibrations + settings * options.pairs as usize;
    let mut progress = Progress::of("run", u32::try_from(steps).unwrap_or(u32::MAX));
    let mut step = 0..;
    let mut show = |what: String| progress.show(step.next().unwrap_or(u32::MAX), &what);
    let mut amounts = Vec::new();
    for point in points {
        if !point.has_amount() {
            amounts.push((point, 0));
            continue;
        }
        show(format!("{}: how much work", point.name()));
        match measure::calibrate(rig, point) {
            Ok(operations) => amounts.push((point, operations)),
            Err(error) => runs
                .failures
                .push(failure(point, &point.settings[0], &error)),
        }
    }
    for pair in 0..options.pairs {
        for (point, operations) in &amounts {
            let mut order: Vec<&Setting> = point.settings.iter().collect();
            if !pair.is_multiple_of(2) {
                order.reverse();
            }
            for setting in order {
                show(format!("{} with {}", point.name(), setting.name));
                attempt(rig, point, setting, *operations, pair, &mut runs);
            }
        }
        if options.save {
            report::save(&Figures::of(points, &runs), &runs)?;
        }
    }
    progress.done();
    Ok(runs)
}

/// One run, or its failure.
fn attempt(
    rig: &Rig,
    point: &Point,
    setting: &Setting,
    operations: u64,
    pair: u32,
    runs: &mut Runs,
) {
    if runs.failures_of(&point.name(), &setting.name) >= MAX_FAILURES {
        return;
    }
    let measured = measure::measure(rig, point, setting, operations, pair);
    if let Err(error) = measured.and_then(|run| runs.add(run)) {
        runs.failures.push(failure(point, setting, &error));
    }
}

fn failure(point: &Point, setting: &Setting, error: &anyhow::Error) -> Failure {
    eprintln!("\n{} with {} failed: {error:#}", point.name(), setting.name);
    Failure {
        point: point.name(),
        setting: setting.name.clone(),
        error: format!("{error:#}"),
    }
}
