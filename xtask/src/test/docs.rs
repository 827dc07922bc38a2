//! The Markdown documents: every link between them resolves, the README stays short, and the table of
//! promises names every test program.
//!
//! Checked are links and images to files of this repository, relative or by its own address on
//! GitHub, with their anchors. Links to other sites are not followed: the tests need no network.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::context::Context;
use super::runner::Summary;
use heapwarden_harness::repository;

/// Most lines of `README.md`: a newcomer reads it to the end.
const MAX_README_LINES: usize = 250;
/// The page with the table of promises and the tests that guard them, and the table's marks.
const PROMISES: (&str, &str, &str) = (
    "docs/contributing.md",
    "<!-- PROMISES:",
    "<!-- End of PROMISES. -->",
);
/// The address under which readers on GitHub see the repository's files.
const OWN_ADDRESS: &str = "https://github.com/heapwarden/heapwarden/blob/main/";

/// Checks every document of the repository.
///
/// # Errors
/// All problems at once, one a line; or a file that cannot be read.
pub(super) fn check(context: &Context, _: &mut Vec<Summary>) -> Result<()> {
    let (links, mut problems) = check_folder(repository::root())?;
    problems.extend(check_promises(repository::root(), &context.steps)?);
    if !problems.is_empty() {
        bail!(
            "{} problems:\n    {}",
            problems.len(),
            problems.join("\n    ")
        );
    }
    println!("{links} links resolve");
    Ok(())
}

/// One document.
struct Page {
    /// The anchors that GitHub gives its headings.
    anchors: BTreeSet<String>,
    /// Destinations as written, with the lines that they stand in.
    links: Vec<(usize, String)>,
}

/// The number of links checked, and what is wrong below `root`.
fn check_folder(root: &Path) -> Result<(usize, Vec<String>)> {
    let root = root.canonicalize().context("no such folder")?;
    let mut pages = BTreeMap::new();
    let mut problems = Vec::new();
    for path in documents(&root)? {
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let lines = text.lines().count();
        if path == root.join("README.md") && lines > MAX_README_LINES {
            problems.push(format!(
                "README.md has {lines} lines; {MAX_README_LINES} are allowed: move what a newcomer does not need to docs/"
            ));
        }
        pages.insert(path, read(&text));
    }
    let mut links = 0;
    for (path, page) in &pages {
        for (line, link) in &page.links {
            let Some(destination) = own(link) else {
                continue;
            };
            links += 1;
            if let Err(problem) = resolve(&root, path, &destination, &pages) {
                let path = path.strip_prefix(&root).unwrap_or(path).display();
                problems.push(format!("{path}:{line}: {link}: {problem}"));
            }
        }
    }
    Ok((links, problems))
}

/// The Markdown files below `folder`, without hidden folders and build output.
fn documents(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(documents(&entry.path())?);
        } else if kind.is_file() && name.ends_with(".md") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Test programs that the table of promises lacks, and names in it that are no test program.
fn check_promises(root: &Path, steps: &[&str]) -> Result<Vec<String>> {
    let (page, begin, end) = PROMISES;
    let text = fs::read_to_string(root.join(page)).with_context(|| format!("no {page}"))?;
    let table = text
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end))
        .map(|(table, _)| table)
        .with_context(|| format!("{page} has no table between {begin:?} and {end:?}"))?;
    let required = programs(&root.join("tests/tests"))?;
    let mut known: BTreeSet<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    for entry in fs::read_dir(root)? {
        let package = entry?.path();
        let tests = package.join("tests");
        if package.join("Cargo.toml").is_file() && tests.is_dir() {
            known.extend(programs(&tests)?);
            known.extend(
                package
                    .file_name()
                    .map(|name| name.to_string_lossy().into()),
            );
        }
    }
    known.extend(required.iter().cloned());
    Ok(compare_promises(table, &required, &known)
        .into_iter()
        .map(|problem| format!("{page}: {problem}"))
        .collect())
}

/// The test programs in a folder: a file each, or a folder with a `main.rs`.
fn programs(folder: &Path) -> Result<BTreeSet<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let path = entry?.path();
        let is_file = path.extension().is_some_and(|extension| extension == "rs");
        if is_file || path.join("main.rs").exists() {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into()));
        }
    }
    Ok(names)
}

/// `required` names that no row has in its last column, and names there that are not `known`.
fn compare_promises(
    table: &str,
    required: &BTreeSet<String>,
    known: &BTreeSet<String>,
) -> Vec<String> {
    let rows = table.lines().filter_map(|line| line.strip_suffix('|'));
    let listed: BTreeSet<&str> = rows
        .filter_map(|row| row.rsplit('|').next())
        .flat_map(|tests| tests.split('`').skip(1).step_by(2))
        .collect();
    let missing = required
        .iter()
        .filter(|name| !listed.contains(name.as_str()))
        .map(|name| format!("no promise has the test program {name}"));
    let unknown = listed
        .iter()
        .filter(|name| !known.contains(**name))
        .map(|name| format!("there is no test program {name}"));
    missing.chain(unknown).collect()
}

