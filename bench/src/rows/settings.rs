//! The settings that the JVM runs with: nothing, Heapwarden in several ways, or what one would take instead.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The agent or other tool in the JVM beside the workload, and how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Setting {
    /// Nothing.
    Plain,
    /// The agent as it comes, without a policy file.
    Heapwarden,
    /// The same once more: what differs is chance.
    Again,
    /// The same, but that nobody watches holdings and leaks.
    WithoutLeaks,
    /// A sample in 512 KiB, whatever it costs, as the next two.
    #[value(name = "512KiB")]
    #[serde(rename = "512KiB")]
    Interval512,
    /// A sample in 64 KiB, as it comes but that it is never widened.
    #[value(name = "64KiB")]
    #[serde(rename = "64KiB")]
    Interval64,
    /// A sample in 16 KiB.
    #[value(name = "16KiB")]
    #[serde(rename = "16KiB")]
    Interval16,
    /// Every allocation.
    Exact,
    /// Every allocation by inserted code, with the accounts of `policy-1`.
    #[value(name = "exact-accounts")]
    #[serde(rename = "exact-accounts")]
    ExactAccounts,
    /// The calling contexts of the packages of `policy-20`, counted by inserted code.
    Contexts,
    /// The same with executed bytecodes.
    Bytecodes,
    /// A package account of the workload's own classes, at the bottom of nearly every stack.
    #[value(name = "policy-1")]
    #[serde(rename = "policy-1")]
    Policy1,
    /// Twenty package accounts, of the libraries that the workloads use.
    #[value(name = "policy-20")]
    #[serde(rename = "policy-20")]
    Policy20,
    /// The same, each with a limit that is in force and not reached.
    Limits,
    /// Flight Recorder, as its views of memory leaks need it.
    Jfr,
    /// async-profiler, allocations that are alive in the end.
    AsyncProfiler,
}

/// The settings to measure beside `plain` and `heapwarden`, from the command line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen(pub(crate) Vec<Setting>);

impl FromStr for Chosen {
    type Err = String;

