//! The aims, and whether the figures meet them.

use super::figures::{Comparison, Comparisons, Figures};
use super::published::{JBB, Row};
use super::settings::Setting;
use crate::bootstrap::{Estimate, plain, shares};
use crate::verdicts::{Outcome, Verdict};

/// Over the rows, and in any row: time with the agent as it comes, to plain.
const MAX_TIME: f64 = 1.01;
const MAX_ROW_TIME: f64 = 1.03;
/// Throughput of the order system with four warehouses, to plain.
const LEAST_THROUGHPUT: f64 = 0.98;
/// Peak memory to plain.
const MAX_MEMORY: f64 = 1.02;
/// Longest pause, more than plain's.
const MAX_PAUSE_MS: f64 = 2.0;
/// Part of ASGMemProf's factor that exact mode may take.
const PART_OF_ASGMEMPROF: f64 = 1.0 / 3.0;
/// Share of samples that may be dropped in exact mode for its cost to be that of charging all.
const MAX_DROPPED: f64 = 0.01;
/// How far what the agent reports of itself may be from what is measured, of plain's CPU time.
const MAX_UNREPORTED: f64 = 0.01;
/// Of fewer pairs the intervals are not shown to hold ([`crate::bootstrap`]).
const FEWEST_PAIRS: usize = 3;

/// All that the runs can be asked.
pub(crate) fn verdicts(figures: &Comparisons) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(ours) = figures.get(Setting::Heapwarden, Setting::Plain) {
        verdicts.extend(against_plain(ours));
    }
    if let (Some(off), Some(again)) = (
        figures.get(Setting::Heapwarden, Setting::WithoutLeaks),
        figures.get(Setting::Heapwarden, Setting::Again),
    ) {
        verdicts.extend(against_itself(off, again));
    }
    for rival in [Setting::Jfr, Setting::AsyncProfiler] {
        if let Some(both) = figures.get(Setting::Heapwarden, rival) {
            verdicts.extend(against_rival(both));
        }
    }
    if let Some(exact) = figures.get(Setting::Exact, Setting::Plain) {
        verdicts.push(against_asgmemprof(exact));
    }
    verdicts
}

fn against_plain(ours: &Comparison) -> Vec<Verdict> {
    let all = &ours.over_rows;
    let mut verdicts = vec![
        over_rows(
            format!("time over the rows at most {MAX_TIME} of plain"),
            all.time,
            MAX_TIME,
            ours,
        ),
        each_row(
            format!("no row over {MAX_ROW_TIME} in time"),
            ours,
            |figures| figures.time,
            |_| MAX_ROW_TIME,
        ),
    ];
    let jbb = ours.rows.iter().find(|row| row.row == JBB);
    if let Some(time) = jbb.and_then(|jbb| jbb.figures.time) {
        // The work is the same, so that throughput is time turned over.
        let throughput = Estimate {
            value: 1.0 / time.value,
            low: 1.0 / time.high,
            high: 1.0 / time.low,
            pairs: time.pairs,
        };
        verdicts.push(Verdict {
            aim: format!(
                "throughput of {JBB} with 4 warehouses at least {LEAST_THROUGHPUT} of plain"
            ),
            outcome: at_most(Some(time), 1.0 / LEAST_THROUGHPUT),
            measured: plain(Some(throughput), 3),
        });
    }
    verdicts.push(over_rows(
        format!("peak memory over the rows at most {MAX_MEMORY} of plain"),
        all.peak_memory,
        MAX_MEMORY,
        ours,
    ));
    verdicts.push(each_row(
        format!("in no row the longest pause longer by more than {MAX_PAUSE_MS} ms"),
        ours,
        |figures| figures.longest_pause_ms,
        |_| MAX_PAUSE_MS,
    ));
    verdicts.push(Verdict {
        aim: format!(
            "the CPU time that the agent reports of itself within {:.0} % of plain's of what is measured",
            MAX_UNREPORTED * 100.0
        ),
        outcome: Outcome::of_all([
            at_most(all.unreported_cpu, MAX_UNREPORTED),
            at_most(all.unreported_cpu.map(negative), MAX_UNREPORTED),
        ]),
        measured: format!(
            "{} reported, {} beyond it",
            shares(all.reported_cpu),
            shares(all.unreported_cpu)
        ),
    });
    verdicts
}