fn read(text: &str) -> Page {
    let mut page = Page {
        anchors: BTreeSet::new(),
        links: Vec::new(),
    };
    let mut taken = HashMap::new();
    let mut heading: Option<String> = None;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, Range { start, .. }) in events {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let earlier: &mut usize = taken.entry(anchor.clone()).or_default();
                page.anchors.insert(match *earlier {
                    0 => anchor,
                    earlier => format!("{anchor}-{earlier}"),
                });
                *earlier += 1;
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = 1 + text[..start].matches('\n').count();
                page.links.push((line, dest_url.into_string()));
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading, as GitHub makes it: lower case, hyphens for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A destination within this repository: `/path` from its root, else relative to the document.
fn own(link: &str) -> Option<String> {
    match link.strip_prefix(OWN_ADDRESS) {
        Some(path) => Some(format!("/{path}")),
        None => (!link.contains("://") && !link.starts_with("mailto:")).then(|| link.to_owned()),
    }
}

/// Why a destination leads nowhere, if it does.
fn resolve(
    root: &Path,
    from: &Path,
    destination: &str,
    pages: &BTreeMap<PathBuf, Page>,
) -> Result<(), String> {
    let (path, anchor) = match destination.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (destination, None),
    };
    let target = match (path, path.strip_prefix('/')) {
        ("", _) => from.to_owned(),
        (_, Some(path)) => root.join(path),
        (path, None) => from.parent().unwrap_or(root).join(path),
    };
    let target = target
        .canonicalize()
        .map_err(|_| "there is no such file".to_owned())?;
    if !target.starts_with(root) {
        return Err("leads out of the repository".to_owned());
    }
    let Some(anchor) = anchor else {
        return Ok(());
    };
    let page = pages
        .get(&target)
        .ok_or("an anchor in a file that is not Markdown")?;
    if page.anchors.contains(anchor) {
        Ok(())
    } else {
        Err("there is no such heading".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of these files, which it writes into a folder of their own.
    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check_folder(folder.path()).unwrap().1
    }

    #[test]
    fn links_that_resolve_are_accepted() {
        let readme = "# Top\n[a](docs/a.md) [b](docs/a.md#two-words) [c](#top) [d](docs) \
                      [e](https://example.org/x#y) ![f](docs/f.svg)\n\n```\n[g](nowhere.md)\n```\n";
        let a = "# `Two` words!\n[up](../README.md)\n\n## Same\n## Same\n[second](#same-1)\n";
        let address = format!("[self]({OWN_ADDRESS}docs/a.md#same)\n");
        let files = [
            ("README.md", readme),
            ("docs/a.md", a),
            ("docs/f.svg", ""),
            ("deep/er/b.md", address.as_str()),
            ("target/c.md", "[broken](nowhere.md)"),
        ];
        assert_eq!(problems(&files), [""; 0]);
    }

    #[test]
    fn every_link_that_leads_nowhere_is_named_with_its_line() {
        let files = [
            (
                "a.md",
                "# One\n\n[x](b.md)\n[y](#two)\n[z](../outside.md)\n",
            ),
            (
                "d/c.md",
                "| t |\n| --- |\n| [in a table](../a.md#three) |\n",
            ),
        ];
        assert_eq!(
            problems(&files),
            [
                "a.md:3: b.md: there is no such file",
                "a.md:4: #two: there is no such heading",
                "a.md:5: ../outside.md: there is no such file",
                "d/c.md:3: ../a.md#three: there is no such heading",
            ]
        );
    }

    #[test]
    fn a_link_out_of_the_repository_is_a_problem() {
        let found = problems(&[("a.md", "[out](../)\n")]);
        assert_eq!(found, ["a.md:1: ../: leads out of the repository"]);
    }

    #[test]
    fn a_test_program_without_a_promise_and_a_promise_without_one_are_problems() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let table = "| promise | test |\n| --- | --- |\n| `a` word | `one`, step `loom` |\n\
                     | more | `old`; `policy-cli`: `check` |\n";
        let known = names(&["one", "two", "loom", "policy-cli", "check"]);
        assert_eq!(
            compare_promises(table, &names(&["one", "two"]), &known),
            [
                "no promise has the test program two",
                "there is no test program old",
            ]
        );
    }

    #[test]
    fn a_readme_that_grows_too_long_is_a_problem() {
        let of = |lines| problems(&[("README.md", &"line\n".repeat(lines))]);
        assert_eq!(of(MAX_README_LINES), [""; 0]);
        assert_eq!(of(MAX_README_LINES + 1).len(), 1);
        let elsewhere = "line\n".repeat(MAX_README_LINES + 1);
        assert_eq!(problems(&[("docs/README.md", &elsewhere)]), [""; 0]);
    }
}
