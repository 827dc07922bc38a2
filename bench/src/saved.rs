//! Results as dated files under `bench/results`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::build;
use crate::verdicts::Verdict;

/// The content of the JSON file.
#[derive(Serialize)]
struct Saved<'a, R> {
    results: &'a R,
    verdicts: &'a [Verdict],
}

/// Writes `BENCH-DATE.md` and `.json` and returns their paths within the repository. A run later
/// on the same day takes the place of the earlier one.
///
/// # Errors
/// Where the folder or a file cannot be written.
pub(crate) fn save(
    bench: &str,
    date: &str,
    markdown: String,
    results: &impl Serialize,
    verdicts: &[Verdict],
) -> Result<[PathBuf; 2]> {
    let folder = PathBuf::from("bench/results");
    std::fs::create_dir_all(build::root().join(&folder)).context("bench/results cannot be made")?;
    let file = |extension: &str| folder.join(format!("{bench}-{date}.{extension}"));
    let json = serde_json::to_string_pretty(&Saved { results, verdicts })?;
    let texts = [(file("md"), markdown), (file("json"), json + "\n")];
    for (path, text) in &texts {
        std::fs::write(build::root().join(path), text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(texts.map(|(path, _)| path))
}
