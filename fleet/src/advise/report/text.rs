//! The advice as text.

use std::io::{self, Write};

use crate::advise::advice::{Advice, JvmView, ServiceView, Verdict};
use crate::advise::forecast::{Estimate, Exhaustion};
use heapwarden_terminal::clock::format_duration;
use heapwarden_terminal::size::shown as bytes;

use super::columns::{self, Cell, Look, name, percent};

/// Services shown of a pressed JVM.
const MAX_SERVICES: usize = 10;

/// JVMs, or names of what is not assessed, that are shown at the most unless all are asked for.
const MAX_ROWS: usize = 20;

/// Writes all of it.
pub(super) fn write(advice: &Advice, look: Look, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let text = Text { advice, look, all };
    text.summary(out)?;
    text.moves(out)?;
    text.jvms(out)?;
    text.services(out)?;
    text.missing(out)?;
    for note in &advice.notes {
        writeln!(out, "Prometheus notes: {}", name(note, look))?;
    }
    Ok(())
}

struct Text<'a> {
    advice: &'a Advice,
    look: Look,
    all: bool,
}

impl Text<'_> {
    fn summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let advice = self.advice;
        let pressed = advice.jvms.iter().filter(|jvm| jvm.is_pressed).count();
        let excess = bytes(advice.plan.excess_bytes as f64);
        let left = bytes(advice.plan.unrelieved_bytes as f64);
        let moves = count(advice.moves.len(), "move");
        let headline = match advice.verdict {
            Verdict::Refused => "No advice: no JVM is known well enough.".to_owned(),
            Verdict::NothingToMove => "Nothing to move: no JVM is pressed.".to_owned(),
            Verdict::Move => format!(
                "{moves} of services would relieve {} of {excess}.",
                count(pressed, "pressed JVM")
            ),
            Verdict::MoveSome => format!(
                "{moves} of services would relieve {} of {excess} but {left}: {}.",
                count(pressed, "pressed JVM"),
                match advice.plan.moves_omitted {
                    0 => "the rest has no place in this fleet".to_owned(),
                    more => format!("the whole plan takes {more} more"),
                }
            ),
            Verdict::NoRelief => format!(
                "{} hold {excess} too much, and no service that can be moved has a place elsewhere.",
                count(pressed, "pressed JVM")
            ),
        };
        self.title(&headline, out)?;
        writeln!(
            out,
            "From {} to {} in steps of {}; a JVM is pressed where its heap after collections is expected above {} of its maximum in {}.",
            advice.from,
            advice.to,
            format_duration(advice.step_seconds),
            percent(advice.target_percent),
            format_duration(advice.horizon_seconds),
        )?;
        if advice.plan.moves_omitted > 0 {
            writeln!(
                out,
                "Of the whole plan these relieve most; none of them needs the others."
            )?;
        } else if !advice.moves.is_empty() {
            if advice.plan.is_optimal {
                writeln!(
                    out,
                    "No other plan relieves more; of those that relieve as much none has fewer moves, or as many with fewer bytes."
                )?;
            } else {
                writeln!(
                    out,
                    "It is not proven that this plan is the best: none leaves less than {}, and none that leaves no more than that has fewer than {}.",
                    bytes(advice.plan.bound_unrelieved_bytes as f64),
                    count(advice.plan.bound_moves as usize, "move"),
                )?;
            }
        }
        writeln!(out)
    }

    fn moves(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.advice.moves.is_empty() {
            return Ok(());
        }
        self.title("Moves, in any order", out)?;
        let rows: Vec<Vec<Cell>> = (self.advice.moves.iter().enumerate())
            .map(|(index, one)| {
                vec![
                    Cell::Value((index + 1).to_string()),
                    Cell::Name(one.service.clone()),
                    Cell::Name(one.from.shown.clone()),
                    Cell::Name(one.to.shown.clone()),
                    Cell::Value(interval(one.frees)),
                    Cell::Value(interval(one.needs)),
                    Cell::Value(change(one.from_percent, one.from_percent_after)),
                    Cell::Value(change(one.to_percent, one.to_percent_after)),
                ]
            })
            .collect();
        let heads = [
            "#",
            "service",
            "from",
            "to",
            "frees (95 %)",
            "needs (95 %)",
            "from, after all",
            "to, at most",
        ];
        columns::write(&heads, &rows, self.look, out)?;
        for (index, one) in self.advice.moves.iter().enumerate() {
            writeln!(out, "{}. {}", index + 1, one.reasons.join(" "))?;
        }
        writeln!(out)
    }

    /// The JVMs that the advice is about, or all.
    fn jvms(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_concerned = |jvm: &JvmView| {
            jvm.is_pressed || (self.advice.moves.iter()).any(|one| one.to == jvm.jvm)
        };
        let few = self.advice.jvms.len() <= MAX_ROWS;
        let shown: Vec<&JvmView> = self
            .advice
            .jvms
            .iter()
            .filter(|jvm| self.all || few || is_concerned(jvm))
            .collect();
        if shown.is_empty() {
            return self.others(0, out);
        }
        self.title("Heap after collections, 95 % of the time at the most", out)?;
        let horizon = format!("in {}", format_duration(self.advice.horizon_seconds));
        let heads = [
            "JVM", "maximum", "now", &horizon, "(95 %)", "a day", "full in",
        ];
        let rows: Vec<Vec<Cell>> = shown
            .iter()
            .map(|jvm| {
                let then = jvm.heap.high_then;
                let share = |bytes: f64| 100.0 * bytes / jvm.heap_max_bytes;
                vec![
                    Cell::Name(jvm.jvm.shown.clone()),
                    Cell::Value(bytes(jvm.heap_max_bytes)),
                    Cell::Value(percent(jvm.pressure_percent)),
                    Cell::Value(percent(jvm.pressure_then_percent)),
                    Cell::Value(format!(
                        "{:.0} to {:.0} %",
                        share(then.low_bytes),
                        share(then.high_bytes)
                    )),
                    Cell::Value(grows(jvm.heap.growth_per_day)),
                    Cell::Value(jvm.exhaustion.map_or_else(|| "-".into(), full)),
                ]
            })
            .collect();
        columns::write(&heads, &rows, self.look, out)?;
        self.others(shown.len(), out)
    }

    fn others(&self, shown: usize, out: &mut dyn Write) -> io::Result<()> {
        match self.advice.jvms.len() - shown {
            0 => Ok(()),
            others => writeln!(
                out,
                "{} not pressed and not needed (--all lists them).\n",
                count(others, "other JVM")
            ),
        }
    }

    fn services(&self, out: &mut dyn Write) -> io::Result<()> {
        for jvm in self
            .advice
            .jvms
            .iter()
            .filter(|jvm| self.all || jvm.is_pressed)
        {
            let shown = self.name(&jvm.jvm.shown);
            if !jvm.services.is_empty() {
                self.title(&format!("Services of {shown}"), out)?;
                let most = if self.all { usize::MAX } else { MAX_SERVICES };
                let rows: Vec<Vec<Cell>> = jvm.services.iter().take(most).map(service).collect();
                let heads = [
                    "service",
                    "median",
                    "95 %",
                    "± error",
                    "a day",
                    "would free",
                    "would need",
                ];
                columns::write(&heads, &rows, self.look, out)?;
                if let Some(others) = jvm.services.len().checked_sub(most).filter(|n| *n > 0) {
                    writeln!(
                        out,
                        "{} that hold less (--all lists them).\n",
                        count(others, "other")
                    )?;
                }
            }
            for one in jvm.unassessed.iter().take(self.most_rows()) {
                writeln!(
                    out,
                    "Not judged: {} of {shown}: {}.",
                    self.name(&one.service),
                    one.missing
                )?;
            }
            self.rest(jvm.unassessed.len(), out)?;
        }
        Ok(())
    }

    fn missing(&self, out: &mut dyn Write) -> io::Result<()> {
        let missing = &self.advice.unassessed;
        for one in missing.iter().take(self.most_rows()) {
            writeln!(
                out,
                "Neither relieved nor loaded: {}: {}.",
                self.name(&one.jvm.shown),
                one.missing
            )?;
        }
        self.rest(missing.len(), out)
    }

    /// Ends a list of which not all was shown.
    fn rest(&self, length: usize, out: &mut dyn Write) -> io::Result<()> {
        match length.saturating_sub(self.most_rows()) {
            0 if length == 0 => Ok(()),
            0 => writeln!(out),
            others => writeln!(out, "And {others} more (--all lists them).\n"),
        }
    }

    fn most_rows(&self) -> usize {
        if self.all { usize::MAX } else { MAX_ROWS }
    }

    fn name(&self, text: &str) -> String {
        name(text, self.look)
    }

    fn title(&self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        match self.look {
            Look::Terminal => writeln!(out, "{text}"),
            Look::Markdown => writeln!(out, "### {text}\n"),
        }
    }
}