/// Whether a part of the agent costs no more than chance makes of two runs of the same.
fn against_itself(off: &Comparison, again: &Comparison) -> [Verdict; 3] {
    let verdict = |what: &str, decimals, figure: fn(&Figures) -> Option<Estimate>| {
        let (cost, chance) = (figure(&off.over_rows), figure(&again.over_rows));
        Verdict {
            aim: format!(
                "{what} over the rows with holdings and leaks, to without, as far off as chance"
            ),
            outcome: within(cost, chance),
            measured: format!(
                "{}, and {} of the same to itself",
                plain(cost, decimals),
                plain(chance, decimals)
            ),
        }
    };
    [
        verdict("time", 3, |figures| figures.time),
        verdict("CPU time", 3, |figures| figures.cpu),
        verdict("longest pause (ms more)", 2, |figures| {
            figures.longest_pause_ms
        }),
    ]
}

fn against_rival(both: &Comparison) -> [Verdict; 3] {
    let aim = |what: &str| format!("{what} no dearer than {}", both.to);
    [
        over_rows(aim("time over the rows"), both.over_rows.time, 1.0, both),
        over_rows(aim("CPU time over the rows"), both.over_rows.cpu, 1.0, both),
        each_row(
            aim("time of each row"),
            both,
            |figures| figures.time,
            |_| 1.0,
        ),
    ]
}

fn against_asgmemprof(exact: &Comparison) -> Verdict {
    let mut verdict = each_row(
        "every allocation sampled: each row at most a third of ASGMemProf's factor".to_owned(),
        exact,
        |figures| figures.time,
        most_exact,
    );
    let dropping: Vec<&str> = exact
        .rows
        .iter()
        .filter(|row| {
            let dropped = row.figures.dropped_share;
            dropped.is_some_and(|share| share.value > MAX_DROPPED)
        })
        .map(|row| row.row.as_str())
        .collect();
    if !dropping.is_empty() {
        let names = dropping.join(", ");
        verdict
            .measured
            .push_str(&format!("; not every allocation was charged in {names}"));
        if verdict.outcome == Outcome::Met {
            verdict.outcome = Outcome::CannotTell;
        }
    }
    verdict
}

/// Returns the most that exact mode may take of a row, as a ratio to plain.
pub(crate) fn most_exact(row: &str) -> f64 {
    Row::named(row).map_or(1.0, |row| row.asgmemprof_factor) * PART_OF_ASGMEMPROF
}

fn over_rows(aim: String, figure: Option<Estimate>, most: f64, of: &Comparison) -> Verdict {
    let rows = of.rows.len();
    let count = if rows == 1 {
        "1 row"
    } else {
        &format!("{rows} rows")
    };
    Verdict {
        aim,
        outcome: at_most(figure, most),
        measured: format!("{} over {count}", plain(figure, 3)),
    }
}

