//! Applications of others, loaded past their limits: what each holds when its door turns the first request
//! away, and where that comes from.
//!
//! The applications, their clients and their course are those of the tests (`heapwarden_tests::application`).

mod report;
mod results;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use heapwarden_harness::busy::Busy;
use heapwarden_tests::application::course::{Course, run as run_course};
use heapwarden_tests::application::{SUBJECTS, Subject};
use heapwarden_tests::jdk::{self, Vm};

use crate::build;
use crate::collector::Collector;
use crate::jdk::Jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use results::{Results, Run};

/// The runs to make: which applications in which JVMs, how often, and beside how much other work.
pub(super) struct Plan<'a> {
    /// By their names; all if empty.
    pub(super) applications: &'a [String],
    /// This JDK only.
    pub(super) jdk: Option<&'a Jdk>,
    /// All that the promise names if empty.
    pub(super) collectors: &'a [Collector],
    pub(super) rounds: u32,
    /// Each application meets every `share`th JVM in a round, and others in the next.
    pub(super) share: u32,
    /// Processes that keep processors busy meanwhile.
    pub(super) busy: u32,
}

/// Measures, prints, and saves if that is wanted.
pub(super) fn run(plan: &Plan<'_>, save: bool) -> Result<()> {
    let subjects = subjects(plan.applications)?;
    let vms = vms(plan.jdk, plan.collectors);
    ensure!(!vms.is_empty(), "no JDK here has any of these collectors");
    let folder = build::fresh_folder("enforcement-applications")?;
    let agent = build::agent(&folder)?;
    let mut results = Results {
        machine: Machine::here(),
        busy_processes: plan.busy,
        rounds: plan.rounds,
        share: plan.share,
        runs: Vec::new(),
        failed: Vec::new(),
    };
    let _busy = Busy::start(plan.busy).context("no busy process can be started")?;
    let mut progress = Progress::new(plan.rounds);
    for round in 0..plan.rounds {
        for (at, subject) in subjects.iter().enumerate() {
            for (_, vm) in (vms.iter().enumerate())
                .filter(|(number, _)| is_met(plan.share, round, at, *number))
            {
                progress.show(round, &format!("{}, {vm}", subject.title));
                let course = Course {
                    brief: true,
                    measured: Some(agent.clone()),
                    ..subject.course()
                };
                let once = AssertUnwindSafe(|| run_course(vm, subject.application, &course));
                match catch_unwind(once) {
                    Ok((outcome, _)) => results.runs.push(Run {
                        application: subject.title.to_owned(),
                        jdk: vm.jdk.feature,
                        collector: collector(vm).name().to_owned(),
                        outcome,
                    }),
                    // The server could not be set up, or its JVM ended: what is known of it was printed.
                    Err(_) => results.failed.push(format!("{}, {vm}", subject.title)),
                }
            }
        }
    }
    progress.done();
    saved::publish(&report::text(&results), save, || report::save(&results))
}

/// Reports on runs that were saved, and saves the report if that is wanted.
pub(super) fn report_again(file: &Path, save: bool) -> Result<()> {
    let results: Results = saved::read(file, "has no runs of applications")?;
    saved::publish(&report::text(&results), save, || report::save(&results))
}

/// The applications of these names.
fn subjects(names: &[String]) -> Result<Vec<&'static Subject>> {
    if names.is_empty() {
        return Ok(SUBJECTS.iter().collect());
    }
    let known: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
    let find = |name: &String| {
        let mut all = SUBJECTS.iter();
        all.find(|subject| subject.name == name)
            .with_context(|| format!("no application {name}: there are {}", known.join(", ")))
    };
    names.iter().map(find).collect()
}

/// JVMs with these collectors, or with those that the promise is about.
fn vms(chosen: Option<&Jdk>, collectors: &[Collector]) -> Vec<Vm> {
    let is_wanted = |vm: &&Vm| {
        let of_jdk = chosen.is_none_or(|jdk| jdk.home == vm.jdk.home);
        let of_collector = if collectors.is_empty() {
            collector(vm) != Collector::Serial
        } else {
            collectors.contains(&collector(vm))
        };
        of_jdk && of_collector
    };
    jdk::every_vm().iter().filter(is_wanted).cloned().collect()
}

fn collector(vm: &Vm) -> Collector {
    match vm.collector {
        jdk::Collector::Serial => Collector::Serial,
        jdk::Collector::Parallel => Collector::Parallel,
        jdk::Collector::G1 => Collector::G1,
        jdk::Collector::Z | jdk::Collector::GenerationalZ => Collector::Zgc,
        jdk::Collector::Shenandoah => Collector::Shenandoah,
    }
}

/// Whether an application meets a JVM in this round. Over `share` rounds it meets each once.
fn is_met(share: u32, round: u32, application: usize, vm: usize) -> bool {
    (vm + application + round as usize).is_multiple_of(share.max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_so_many_rounds_each_application_meets_each_jvm_once() {
        for share in 1..=6 {
            for application in 0..SUBJECTS.len() {
                for vm in 0..13 {
                    let met = (0..share).filter(|round| is_met(share, *round, application, vm));
                    assert_eq!(met.count(), 1);
                }
            }
        }
    }

    #[test]
    fn applications_are_chosen_by_name() {
        let all = subjects(&[]).expect("no name is no mistake");
        assert_eq!(all.len(), SUBJECTS.len());
        let one = subjects(&["eureka".to_owned()]).expect("it is known");
        assert_eq!(one[0].name, "eureka");
        assert!(subjects(&["none".to_owned()]).is_err());
    }
}
