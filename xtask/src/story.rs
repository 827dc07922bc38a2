//! `cargo xtask story`: plays the operators' story on real parts (`tests/tests/story.rs`) and puts
//! what was seen into the README. To be run, and the result committed, when what a command prints
//! there has changed.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// What stands before and after the transcript in the README.
const BEGIN: &str = "<!-- Written by `cargo xtask story`. -->\n```text\n";
const END: &str = "```\n<!-- Its end. -->\n";

/// Plays it and writes it down.
pub(crate) fn run() -> Result<()> {
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--release", "--package", "heapwarden-tests"])
        .args(["--test", "story", "--", "--nocapture"])
        .current_dir(workspace::root());
    process::run(&mut test, None)?;
    let seen = workspace::root().join("target/story.txt");
    let seen =
        fs::read_to_string(&seen).with_context(|| format!("{} is not there", seen.display()))?;
    let path = workspace::root().join("README.md");
    let readme = fs::read_to_string(&path).context("README.md cannot be read")?;
    let new = with_transcript(&readme, seen.trim_end())
        .context("README.md has no place for the transcript")?;
    fs::write(&path, new).context("README.md cannot be written")?;
    println!("written: {}", path.display());
    Ok(())
}

/// The README with another transcript; `None` where it has no place for one.
fn with_transcript(readme: &str, seen: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{seen}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_replaces_the_one_before() {
        let readme = |seen| format!("a\n{BEGIN}{seen}\n{END}b\n");
        assert_eq!(with_transcript(&readme("old"), "new"), Some(readme("new")));
        assert_eq!(with_transcript("nothing", "new"), None);
    }

    #[test]
    fn the_readme_has_a_place_for_it() {
        let readme = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        assert!(with_transcript(&readme, "").is_some());
    }
}
