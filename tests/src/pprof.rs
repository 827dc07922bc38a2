//! Go's `pprof`, and the profiles that it reads.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use crate::command;

const NEEDED: &str = "Go is needed for its pprof: apt-get install golang-go";
/// Longest that one run may take. Go builds its pprof at the first one.
const LIMIT: Duration = Duration::from_secs(600);

/// The values of a sample: `alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`.
pub type Values = [i128; 4];

/// Runs `go tool pprof` and returns what it prints.
///
/// # Panics
/// If Go is missing, or pprof refuses or complains.
#[must_use]
pub fn run(arguments: &[&str]) -> String {
    assert!(
        Command::new("go").arg("version").output().is_ok(),
        "{NEEDED}"
    );
    let mut command = Command::new("go");
    command.args(["tool", "pprof"]).args(arguments);
    // No symbols from elsewhere, and no copies of profiles in the home folder.
    command.env("PPROF_BINARY_PATH", "/nonexistent");
    command.env("PPROF_TMPDIR", std::env::temp_dir());
    let finished = command::run(&mut command, LIMIT);
    assert!(finished.status.success(), "{arguments:?}: {finished:?}");
    assert!(
        !finished.stderr.contains("Main binary filename"),
        "{finished:?}"
    );
    finished.stdout
}

/// A sample as pprof has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The label `account`.
    pub account: String,
    /// The label `class`.
    pub class: String,
    /// Its values.
    pub values: Values,
    /// Its frames as pprof prints them, from the leaf to the root.
    pub frames: Vec<String>,
}

/// A profile as pprof has read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// The lines before its samples: sample types, period, comments.
    pub head: String,
    /// Its samples.
    pub samples: Vec<Sample>,
}

impl Read {
    /// Reads a file or an address with `pprof -raw`.
    ///
    /// # Panics
    /// As [`run`], and if it prints something else than expected.
    #[must_use]
    pub fn of(source: &str) -> Read {
        let text = run(&["-raw", source]);
        let (head, rest) = text.split_once("Samples:\n").expect("samples");
        let (samples, rest) = rest.split_once("\nLocations\n").expect("locations");
        let (locations, _) = rest.split_once("\nMappings\n").expect("mappings");
        let locations: BTreeMap<&str, &str> = (locations.lines())
            .filter_map(|line| line.trim().split_once(": "))
            .map(|(id, place)| {
                (
                    id,
                    place.split_once(" M=1 ").map_or(place, |(_, name)| name),
                )
            })
            .collect();
        let mut lines = samples.lines();
        let types = lines.next().expect("sample types");
        let mut read = Read {
            head: format!("{head}{types}"),
            samples: Vec::new(),
        };
        while let Some(line) = lines.next() {
            let (values, stack) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let values: Vec<i128> = (values.split_whitespace())
                .map(|value| value.parse().unwrap_or_else(|_| panic!("{line}")))
                .collect();
            let labels = lines.next().expect("labels").trim();
            let (account, class) = (labels.strip_prefix("account:["))
                .and_then(|rest| rest.strip_suffix(']'))
                .and_then(|rest| rest.split_once("] class:["))
                .unwrap_or_else(|| panic!("{labels}"));
            read.samples.push(Sample {
                account: account.to_owned(),
                class: class.to_owned(),
                values: values.try_into().expect("four values"),
                frames: (stack.split_whitespace())
                    .map(|id| locations[id].to_owned())
                    .collect(),
            });
        }
        read
    }

    /// The sums of an account.
    #[must_use]
    pub fn account(&self, name: &str) -> Values {
        self.sum(|sample| sample.account == name)
    }

    /// The sums of some samples.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&Sample) -> bool) -> Values {
        let mut sum = [0; 4];
        for sample in self.samples.iter().filter(|sample| of(sample)) {
            for (sum, value) in sum.iter_mut().zip(sample.values) {
                *sum += value;
            }
        }
        sum
    }
}
