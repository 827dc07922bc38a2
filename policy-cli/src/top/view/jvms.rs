//! One line for each JVM: its heap, or why it cannot be read.

use ratatui::text::{Line, Span};

use super::drawing::padded;
use super::palette::Palette;
use crate::status::{live_line, remarks};
use crate::top::model::{Jvm, Model};
use heapwarden_client::live;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// Columns of the bar that shows how full the heap is.
const BAR_COLUMNS: usize = 10;
/// From this width on, the JVM's name and JDK stand beside its process id.
const MEDIUM: usize = 100;
/// From this width on, there is room for the bar as well.
const WIDE: usize = 150;
/// Widest name of a program, and widest version of a JDK, in columns.
const MAX_PROGRAM_COLUMNS: usize = 24;
const MAX_VERSION_COLUMNS: usize = 12;

/// At most `most` lines; if not all JVMs fit, the last line counts the others.
pub(super) fn lines(
    model: &Model,
    most: usize,
    columns: u16,
    palette: Palette,
) -> Vec<Line<'static>> {
    let columns = usize::from(columns);
    let longest = model
        .jvms
        .iter()
        .map(|jvm| printable::columns(&jvm.address))
        .max();
    let name_columns = longest.unwrap_or(0).min((columns / 3).max(10));
    let room = if model.jvms.len() > most {
        most.saturating_sub(1)
    } else {
        most
    };
    let mut lines: Vec<Line<'static>> = model
        .jvms
        .iter()
        .take(room)
        .map(|jvm| line(model, jvm, (name_columns, columns), palette))
        .collect();
    let more = &model.jvms[room.min(model.jvms.len())..];
    if most > 0 && !more.is_empty() {
        let down = more.iter().filter(|jvm| jvm.error.is_some()).count();
        lines.push(Line::raw(format!(
            "and {} more JVMs, {down} of them down",
            more.len()
        )));
    }
    lines
}

fn line(
    model: &Model,
    jvm: &Jvm,
    (name_columns, columns): (usize, usize),
    palette: Palette,
) -> Line<'static> {
    let name = Span::raw(format!("{}  ", padded(&jvm.address, name_columns)));
    if let Some(error) = &jvm.error {
        let since = match jvm.reading {
            Some(_) => {
                let seconds = model.now.saturating_sub(jvm.read_at).as_secs();
                format!("DOWN for {seconds} s: ")
            }
            None => "DOWN: ".into(),
        };
        return Line::from(vec![
            name,
            Span::styled(since, palette.trouble()),
            Span::raw(printable::escaped(error).into_owned()),
        ]);
    }
    let Some(reading) = &jvm.reading else {
        return Line::from(vec![name, Span::raw("is being asked …")]);
    };
    let heap = &reading.accounts.heap;
    let share = match heap.max_bytes {
        0 => 0.0,
        max_bytes => heap.used_after_gc_bytes as f64 / max_bytes as f64,
    };
    let process = process(&reading.accounts.jvm, columns);
    let bar = match process.is_empty() || columns >= WIDE {
        true => format!("{} ", bar(share)),
        false => String::new(),
    };
    let mut parts = vec![
        name,
        Span::raw(format!(
            "{process}heap {bar}{} {} of {}  {}  {}",
            amount::percent(share * 100.0),
            amount::bytes(heap.used_after_gc_bytes),
            amount::bytes(heap.max_bytes),
            printable::fitted(&reading.accounts.policy.mode, 10),
            live_line(heap, model.now.saturating_sub(jvm.read_at))
                .unwrap_or_else(|| format!("collection {}", amount::count(heap.gc_epoch))),
        )),
    ];
    let remarks = remarks(&reading.accounts, reading.not_ready.as_deref());
    if let Some(first) = remarks.first() {
        parts.push(Span::styled(format!("  ! {first}"), palette.warning()));
    }
    Line::from(parts)
}

/// `PID 4711 Bootstrap, JDK 21.0.5  `, as much of it as the width allows; empty if the agent does not say (an
/// older one).
fn process(jvm: &live::Jvm, columns: usize) -> String {
    if jvm.pid == 0 {
        return String::new();
    }
    let pid = format!("PID {}", jvm.pid);
    if columns < MEDIUM {
        return format!("{pid}  ");
    }
    // As jps shows it.
    let name = match jvm.name.rsplit_once('.') {
        Some((_, class)) if !jvm.name.ends_with(".jar") => class,
        _ => &jvm.name,
    };
    let version = jvm.version.split('+').next().unwrap_or_default();
    let name = printable::fitted_name(name, MAX_PROGRAM_COLUMNS);
    let version = printable::fitted(version, MAX_VERSION_COLUMNS);
    let mut text = format!("{pid} {name}").trim_end().to_owned();
    if !version.is_empty() {
        text.push_str(&format!(", JDK {version}"));
    }
    text + "  "
}

fn bar(share: f64) -> String {
    // Saturates; NaN is 0.
    let full = ((share * BAR_COLUMNS as f64).round() as usize).min(BAR_COLUMNS);
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR_COLUMNS - full))
}