    fn from_str(word: &str) -> Result<Chosen, String> {
        if word == "all" {
            return Ok(Chosen(Setting::all().collect()));
        }
        match Setting::from_str(word, false) {
            Ok(setting) => Ok(Chosen(vec![setting])),
            Err(_) => {
                let names: Vec<&str> = Setting::value_variants().iter().map(|s| s.name()).collect();
                Err(format!("there are: {}, all", names[2..].join(", ")))
            }
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packages of [`Setting::Policy20`]: the workloads' own, and the libraries below them.
const PACKAGES: [(&str, &str); 20] = [
    ("rows", "rows.*"),
    ("antlr", "org.antlr.*"),
    ("asm", "org.objectweb.asm.*"),
    ("saxon", "net.sf.saxon.*"),
    ("chart", "org.jfree.*"),
    ("eclipse", "org.eclipse.*"),
    ("fop", "org.apache.fop.*"),
    ("xmlgraphics", "org.apache.xmlgraphics.*"),
    ("batik", "org.apache.batik.*"),
    ("fonts", "org.apache.fontbox.*"),
    ("hsqldb", "org.hsqldb.*"),
    ("jython", "org.python.*"),
    ("lucene", "org.apache.lucene.*"),
    ("pmd", "net.sourceforge.pmd.*"),
    ("xalan", "org.apache.xalan.*"),
    ("xpath", "org.apache.xpath.*"),
    ("xml", "org.apache.xml.*"),
    ("xerces", "org.apache.xerces.*"),
    ("commons", "org.apache.commons.*"),
    ("google", "com.google.*"),
];

/// Records for exact mode: a heap of 1 GiB that waits for a collection holds more objects than the
/// agent has records for by default, and those beyond would not be charged.
const MAX_TRACKED: u32 = 16_000_000;

/// A limit that no workload gets near in its heap.
const LIMIT: &str = "90%";

impl Setting {
    /// Those that `--with all` means: each but the default spelt out, and those that measure a part of it.
    fn all() -> impl Iterator<Item = Setting> {
        let every = Setting::value_variants().iter().copied();
        every.filter(|setting| {
            !matches!(
                setting,
                Setting::Plain
                    | Setting::Heapwarden
                    | Setting::Again
                    | Setting::WithoutLeaks
                    | Setting::Interval64
            )
        })
    }

    /// How it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Setting::Plain => "plain",
            Setting::Heapwarden => "heapwarden",
            Setting::Again => "again",
            Setting::WithoutLeaks => "without-leaks",
            Setting::Interval512 => "512KiB",
            Setting::Interval64 => "64KiB",
            Setting::Interval16 => "16KiB",
            Setting::Exact => "exact",
            Setting::ExactAccounts => "exact-accounts",
            Setting::Contexts => "contexts",
            Setting::Bytecodes => "bytecodes",
            Setting::Policy1 => "policy-1",
            Setting::Policy20 => "policy-20",
            Setting::Limits => "limits",
            Setting::Jfr => "jfr",
            Setting::AsyncProfiler => "async-profiler",
        }
    }

    /// Whether it is the agent.
    pub(crate) fn is_ours(self) -> bool {
        !matches!(self, Setting::Plain | Setting::Jfr | Setting::AsyncProfiler)
    }

    /// Whether its policy names packages, so that accounts must be charged.
    pub(crate) fn has_accounts(self) -> bool {
        matches!(self, Setting::Policy1 | Setting::Policy20 | Setting::Limits)
    }

    /// The agent's policy file; none where it runs without.
    pub(crate) fn policy(self) -> Option<String> {
        let interval = |interval: &str| {
            let budget = "cpu-budget = \"none\"";
            Some(format!("[sampling]\ninterval = \"{interval}\"\n{budget}\n"))
        };
        let account = |(name, package): &(&str, &str), limit: &str| {
            format!("[[account]]\nname = \"{name}\"\npackages = [\"{package}\"]\n{limit}\n")
        };
        match self {
            Setting::Interval512 => interval("512KiB"),
            Setting::Interval64 => interval("64KiB"),
            Setting::Interval16 => interval("16KiB"),
            Setting::Exact => Some(format!(
                "[sampling]\ninterval = \"exact\"\nmax-tracked = {MAX_TRACKED}\n"
            )),
            Setting::ExactAccounts => Some(format!(
                "[exact]\naccounts = true\n{}",
                account(&PACKAGES[0], "")
            )),
            Setting::Contexts | Setting::Bytecodes => {
                let packages = PACKAGES.map(|(_, package)| format!("{package:?}"));
                let bytecodes = self == Setting::Bytecodes;
                let packages = packages.join(", ");
                Some(format!(
                    "[exact]\ncontexts = [{packages}]\nbytecodes = {bytecodes}\n"
                ))
            }
            Setting::Policy1 => Some(account(&PACKAGES[0], "")),
            Setting::Policy20 => Some(PACKAGES.iter().map(|of| account(of, "")).collect()),
            Setting::Limits => {
                let limit = format!("limit = \"{LIMIT}\"\n");
                let accounts = PACKAGES.iter().map(|of| account(of, &limit));
                Some(
                    "[enforcement]\nmode = \"enforce\"\n\n".to_owned()
                        + &accounts.collect::<String>(),
                )
            }
            Setting::Plain
            | Setting::Heapwarden
            | Setting::Again
            | Setting::WithoutLeaks
            | Setting::Jfr
            | Setting::AsyncProfiler => None,
        }
    }

    /// An agent option of this setting, after a comma.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Setting::WithoutLeaks => ",test-holdings=off",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_called_the_same_everywhere() {
        for setting in Setting::value_variants() {
            let value = setting.to_possible_value().unwrap();
            assert_eq!(value.get_name(), setting.name());
            let json = serde_json::to_string(setting).unwrap();
            assert_eq!(json, format!("\"{}\"", setting.name()));
        }
    }

    #[test]
    fn all_is_every_kind_once() {
        let Chosen(all) = "all".parse().unwrap();
        assert_eq!(all.len(), Setting::value_variants().len() - 5);
        let error = "all-of-them".parse::<Chosen>().unwrap_err();
        assert!(error.contains("async-profiler, all"), "{error}");
    }

    #[test]
    fn limits_are_those_of_twenty_accounts() {
        let policy = Setting::Limits.policy().unwrap();
        assert_eq!(policy.matches("limit = ").count(), 20);
        assert!(!Setting::Policy20.policy().unwrap().contains("limit"));
    }
}
