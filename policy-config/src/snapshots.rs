//! `[snapshots]`: files of what the accounts hold, written at intervals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::{Sink, is_invisible, quote};
use crate::tree::{Located, Section};
use crate::units::{DurationError, format_duration, parse_duration};

/// Shortest time between two scheduled snapshots.
pub const MIN_SNAPSHOT_EVERY: Duration = Duration::from_secs(1);
/// Longest time between two scheduled snapshots: a month.
pub const MAX_SNAPSHOT_EVERY: Duration = Duration::from_secs(31 * 86_400);
/// Most files that a JVM keeps.
pub const MAX_SNAPSHOTS_KEPT: u32 = 1000;

/// The folder of the snapshots, the times at which they are written, and how many of them are kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Snapshots {
    /// `directory`: an absolute path of a folder that is there.
    pub directory: PathBuf,
    /// `every`: the time between two files; `None` ("off"): none but the last. By default an hour.
    pub every: Option<Duration>,
    /// `keep`: how many files of its own a JVM keeps; older ones are removed. By default 48.
    pub keep: u32,
    /// `at-exit`: whether a last one is written when the JVM ends; by default true.
    pub at_exit: bool,
}

impl Snapshots {
    /// The defaults, with files in this folder.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Snapshots {
        Snapshots {
            directory: directory.into(),
            every: Some(Duration::from_secs(3600)),
            keep: 48,
            at_exit: true,
        }
    }

    /// `every` as the policy spells it.
    pub fn every_text(&self) -> String {
        every_text(self.every)
    }
}

pub(crate) fn every_text(every: Option<Duration>) -> String {
    every.map_or_else(|| "off".into(), format_duration)
}

pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Snapshots> {
    let every = every(section, sink);
    let keep = section.integer("keep", 1, MAX_SNAPSHOTS_KEPT, sink);
    let at_exit = section.switch("at-exit", sink);
    if every == Some(None) && at_exit == Some(false) {
        sink.warning(
            section.span(),
            "with every = \"off\" and at-exit = false no snapshot is ever written",
        )
        .hint("remove the table, or one of the two");
    }
    let default = Snapshots::in_directory(directory(section, sink)?);
    Some(Snapshots {
        every: every.unwrap_or(default.every),
        keep: keep.unwrap_or(default.keep),
        at_exit: at_exit.unwrap_or(default.at_exit),
        ..default
    })
}

fn directory(section: &Section<'_, '_>, sink: &mut Sink) -> Option<PathBuf> {
    const EXAMPLE: &str = "/var/lib/heapwarden";
    if section.key_span("directory").is_none() {
        sink.error(section.span(), "[snapshots] needs a directory")
            .hint(format!(
                "add directory = \"{EXAMPLE}\": a folder that the JVM's user may write to"
            ));
        return None;
    }
    let Located { value, span } = section.string("directory", EXAMPLE, sink)?;
    if value.chars().any(is_invisible) {
        sink.error(
            span,
            "the directory has control or invisible characters in it",
        )
        .hint("remove them");
    } else if !Path::new(value).is_absolute() {
        sink.error(span, format!("{} is not an absolute path", quote(value)))
            .hint("begin it with /: the agent does not change the JVM's working folder, but its start scripts may");
    } else {
        return Some(value.into());
    }
    None
}

/// The inner `None` is `off`.
fn every(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Option<Duration>> {
    let Located { value, span } = section.string("every", "1h", sink)?;
    if value == "off" {
        return Some(None);
    }
    let hint = "write a number and a unit, such as \"10m\", \"1h\" or \"1d\", or \"off\"";
    match parse_duration(value) {
        Ok(every) if (MIN_SNAPSHOT_EVERY..=MAX_SNAPSHOT_EVERY).contains(&every) => {
            return Some(Some(every));
        }
        Ok(_) | Err(DurationError::TooLong) => {
            let (least, most) = (
                format_duration(MIN_SNAPSHOT_EVERY),
                format_duration(MAX_SNAPSHOT_EVERY),
            );
            sink.error(span, format!("`every` must be from {least} to {most}"))
                .hint(hint);
        }
        Err(error @ DurationError::NotADuration) => {
            sink.error(span, format!("{} is {error}", quote(value)))
                .hint(hint);
        }
    }
    None
}
