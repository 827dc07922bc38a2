//! Results as dated files under `bench/results`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::build;
use crate::verdicts::Verdict;

/// The content of the JSON file.
#[derive(Serialize)]
struct Saved<'a, R> {
    results: &'a R,
    verdicts: &'a [Verdict],
}

/// The parts of a report, a blank line between two.
pub(crate) fn joined(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

/// Prints a report. If it is to be saved, `save` writes the files, whose paths are printed too.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn publish<P: IntoIterator<Item = PathBuf>>(
    report: &str,
    is_saved: bool,
    save: impl FnOnce() -> Result<P>,
) -> Result<()> {
    println!("{report}");
    if is_saved {
        for path in save()? {
            println!("saved {}", path.display());
        }
    }
    Ok(())
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

/// Reads the results that [`save`] wrote, without the verdicts.
///
/// # Errors
/// If it cannot be read; `wrong` is the complaint about a file that has other results.
pub(crate) fn read<R: DeserializeOwned>(file: &Path, wrong: &str) -> Result<R> {
    #[derive(Deserialize)]
    struct Results<R> {
        results: R,
    }
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let saved: Results<R> =
        serde_json::from_str(&text).with_context(|| format!("{} {wrong}", file.display()))?;
    Ok(saved.results)
}
