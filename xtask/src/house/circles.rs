//! Circles: files that reach each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which file points to which.
pub(super) type Arrows = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Each circle, its files in order.
pub(super) fn circles(arrows: &Arrows) -> Vec<Vec<PathBuf>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = (arrows.keys())
        .map(|file| (file.as_path(), reached_from(arrows, file)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (&file, from_here) in &reached {
        if !from_here.contains(file) || !seen.insert(file) {
            continue;
        }
        let is_back = |other: &&&Path| reached.get(**other).is_some_and(|set| set.contains(file));
        let circle: Vec<&Path> = from_here.iter().filter(is_back).copied().collect();
        seen.extend(&circle);
        if circle.len() > 1 {
            found.push(circle.into_iter().map(Path::to_owned).collect());
        }
    }
    found
}

/// All that can be reached from `file`: itself only if it is in a circle.
fn reached_from<'a>(arrows: &'a Arrows, file: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Path> = Vec::new();
    let mut next = arrows.get(file);
    loop {
        for target in next.into_iter().flatten() {
            if reached.insert(target.as_path()) {
                open.push(target);
            }
        }
        let Some(file) = open.pop() else {
            return reached;
        };
        next = arrows.get(file);
    }
}

#[test]
fn a_circle_is_who_reaches_each_other() {
    let arrows: Arrows = [
        ("a", "b"),
        ("b", "c"),
        ("c", "b"),
        ("c", "d"),
        ("d", "d"),
        ("e", "a"),
    ]
    .into_iter()
    .fold(Arrows::new(), |mut arrows, (from, to)| {
        arrows.entry(from.into()).or_default().insert(to.into());
        arrows
    });
    assert_eq!(circles(&arrows), [[PathBuf::from("b"), PathBuf::from("c")]]);
}
