//! `cargo xtask picture`: takes the picture of the page that the documents show, by the test that checks the
//! page of a leaking service.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use heapwarden_harness::repository;

use crate::{process, tools};

/// Where it lies.
const PICTURE: &str = "docs/images/page.png";

/// Takes it.
///
/// # Errors
/// A tool that is missing, or a test that fails.
pub(crate) fn run() -> Result<()> {
    tools::maven()?;
    tools::chromium()?;
    tools::npm()?;
    let path = repository::root().join(PICTURE);
    let folder = path.parent().context("it lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let mut test = Command::new(env!("CARGO"));
    test.args([
        "test",
        "--profile",
        "checks",
        "--package",
        "heapwarden-tests",
    ])
    .args(["--test", "page", "--", "--ignored", "picture"])
    .current_dir(repository::root())
    .env("HEAPWARDEN_TEST_PICTURE", &path);
    process::run(&mut test, None)?;
    println!("written: {}", path.display());
    Ok(())
}
