//! Where errors were thrown in an account, or would have been: what `status` and `suggest` make of it.

use std::collections::BTreeSet;

use policy_config::PackagePattern;

use super::{Account, Place};

/// Returns the words for errors that are counted by place: under this mode of the policy they were thrown, or would
/// have been.
pub fn happened(mode: &str) -> &'static str {
    match mode {
        "enforce" => "thrown",
        _ => "that would have been thrown",
    }
}

/// All errors of an account, as far as they are counted by place.
pub fn counted(account: &Account) -> u64 {
    let places = account.places.iter().map(|place| place.count);
    places.fold(account.places_other, u64::saturating_add)
}

/// The proposed lines of several places as one, because the policy file has each key once. An agent's answer
/// is not trusted: what names no package is left out.
pub fn never_interrupt<'a>(places: impl IntoIterator<Item = &'a Place>) -> Option<String> {
    let packages: BTreeSet<String> = places
        .into_iter()
        .filter_map(|place| place.never_interrupt.as_deref())
        .flat_map(packages)
        .collect();
    let quoted: Vec<String> = (packages.iter()).map(|one| format!("\"{one}\"")).collect();
    (!quoted.is_empty()).then(|| format!("never-interrupt = [{}]", quoted.join(", ")))
}

/// The packages that a line names.
fn packages(line: &str) -> Vec<String> {
    let list = (line.strip_prefix("never-interrupt = ["))
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_default();
    let quoted = list.split(',').map(str::trim);
    quoted
        .filter_map(|one| one.strip_prefix('"')?.strip_suffix('"'))
        .filter_map(|one| PackagePattern::new(one).ok())
        .map(|pattern| pattern.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposing(line: &str) -> Place {
        Place {
            never_interrupt: Some(line.to_owned().into()),
            ..Place::default()
        }
    }

    #[test]
    fn proposals_become_one_line_of_policy() {
        let places = [
            proposing("never-interrupt = [\"b.jobs\"]"),
            Place::default(),
            proposing("never-interrupt = [\"a.*\"]"),
            proposing("never-interrupt = [\"b.jobs\"]"),
        ];
        let line = never_interrupt(&places).unwrap();
        assert_eq!(line, "never-interrupt = [\"a.*\", \"b.jobs\"]");
        let text = format!("[[account]]\nname = \"x\"\npackages = [\"x\"]\n{line}\n");
        assert!(policy_config::parse(&text).policy.is_some());
        assert_eq!(never_interrupt(&[Place::default()]), None);
    }

    #[test]
    fn an_agent_cannot_write_the_policy() {
        for hostile in [
            "never-interrupt = [\"a\"]\nlimit = \"1B\"]",
            "never-interrupt = [\"a\\\"]\\nlimit = 1\"]",
            "limit = \"1B\"",
            "never-interrupt = [\"*\"]",
            "",
        ] {
            assert_eq!(never_interrupt(&[proposing(hostile)]), None, "{hostile}");
        }
    }
}
