//! The pictures of the curves.

use super::axis::{Axis, Scale};
use super::chart::{Bar, Dot, Line, Panel, Picture};
use super::figures::{Cost, Figures};
use super::numbers::{count, percent_more, plain};
use super::plan::{ACCOUNT_BYTES, Curve};
use super::runs::Runs;
use crate::bootstrap::Estimate;

/// Below this much, costs and errors are drawn as nothing, in percent.
const LEAST_COST: f64 = 0.1;
const LEAST_ERROR: f64 = 0.02;

const LIVE_OBJECTS: &str = "live tracked objects (young generation of 64 MB)";

/// All that there are figures for.
pub(crate) fn of(figures: &Figures, runs: &Runs) -> Vec<Picture> {
    let curves = [
        (
            Curve::AllocationRate,
            "allocation rate",
            "allocated in plain Java (MB per second of CPU)",
        ),
        (
            Curve::StackDepth,
            "stack depth",
            "frames of the stack that allocates",
        ),
        (Curve::Threads, "threads", "threads that allocate"),
        (Curve::LiveSamples, "live tracked samples", LIVE_OBJECTS),
        (
            Curve::Accounts,
            "accounts",
            "services, each with its account",
        ),
        (
            Curve::Patterns,
            "package patterns",
            "package patterns, none of which matches",
        ),
    ];
    let note = note(runs);
    let mut pictures: Vec<Picture> = curves
        .into_iter()
        .filter_map(|(curve, what, label)| cost(figures, curve, what, label, &note))
        .collect();
    pictures.extend(pauses(figures, &note));
    pictures.extend(start_up(figures, &note));
    pictures.extend(accuracy(figures, &note));
    pictures
}

fn note(runs: &Runs) -> String {
    format!(
        "JDK {}, {} cores, pairs of runs: {}, {}; bars: 95 % interval",
        runs.jdk, runs.machine.cores, runs.pairs, runs.machine.date
    )
}

/// Returns the rate at which plain Java allocates, in words: the range over all points.
fn rate(bytes_a_second: &[f64]) -> String {
    let (low, high) = crate::stats::range(bytes_a_second);
    let (low, high) = (count(low / 1e6), count(high / 1e6));
    match low == high {
        true => format!("{low} MB a second"),
        false => format!("{low} to {high} MB a second"),
    }
}

fn picture(name: &str, title: String, note: &str, panels: Vec<Panel>) -> Option<Picture> {
    let has_dots = panels.iter().any(|panel| !panel.lines.is_empty());
    has_dots.then(|| Picture {
        name: format!("curve-{name}"),
        title,
        note: note.to_owned(),
        panels,
    })
}

/// Lines by name, in the order in which the names come.
fn lines(dots: impl IntoIterator<Item = (String, Dot)>, is_joined: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (name, dot) in dots {
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.dots.push(dot),
            None => lines.push(Line {
                name,
                dots: vec![dot],
                is_joined,
            }),
        }
    }
    lines
}

fn dot(x: f64, y: Bar) -> Dot {
    Dot {
        x: Bar::exact(x),
        y,
        label: String::new(),
    }
}

/// An axis that holds all of the lines' values of y, and these.
fn y_axis(label: &str, scale: Scale, lines: &[Line], also: &[f64]) -> Axis {
    let dots = lines.iter().flat_map(|line| &line.dots);
    let mut values: Vec<f64> = dots.flat_map(|dot| dot.y.values()).collect();
    values.extend(also);
    Axis::holding(label, scale, &values, plain)
}

fn cost(figures: &Figures, curve: Curve, what: &str, x_label: &str, note: &str) -> Option<Picture> {
    let costs = figures.costs_of(curve);
    let in_units = |x: f64| {
        if curve == Curve::AllocationRate {
            x / 1e6
        } else {
            x
        }
    };
    let xs: Vec<f64> = costs.iter().map(|cost| in_units(cost.x)).collect();
    let log = Scale::Log {
        floor: f64::MIN_POSITIVE,
    };
    let x = match curve {
        Curve::AllocationRate => Axis::holding(x_label, log, &xs, count),
        Curve::StackDepth => Axis::at(x_label, Scale::Linear, &xs, count),
        _ => Axis::at(x_label, log, &xs, count),
    };
    let panel = |title: &str, ratio: &dyn Fn(&Cost) -> Estimate| {
        let dots = costs.iter().map(|cost| {
            let y = Bar::of(&ratio(cost), percent_more);
            (cost.setting.clone(), dot(in_units(cost.x), y))
        });
        let lines = lines(dots, true);
        Panel {
            title: title.to_owned(),
            x: x.clone(),
            y: y_axis("more than plain Java (%)", Scale::Linear, &lines, &[0.0]),
            mark: Some(0.0),
            is_falling: false,
            lines,
        }
    };
    let panels = vec![
        panel("wall time", &|cost| cost.wall_ratio),
        panel("CPU time of the process", &|cost| cost.cpu_ratio),
    ];
    let rates: Vec<f64> = costs.iter().map(|cost| cost.plain_bytes_a_second).collect();
    let title = match curve {
        Curve::AllocationRate => format!("Cost against {what}"),
        _ => format!("Cost against {what}, at {} of CPU", rate(&rates)),
    };
    picture(curve.name(), title, note, panels)
}

