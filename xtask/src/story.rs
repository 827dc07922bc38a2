//! `cargo xtask story`: plays the operators' story on real servers (`tests/tests/operator_story.rs`) and writes
//! the transcript into `docs/story.md`. Run it, and commit the result, when the output of a command in
//! the transcript has changed.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use heapwarden_harness::repository;

use crate::process;

/// The page that shows the transcript, relative to the repository's root.
const PAGE: &str = "docs/story.md";
/// The lines before and after the transcript on the page.
const BEGIN: &str = "<!-- Written by `cargo xtask story`. -->\n```text\n";
const END: &str = "```\n<!-- Its end. -->\n";

/// Plays it and writes it down.
pub(crate) fn run() -> Result<()> {
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--release", "--package", "heapwarden-tests"])
        .args(["--test", "operator_story", "--", "--nocapture"])
        .current_dir(repository::root());
    process::run(&mut test, None)?;
    let seen = repository::root().join("target/story.txt");
    let seen =
        fs::read_to_string(&seen).with_context(|| format!("{} is not there", seen.display()))?;
    let path = repository::root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("{PAGE} cannot be read"))?;
    let new = with_transcript(&page, seen.trim_end())
        .with_context(|| format!("{PAGE} has no place for the transcript"))?;
    fs::write(&path, new).with_context(|| format!("{PAGE} cannot be written"))?;
    println!("written: {}", path.display());
    Ok(())
}

/// The page with another transcript; `None` if it has no place for one.
fn with_transcript(page: &str, seen: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{seen}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_replaces_the_one_before() {
        let page = |seen| format!("a\n{BEGIN}{seen}\n{END}b\n");
        assert_eq!(with_transcript(&page("old"), "new"), Some(page("new")));
        assert_eq!(with_transcript("nothing", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_it() {
        let page = fs::read_to_string(repository::root().join(PAGE)).unwrap();
        assert!(with_transcript(&page, "").is_some());
    }
}
