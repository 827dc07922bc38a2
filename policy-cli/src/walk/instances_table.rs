//! Single objects, a table for each question.

use std::io::{self, Write};

use policy_report::{InstanceRow, Instances, ShownValue};

use super::paths_text::pause;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of a class, and widest value, in columns.
const MAX_CLASS_COLUMNS: usize = 48;
const MAX_VALUE_COLUMNS: usize = 84;
/// Most rows of a table, and most classes that are listed.
const MAX_ROWS: usize = 100;
const MAX_CLASSES: usize = 20;

/// The columns of single objects, of equal values, and of capacity without content.
const OBJECTS: [(&str, Align); 7] = [
    ("CLASS", Align::Left),
    ("BYTES", Align::Right),
    ("ELEMENTS", Align::Right),
    ("CAPACITY", Align::Right),
    ("AGE", Align::Right),
    ("COLLECTIONS", Align::Right),
    ("VALUE", Align::Left),
];
const EQUAL: [(&str, Align); 6] = [
    ("CLASS", Align::Left),
    ("OBJECTS", Align::Right),
    ("LIVE ± ERROR", Align::Right),
    ("WITH CONTENT ± ERROR", Align::Right),
    ("SAMPLES", Align::Right),
    ("VALUE", Align::Left),
];
const WASTED: [(&str, Align); 6] = [
    ("CLASS", Align::Left),
    ("OBJECTS", Align::Right),
    ("EMPTY", Align::Right),
    ("WASTED ± ERROR", Align::Right),
    ("OF", Align::Right),
    ("SAMPLES", Align::Right),
];

/// Writes what was looked at, and the tables.
pub(super) fn write(found: &Instances<'_>, out: &mut dyn Write) -> io::Result<()> {
    let class = |text: &str| printable::fitted_name(text, MAX_CLASS_COLUMNS).into_owned();
    let of_class =
        (found.class.as_deref()).map_or(String::new(), |name| format!(" of {}", class(name)));
    writeln!(
        out,
        "{}: {} sampled objects{of_class} stand for {} live bytes; {} were looked at, {} of them drawn by lot{}",
        class(&found.account),
        amount::count(found.sampled),
        amount::estimate(found.live_bytes, found.standard_error_bytes),
        amount::count(found.looked_at),
        amount::count(found.drawn.min(found.looked_at)),
        match found.gone {
            0 => String::new(),
            gone => format!(", and {} had been freed", amount::count(gone)),
        },
    )?;
    writeln!(
        out,
        "{} searches, the longest {}, {} in all: so long a thread that was sampled may have waited",
        amount::count(found.searches),
        pause(found.longest_search_ms),
        pause(found.searches_ms),
    )?;
    if let Some(why) = &found.cut_short {
        let why = printable::fitted(why, 200);
        writeln!(out, "Fewer than there should be were looked at: {why}.")?;
    }
    if !found.values_shown {
        writeln!(
            out,
            "Values are masked: [privacy] values = true in the policy shows them."
        )?;
    }
    if !found.not_readable.is_empty() {
        let classes: Vec<String> = (found.not_readable.iter().take(MAX_CLASSES))
            .map(|name| class(name))
            .collect();
        writeln!(out, "Not readable in this JDK: {}.", classes.join(", "))?;
    }
    let objects = [
        ("Largest", &found.largest),
        ("Most elements", &found.elements),
        ("Oldest", &found.oldest),
    ];
    for (title, rows) in objects {
        if let Some(rows) = rows {
            writeln!(out, "\n{title}:")?;
            write_objects(rows, out)?;
        }
    }
    if let Some(rows) = &found.equal {
        writeln!(out, "\nMost frequent equal values:")?;
        let mut grid = Grid::new(EQUAL);
        for row in rows.iter().take(MAX_ROWS) {
            grid.row([
                class(&row.class),
                amount::count(row.objects),
                amount::estimate(row.live_bytes, row.standard_error_bytes),
                amount::estimate(
                    row.with_content_bytes,
                    row.with_content_standard_error_bytes,
                ),
                amount::count(row.samples),
                value(&row.value),
            ]);
        }
        write_grid(&grid, out)?;
    }
    if let Some(rows) = &found.wasted {
        writeln!(out, "\nWasted capacity:")?;
        let mut grid = Grid::new(WASTED);
        for row in rows.iter().take(MAX_ROWS) {
            grid.row([
                class(&row.class),
                amount::count(row.objects),
                amount::count(row.empty_objects),
                amount::estimate(row.wasted_bytes, row.standard_error_bytes),
                amount::bytes(row.capacity_bytes),
                amount::count(row.samples),
            ]);
        }
        write_grid(&grid, out)?;
    }
    Ok(())
}

