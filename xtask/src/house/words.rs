//! Words: no comment begins with "What" (it names a question, and its item has the answer), and a
//! bound is called `MAX_` and not by another prefix.

use std::fs;
use std::path::{Path, PathBuf};

const KINDS: &[&str] = &["rs", "java", "js", "c"];

/// The source files of the repository below `folder`, without what builds have made.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if (path.extension()).is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
            found.push(path);
        }
    }
}

/// The text of a line that is a comment, or part of one.
fn comment(line: &str) -> Option<&str> {
    const SIGNS: [&str; 6] = ["///", "//!", "//", "/**", "/*", "* "];
    let line = line.trim();
    let text = SIGNS.iter().find_map(|sign| line.strip_prefix(sign))?;
    Some(text.trim())
}

/// The numbers of the lines, from 1, at which a paragraph of a comment begins with "What".
fn begin_with_what(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = comment(line).unwrap_or_default();
        let first = comment.split(|sign: char| !sign.is_alphabetic()).next();
        if !is_inside && first == Some("What") {
            found.push(number);
        }
        is_inside = !comment.is_empty();
    }
    found
}

#[test]
fn the_first_word_of_each_paragraph_counts() {
    let text = "//! What it is.\n//! What goes on.\n\n/// Which.\n/// What follows.\n///\n/// What is left.\nlet what = 1; // What\n    /* What */\n\n/** What's that. */\n";
    assert_eq!(begin_with_what(text), [1, 7, 9, 11]);
}

/// Has `check` name the lines at fault in each source file. Panics with all of them.
fn assert_none(check: impl Fn(&str) -> Vec<usize>) {
    let mut files = Vec::new();
    sources(super::root(), &mut files);
    assert!(files.len() > 500, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        let lines = check(&text).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", file.display())));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_comment_begins_with_what() {
    assert_none(begin_with_what);
}

/// The numbers of the lines, from 1, that declare a bound by another word.
fn other_bounds(text: &str) -> Vec<usize> {
    let other = concat!("MO", "ST_");
    let has_other = |line: &str| {
        line.split(|sign: char| !is_of_name(sign))
            .any(|word| word.starts_with(other))
    };
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| has_other(line))
        .map(|(number, _)| number)
        .collect()
}

fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

#[test]
fn a_bound_is_called_max() {
    let other = concat!("MO", "ST_");
    let text = format!("const {other}BYTES: usize = 1;\nconst MAX_BYTES: usize = 1;\nAL{other}X");
    assert_eq!(other_bounds(&text), [1]);
    assert_none(other_bounds);
}