/// Of an aim that each row must meet: what each says, and the row that is furthest from it.
fn each_row(
    aim: String,
    of: &Comparison,
    figure: impl Fn(&Figures) -> Option<Estimate>,
    most: impl Fn(&str) -> f64,
) -> Verdict {
    let judged = of.rows.iter().map(|row| {
        let estimate = figure(&row.figures);
        let most = most(&row.row);
        (row.row.as_str(), estimate, most, at_most(estimate, most))
    });
    let judged: Vec<_> = judged.collect();
    let names = |outcome: Outcome| {
        let of_outcome = judged.iter().filter(|(.., judged)| *judged == outcome);
        of_outcome.map(|(row, ..)| *row).collect::<Vec<_>>()
    };
    let mut said = vec![format!(
        "{} of {} meet it",
        names(Outcome::Met).len(),
        judged.len()
    )];
    for (outcome, what) in [
        (Outcome::Missed, "missed by"),
        (Outcome::CannotTell, "cannot tell of"),
    ] {
        let names = names(outcome);
        if !names.is_empty() {
            said.push(format!("{what} {}", names.join(", ")));
        }
    }
    let excess = |(_, estimate, most, _): &&(&str, Option<Estimate>, f64, Outcome)| {
        estimate.map_or(f64::NEG_INFINITY, |estimate| estimate.value - most)
    };
    if let Some((row, estimate, ..)) = judged.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)))
    {
        said.push(format!("furthest is {row} with {}", plain(*estimate, 3)));
    }
    Verdict {
        aim,
        outcome: Outcome::of_all(judged.iter().map(|(.., outcome)| *outcome)),
        measured: said.join("; "),
    }
}

/// Whether a figure is at most so much: only where the whole interval is on one side.
pub(crate) fn at_most(figure: Option<Estimate>, most: f64) -> Outcome {
    match figure {
        Some(figure) if figure.pairs < FEWEST_PAIRS => Outcome::CannotTell,
        Some(figure) if figure.high <= most => Outcome::Met,
        Some(figure) if figure.low > most => Outcome::Missed,
        _ => Outcome::CannotTell,
    }
}

/// Whether a figure lies in the interval of chance; missed if even its own interval is beyond that.
fn within(figure: Option<Estimate>, chance: Option<Estimate>) -> Outcome {
    let (Some(figure), Some(chance)) = (figure, chance) else {
        return Outcome::CannotTell;
    };
    if figure.pairs.min(chance.pairs) < FEWEST_PAIRS {
        Outcome::CannotTell
    } else if (chance.low..=chance.high).contains(&figure.value) || figure.high < chance.low {
        // Below the interval it is cheaper still.
        Outcome::Met
    } else if figure.low > chance.high {
        Outcome::Missed
    } else {
        Outcome::CannotTell
    }
}