/// A table, or that there is nothing in it.
fn write_grid(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    match grid.is_empty() {
        true => writeln!(out, "  nothing"),
        false => grid.write(2, out),
    }
}

fn write_objects(rows: &[InstanceRow<'_>], out: &mut dyn Write) -> io::Result<()> {
    let number = |count: Option<u64>| count.map_or_else(String::new, amount::count);
    let mut grid = Grid::new(OBJECTS);
    for row in rows.iter().take(MAX_ROWS) {
        grid.row([
            printable::fitted_name(&row.class, MAX_CLASS_COLUMNS).into_owned(),
            amount::count(row.bytes),
            number(row.elements),
            number(row.capacity),
            age(row.age_at_least_seconds, row.age_at_most_seconds),
            amount::count(row.collections_survived),
            row.value.as_ref().map_or_else(String::new, value),
        ]);
    }
    write_grid(&grid, out)
}

/// Between two ages, in seconds.
fn age(least: f64, most: f64) -> String {
    let one = |seconds: f64| match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    };
    let (from, to) = (one(least), one(most));
    if from == to {
        return from;
    }
    format!("{from} to {to}")
}

/// A value, or what stands for it.
fn value(value: &ShownValue<'_>) -> String {
    let length = value
        .length
        .map(|length| format!("length {}", amount::count(length)));
    let shown = match (&value.text, &value.digest) {
        (Some(text), _) => printable::fitted(text, MAX_VALUE_COLUMNS).into_owned(),
        (None, Some(digest)) => format!("#{}", printable::fitted(digest, 16)),
        (None, None) => String::new(),
    };
    match length {
        // The length of a text that is whole is seen.
        Some(length) if value.text.is_none() || shown.ends_with('…') => {
            format!("{shown} ({length})").trim_start().to_owned()
        }
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_control_a_terminal_and_masked_ones_have_a_length() {
        let mut one = ShownValue {
            text: Some("\u{1b}[31mred\u{202e}".into()),
            digest: None,
            length: Some(9),
        };
        assert_eq!(value(&one), "\\u{1b}[31mred\\u{202e}");
        one.text = None;
        one.digest = Some("00ff".into());
        assert_eq!(value(&one), "#00ff (length 9)");
        one.digest = None;
        assert_eq!(value(&one), "(length 9)");
        one.length = None;
        one.digest = Some("00ff".into());
        assert_eq!(value(&one), "#00ff");
        one = ShownValue {
            text: Some("x".repeat(200).into()),
            digest: None,
            length: Some(2000),
        };
        assert!(value(&one).ends_with("… (length 2000)"), "{}", value(&one));
    }

    #[test]
    fn an_age_is_a_range_unless_both_ends_are_written_alike() {
        assert_eq!(age(3.1, 3.2), "3 s");
        assert_eq!(age(3.1, 130.0), "3 s to 2 min");
        assert_eq!(age(7_300.0, 200_000.0), "2 h to 2 d");
    }

    #[test]
    fn what_was_looked_at_and_what_is_missing_is_said() {
        let found = Instances {
            account: "shop".into(),
            cut_short: Some("10 s were over".into()),
            not_readable: vec!["java.util.HashMap".into()],
            wasted: Some(Vec::new()),
            ..Instances::default()
        };
        let mut out = Vec::new();
        write(&found, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            "Not readable in this JDK: java.util.HashMap.",
            "10 s were over",
            "Values are masked",
            "Wasted capacity:\n  nothing\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("Oldest"), "{text}");
    }
}
