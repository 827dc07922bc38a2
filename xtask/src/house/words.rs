//! Words of comments: none begins with "What". Such a comment names a question, and its item has the answer.

use std::fs;
use std::path::{Path, PathBuf};

const KINDS: &[&str] = &["rs", "java", "js"];

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

#[test]
fn no_comment_begins_with_what() {
    let mut files = Vec::new();
    sources(super::root(), &mut files);
    assert!(files.len() > 500, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        let lines = begin_with_what(&text).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", file.display())));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