fn negative(figure: Estimate) -> Estimate {
    Estimate {
        value: -figure.value,
        low: -figure.high,
        high: -figure.low,
        pairs: figure.pairs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::Run;
    use super::super::runs::tests::{reported, run, runs};
    use super::*;

    fn of(all: Vec<Run>) -> Vec<Verdict> {
        verdicts(&Comparisons::of(&runs(all)))
    }

    /// Ten pairs of each row whose ratios are these in turn.
    fn judged(setting: Setting, rows: &[(&str, &[f64])]) -> Vec<Verdict> {
        let mut all = Vec::new();
        for (row, ratios) in rows {
            for pair in 0..10 {
                let ratio = ratios[pair as usize % ratios.len()];
                all.push(run(row, Setting::Plain, pair, 1_000_000_000));
                let mut ours = run(row, setting, pair, (ratio * 1e9) as u64);
                if let Some(agent) = &mut ours.agent {
                    agent.cpu_seconds = reported(ratio - 1.0);
                }
                all.push(ours);
            }
        }
        of(all)
    }

    fn outcomes(verdicts: &[Verdict]) -> Vec<Outcome> {
        verdicts.iter().map(|verdict| verdict.outcome).collect()
    }

    #[test]
    fn a_good_run_meets_all() {
        let verdicts = judged(
            Setting::Heapwarden,
            &[("fop", &[1.001, 1.003]), (JBB, &[1.004, 1.0])],
        );
        assert_eq!(outcomes(&verdicts), [Outcome::Met; 6]);
    }

    #[test]
    fn a_slow_row_misses_its_aim_and_is_named() {
        use Outcome::{Met, Missed};
        let verdicts = judged(
            Setting::Heapwarden,
            &[("fop", &[1.04, 1.05]), (JBB, &[1.0, 1.001])],
        );
        assert_eq!(outcomes(&verdicts), [Missed, Missed, Met, Met, Met, Met]);
        assert!(
            verdicts[1].measured.contains("missed by fop"),
            "{verdicts:?}"
        );
    }

    #[test]
    fn what_straddles_the_aim_cannot_be_told() {
        let verdicts = judged(Setting::Heapwarden, &[("fop", &[0.8, 1.3])]);
        assert_eq!(verdicts[0].outcome, Outcome::CannotTell);
        assert_eq!(verdicts[1].outcome, Outcome::CannotTell);
    }

    #[test]
    fn pauses_memory_and_what_is_not_reported_can_miss() {
        let mut all = Vec::new();
        for pair in 0..10 {
            all.push(run("fop", Setting::Plain, pair, 1_000_000_000));
            let mut ours = run("fop", Setting::Heapwarden, pair, 1_000_000_000);
            ours.longest_pause_ms += 2.5;
            ours.memory.peak_resident_bytes += 10 << 20;
            ours.agent.as_mut().unwrap().cpu_seconds = reported(0.02);
            all.push(ours);
        }
        use Outcome::{Met, Missed};
        let verdicts = of(all);
        assert_eq!(outcomes(&verdicts), [Met, Met, Missed, Missed, Missed]);
    }

    #[test]
    fn few_pairs_tell_nothing() {
        let all = (0..2).flat_map(|pair| {
            [Setting::Plain, Setting::Heapwarden].map(|setting| run("fop", setting, pair, 1_000))
        });
        let verdicts = of(all.collect());
        assert_eq!(outcomes(&verdicts), [Outcome::CannotTell; 5]);
    }

    #[test]
    fn exact_is_held_against_a_third_of_what_was_published() {
        let verdicts = judged(Setting::Exact, &[("fop", &[2.0]), ("jython", &[6.0])]);
        assert_eq!(outcomes(&verdicts), [Outcome::Missed]);
        assert!(verdicts[0].measured.contains("missed by jython"));
        assert!(verdicts[0].measured.starts_with("1 of 2"));
    }

    #[test]
    fn what_charges_half_of_all_is_not_exact() {
        let mut all = Vec::new();
        for pair in 0..10 {
            all.push(run("fop", Setting::Plain, pair, 1_000));
            let mut exact = run("fop", Setting::Exact, pair, 1_500);
            exact.agent.as_mut().unwrap().dropped = 100.0;
            all.push(exact);
        }
        let verdicts = of(all);
        assert_eq!(outcomes(&verdicts), [Outcome::CannotTell]);
        assert!(
            verdicts[0].measured.ends_with("charged in fop"),
            "{verdicts:?}"
        );
    }

    #[test]
    fn a_rival_is_one_by_itself() {
        let mut all = Vec::new();
        for pair in 0..10 {
            all.push(run("fop", Setting::Heapwarden, pair, 1_010));
            all.push(run("fop", Setting::Jfr, pair, 1_000));
        }
        assert_eq!(outcomes(&of(all)), [Outcome::Missed; 3]);
    }

    #[test]
    fn a_part_may_cost_what_chance_makes() {
        let of = |value: f64, low: f64, high: f64| {
            Some(Estimate {
                value,
                low,
                high,
                pairs: 5,
            })
        };
        let chance = of(1.0, 0.99, 1.01);
        assert_eq!(within(of(1.005, 0.98, 1.03), chance), Outcome::Met);
        assert_eq!(within(of(0.95, 0.93, 0.96), chance), Outcome::Met);
        assert_eq!(within(of(1.02, 1.0, 1.03), chance), Outcome::CannotTell);
        assert_eq!(within(of(1.05, 1.02, 1.08), chance), Outcome::Missed);
        let few = Some(Estimate {
            pairs: 2,
            ..of(1.0, 0.9, 1.1).unwrap()
        });
        assert_eq!(within(few, chance), Outcome::CannotTell);
    }
}
