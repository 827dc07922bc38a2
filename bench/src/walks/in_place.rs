//! Walks in place where ten services share the heap: the stop of a slice beside that of the whole heap, and of a slice
//! that is given up. One JVM for each JDK with slices, collector and heap.

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::results::Case;
use super::rig::{Asked, Rig};
use crate::collector::Collector;
use crate::jdk::Jdk;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use crate::table::Table;

/// The first release that walks in slices.
const FIRST_WITH_SLICES: u32 = 21;
const SERVICES: u32 = 10;
/// The walks that are asked for: the name in the table, the class, and the pause that is accepted.
const WALKS: [(&str, &str, &str); 3] = [
    ("held by itself", "walks.Held$Marked[]", "600s"),
    ("held outside", "walks.Held$Given[]", "600s"),
    ("given up", "walks.Held$Marked[]", "10ms"),
];

/// One stop.
#[derive(Debug, Serialize)]
struct Row {
    case: Case,
    walk: &'static str,
    of: String,
    ended: String,
    predicted_ms: f64,
    pause_ms: f64,
    references: u64,
    found: u64,
    /// The longest gap of the walk, all its stops together, and of a while before.
    gap_ms: f64,
    idle_gap_ms: f64,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    rows: Vec<Row>,
}

/// Measures, prints, and saves if that is wanted.
///
/// # Errors
/// If a walk fails.
pub(super) fn run(
    rig: &Rig,
    machine: Machine,
    jdks: &[Jdk],
    heaps: &[u32],
    save: bool,
) -> Result<()> {
    let mut cases = Vec::new();
    for &heap_mb in heaps {
        for jdk in jdks.iter().filter(|jdk| jdk.feature >= FIRST_WITH_SLICES) {
            for collector in [Collector::G1, Collector::Zgc] {
                let case = Case {
                    jdk: jdk.feature,
                    collector: collector.name(),
                    flag: collector.flag(),
                    heap_mb,
                    huge_pages: false,
                    forks: 0,
                };
                cases.push((jdk, case));
            }
        }
    }
    let mut progress = Progress::of("JVM", cases.len() as u32);
    let mut results = Results {
        machine,
        rows: Vec::new(),
    };
    for (number, (jdk, case)) in cases.into_iter().enumerate() {
        progress.show(number as u32, &case.name());
        let mut jvm = rig.start_services(jdk, &case, SERVICES)?;
        for (walk, class, accepted) in WALKS {
            let asked = [
                "--account",
                "s3",
                "--class",
                class,
                "--max-pause",
                "0ms",
                "--in-place",
                accepted,
            ];
            let asked = rig.ask(&mut jvm, &asked)?;
            results.rows.extend(rows(&case, walk, &asked)?);
        }
    }
    progress.done();
    saved::publish(&text(&results), save, || saved(&results))
}

fn rows(case: &Case, walk: &'static str, asked: &Asked) -> Result<Vec<Row>> {
    let stops = asked.answer["stops"].as_array();
    let stops = stops.context("the document has no stops")?;
    let number = |stop: &Value, key: &str| {
        let found = stop[key].as_f64();
        found.with_context(|| format!("a stop has no {key}"))
    };
    let word = |stop: &Value, key: &str| stop[key].as_str().unwrap_or_default().to_owned();
    let made = stops.iter().filter(|stop| stop["ended"] != "not-made");
    made.map(|stop| {
        Ok(Row {
            case: case.clone(),
            walk,
            of: word(stop, "of"),
            ended: word(stop, "ended"),
            predicted_ms: number(stop, "predicted_ms")?,
            pause_ms: number(stop, "pause_ms")?,
            references: number(stop, "references")? as u64,
            found: number(stop, "found")? as u64,
            gap_ms: asked.gap_ms,
            idle_gap_ms: asked.idle_gap_ms,
        })
    })
    .collect()
}

fn text(results: &Results) -> String {
    let table = Table::of(
        "How long the JVM stands still for each stop",
        &results.rows,
        &[
            ("JDK", &|row| row.case.jdk.to_string()),
            ("collector", &|row| row.case.collector.to_owned()),
            ("held MB", &|row| row.case.heap_mb.to_string()),
            ("looked for", &|row| row.walk.to_owned()),
            ("stop", &|row| row.of.clone()),
            ("ended", &|row| row.ended.clone()),
            ("predicted ms", &|row| format!("{:.0}", row.predicted_ms)),
            ("stop ms", &|row| format!("{:.1}", row.pause_ms)),
            ("gap ms", &|row| format!("{:.1}", row.gap_ms)),
            ("idle gap", &|row| format!("{:.1}", row.idle_gap_ms)),
            ("references, million", &|row| {
                format!("{:.2}", row.references as f64 / 1e6)
            }),
            ("found", &|row| row.found.to_string()),
        ],
    );
    let notes = format!(
        "{SERVICES} services share the heap; asked is about one of them. Held by itself: what the service's own static \
         field holds, found in the first stop. Held outside: what another program's static field holds, found in the \
         second. Given up: the first stop is given up after 10 ms. Stop: what JVM TI's call took in the agent, with the \
         way to the safepoint. Gap: the longest time, in all stops of the walk, that a Java thread which sleeps 1 ms \
         again and again was kept from running. Idle gap: the same in 1.5 s before, in which nothing happened. \
         Predicted: of the second stop, by the speed of the first."
    );
    format!("{}\n\n{notes}\n", table.text().trim_end())
}

fn saved(results: &Results) -> Result<[std::path::PathBuf; 2]> {
    let machine = &results.machine;
    let markdown = format!(
        "# Walks of the heap in place: {}\n\n`cargo xtask bench walks --in-place --save`. {}.\n\n{}",
        machine.date,
        machine.told(),
        text(results)
    );
    saved::save("walks-in-place", &machine.date, markdown, results, &[])
}
