//! `THIRD-PARTY-LICENSES`: whose code is linked in, and the texts that its licences ask to be passed on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};
use heapwarden_harness::repository;

use super::dependencies::Crate;

/// How the files are called that crates keep such texts in, in capitals.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "NOTICE",
    "COPYRIGHT",
    "UNLICENSE",
];

/// The text: one section for each crate, and each text once.
pub(super) fn write(crates: &BTreeMap<String, Crate>) -> Result<Vec<u8>> {
    let mut others: Vec<&Crate> = crates.values().filter(|one| !one.own).collect();
    others.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let mut texts: Vec<String> = Vec::new();
    let mut list = String::new();
    for one in others {
        let mut numbers = Vec::new();
        for text in texts_of(one)? {
            let number = texts.iter().position(|known| *known == text);
            let number = number.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            numbers.push(format!("{}", number + 1));
        }
        write!(list, "{} {}: {}; ", one.name, one.version, one.licence)?;
        write!(list, "text {}", numbers.join(", "))?;
        if let Some(place) = &one.repository {
            write!(list, "; {place}")?;
        }
        list.push('\n');
    }
    let mut whole = format!(
        "Heapwarden is Apache-2.0 or MIT, at your choice. The library and the command are linked\n\
         from these crates, each under its own licence. The texts follow by number.\n\n{list}"
    );
    for (number, text) in texts.iter().enumerate() {
        let line = "-".repeat(72);
        write!(whole, "\n{line}\nText {}\n{line}\n\n{text}", number + 1)?;
    }
    Ok(whole.into_bytes())
}

/// The texts in a crate's folder. If it has none, those of the licences that it names.
fn texts_of(one: &Crate) -> Result<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(&one.folder)
        .with_context(|| format!("{} cannot be read", one.folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.to_uppercase();
            path.is_file() && NAMES.iter().any(|known| name.starts_with(known))
        })
        .collect();
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let text = fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        texts.push(normal(&String::from_utf8_lossy(&text)));
    }
    if texts.is_empty() {
        texts.push(standard(one)?);
    }
    Ok(texts)
}

/// The text of a licence that a crate names and does not bring.
fn standard(one: &Crate) -> Result<String> {
    let file = match one.licence.as_str() {
        // Of two that it gives the choice of, either will do.
        licence if licence.split(" OR ").any(|one| one == "Apache-2.0") => "LICENSE-APACHE",
        licence if licence.split(" OR ").any(|one| one == "MIT") => {
            let holder = format!("the authors of {}", one.name);
            let text = fs::read_to_string(repository::root().join("LICENSE-MIT"))?;
            let text: Vec<String> = (text.lines())
                .map(|line| match line.starts_with("Copyright") {
                    true => format!("Copyright (c) {holder}"),
                    false => line.to_owned(),
                })
                .collect();
            return Ok(normal(&text.join("\n")));
        }
        other => bail!("{} brings no text of its licence, {other}", one.name),
    };
    Ok(normal(&fs::read_to_string(repository::root().join(file))?))
}

/// Without what differs between copies of one text.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    format!("{}\n", text.trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::dependencies;

    #[test]
    fn every_crate_of_others_has_a_text() {
        let crates = dependencies::read().unwrap();
        let text = String::from_utf8(write(&crates).unwrap()).unwrap();
        for one in crates.values().filter(|one| !one.own) {
            let line = format!("{} {}: ", one.name, one.version);
            let line = text.lines().find(|found| found.starts_with(&line));
            assert!(
                line.is_some_and(|line| line.contains("; text ")),
                "{line:?}"
            );
        }
        assert!(text.contains("Permission is hereby granted"));
    }
}