fn pauses(figures: &Figures, note: &str) -> Option<Picture> {
    let xs: Vec<f64> = figures.pauses.iter().map(|pauses| pauses.x).collect();
    let log = Scale::Log {
        floor: f64::MIN_POSITIVE,
    };
    let panel = |title: &str, longest: bool| {
        let dots = figures.pauses.iter().map(|pauses| {
            let estimate = if longest {
                &pauses.longest_ms
            } else {
                &pauses.total_ms
            };
            (
                pauses.setting.clone(),
                dot(pauses.x, Bar::of(estimate, |ms| ms)),
            )
        });
        let lines = lines(dots, true);
        Panel {
            title: title.to_owned(),
            x: Axis::at(LIVE_OBJECTS, log, &xs, count),
            y: y_axis("milliseconds", Scale::Linear, &lines, &[0.0]),
            mark: None,
            is_falling: false,
            lines,
        }
    };
    let panels = vec![
        panel("longest pause", true),
        panel("all pauses of a run", false),
    ];
    let title = "Collection pauses against live tracked samples".to_owned();
    picture("pauses", title, note, panels)
}

fn start_up(figures: &Figures, note: &str) -> Option<Picture> {
    let costs = figures.costs_of(Curve::StartUp);
    let names: Vec<&str> = costs.iter().map(|cost| cost.setting.as_str()).collect();
    let numbers: Vec<f64> = (0..costs.len()).map(|number| number as f64).collect();
    let panel = |title: &str, more: &dyn Fn(&Cost) -> Estimate| {
        let dots = costs
            .iter()
            .zip(&numbers)
            .map(|(cost, &number)| (title.to_owned(), dot(number, Bar::of(&more(cost), |ms| ms))));
        let lines = lines(dots, false);
        let name = |number: f64| names[number as usize].to_owned();
        let mut x = Axis::at("what is in the JVM", Scale::Linear, &numbers, name);
        x.range = (-0.5, numbers.len() as f64 - 0.5);
        Panel {
            title: title.to_owned(),
            x,
            y: y_axis("more than plain Java (ms)", Scale::Linear, &lines, &[0.0]),
            mark: Some(0.0),
            is_falling: false,
            lines,
        }
    };
    let panels = vec![
        panel("wall time", &|cost| cost.wall_more_ms),
        panel("CPU time of the process", &|cost| cost.cpu_more_ms),
    ];
    let title = "Start to end of a JVM that says hello".to_owned();
    picture(Curve::StartUp.name(), title, note, panels)
}

fn accuracy(figures: &Figures, note: &str) -> Option<Picture> {
    let in_percent = |part: f64| 100.0 * part;
    let (cost, error) = (
        Scale::Log { floor: LEAST_COST },
        Scale::Log { floor: LEAST_ERROR },
    );
    let dots = figures.accuracy.iter().flat_map(|of| {
        let dot = |estimate: &Estimate, label: &str| Dot {
            x: Bar::of(&of.cpu_ratio, percent_more),
            y: Bar::of(estimate, in_percent),
            label: label.to_owned(),
        };
        [
            (
                "standard error, published".to_owned(),
                dot(&of.published, &of.interval),
            ),
            (
                "true error, root mean square".to_owned(),
                dot(&of.error, ""),
            ),
        ]
    });
    let lines = lines(dots, true);
    let xs = lines
        .iter()
        .flat_map(|line| &line.dots)
        .flat_map(|dot| dot.x.values());
    let mut xs: Vec<f64> = xs.collect();
    xs.push(LEAST_COST);
    let none = |least: f64| {
        move |value: f64| match value > least {
            true => plain(value),
            false => format!("{} or less", plain(least)),
        }
    };
    let dots = lines.iter().flat_map(|line| &line.dots);
    let mut ys: Vec<f64> = dots.flat_map(|dot| dot.y.values()).collect();
    ys.push(LEAST_ERROR);
    let panel = Panel {
        title: String::new(),
        x: Axis::holding(
            "CPU time more than plain Java (%)",
            cost,
            &xs,
            none(LEAST_COST),
        ),
        y: Axis::holding("of the account's size (%)", error, &ys, none(LEAST_ERROR)),
        mark: None,
        is_falling: true,
        lines,
    };
    let mib = ACCOUNT_BYTES >> 20;
    let costs = figures.costs_of(Curve::Accuracy);
    let rates: Vec<f64> = costs.iter().map(|cost| cost.plain_bytes_a_second).collect();
    let title = format!(
        "Accuracy of an account of {mib} MiB against cost, by interval, at {} of CPU",
        rate(&rates)
    );
    picture(Curve::Accuracy.name(), title, note, vec![panel])
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::{run, runs};
    use super::*;

    #[test]
    fn there_is_a_picture_for_each_curve_that_was_measured() {
        let all = runs(vec![
            run(Curve::LiveSamples, 1_000.0, "plain", 0, 100),
            run(Curve::LiveSamples, 1_000.0, "agent", 0, 110),
            run(Curve::StartUp, 0.0, "plain", 0, 100),
            run(Curve::StartUp, 0.0, "agent", 0, 110),
        ]);
        let points = [Curve::LiveSamples, Curve::StartUp, Curve::Threads]
            .iter()
            .flat_map(|curve| curve.points())
            .collect::<Vec<_>>();
        let pictures = of(&Figures::of(&points, &all), &all);
        let names: Vec<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            ["curve-live-samples", "curve-pauses", "curve-start-up"]
        );
        let dots = &pictures[0].panels[1].lines[0].dots;
        assert!((dots[0].y.value - 10.0).abs() < 1e-9, "{dots:?}");
    }
}