fn service(service: &ServiceView) -> Vec<Cell> {
    let live = &service.live;
    vec![
        Cell::Name(heapwarden_terminal::printable::fitted(&service.service, 60).into_owned()),
        Cell::Value(bytes(live.median_bytes)),
        Cell::Value(bytes(live.high_bytes)),
        Cell::Value(bytes(live.standard_error_bytes)),
        Cell::Value(grows(live.growth_per_day)),
        Cell::Value(bytes(live.median_then.low_bytes)),
        Cell::Value(bytes(live.high_then.high_bytes)),
    ]
}

/// Growth, if it is sure.
fn grows(growth: crate::advise::forecast::Daily) -> String {
    if growth.is_sure {
        format!("+{}", bytes(growth.bytes))
    } else {
        "-".into()
    }
}

fn full(exhaustion: Exhaustion) -> String {
    let latest = exhaustion
        .latest_seconds
        .map_or_else(|| "?".into(), format_duration);
    format!(
        "{} ({} to {latest})",
        format_duration(exhaustion.seconds),
        format_duration(exhaustion.earliest_seconds)
    )
}

/// The estimate and both ends.
fn interval(estimate: Estimate) -> String {
    format!(
        "{} ({} to {})",
        bytes(estimate.bytes),
        bytes(estimate.low_bytes),
        bytes(estimate.high_bytes)
    )
}

fn change(before: f64, after: f64) -> String {
    format!("{before:.0} -> {after:.0} %")
}

fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
