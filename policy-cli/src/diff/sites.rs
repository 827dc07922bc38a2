//! What came and went by where it was allocated: of the accounts and classes of which the agent takes stacks.
//!
//! Documents hold no cohorts of sites. So the error of a site's change is that of two independent
//! estimates, each known by the samples that it rests on: `bytes / sqrt(stacks)`.

use std::collections::BTreeMap;

use policy_report::{Site, Snapshot};

/// The change of one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SiteChange {
    pub(crate) account: String,
    pub(crate) class: String,
    /// The stack, from the first frame of the application down.
    pub(crate) frames: Vec<String>,
    pub(crate) old_bytes: u64,
    pub(crate) new_bytes: u64,
    pub(crate) standard_error: f64,
}

impl SiteChange {
    /// The change of the live bytes.
    pub(crate) fn bytes(&self) -> i64 {
        let change = i128::from(self.new_bytes) - i128::from(self.old_bytes);
        i64::try_from(change).unwrap_or(i64::MAX)
    }
}

/// The places of both snapshots whose live bytes differ, largest change first.
pub(crate) fn changes(old: &Snapshot<'_>, new: &Snapshot<'_>) -> Vec<SiteChange> {
    let mut places: BTreeMap<(String, String, Vec<String>), [(u64, f64); 2]> = BTreeMap::new();
    for (side, snapshot) in [old, new].into_iter().enumerate() {
        for account in &snapshot.sites.accounts {
            for class in &account.classes {
                for site in &class.sites {
                    let frames = site.frames.iter().map(ToString::to_string).collect();
                    let key = (account.account.to_string(), class.class.to_string(), frames);
                    let (bytes, variance) = &mut places.entry(key).or_default()[side];
                    *bytes = bytes.saturating_add(site.live_bytes);
                    *variance += own_variance(site);
                }
            }
        }
    }
    let changes = places.into_iter();
    let mut changes: Vec<SiteChange> = changes
        .map(|((account, class, frames), [old, new])| SiteChange {
            account,
            class,
            frames,
            old_bytes: old.0,
            new_bytes: new.0,
            standard_error: (old.1 + new.1).sqrt(),
        })
        .filter(|change| change.old_bytes != change.new_bytes)
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.bytes().unsigned_abs()));
    changes
}

fn own_variance(site: &Site<'_>) -> f64 {
    (site.live_bytes as f64).powi(2) / site.stacks.max(1) as f64
}

#[cfg(test)]
mod tests {
    use policy_report::{AccountSites, ClassSites, Sites};

    use super::*;

    fn snapshot(sites: &[(&'static str, u64, u64)]) -> Snapshot<'static> {
        let site = |&(frame, live_bytes, stacks): &(&'static str, u64, u64)| Site {
            frames: vec![frame.into()],
            live_bytes,
            stacks,
            ..Site::default()
        };
        Snapshot {
            sites: Sites {
                accounts: vec![AccountSites {
                    account: "shop".into(),
                    classes: vec![ClassSites {
                        class: "byte[]".into(),
                        sites: sites.iter().map(site).collect(),
                        ..ClassSites::default()
                    }],
                    ..AccountSites::default()
                }],
                ..Sites::default()
            },
            ..Snapshot::default()
        }
    }

    #[test]
    fn places_are_matched_by_their_frames_and_errors_add_up() {
        let old = snapshot(&[
            ("a.Cart.add", 400, 4),
            ("a.Gone.x", 100, 1),
            ("a.Same.y", 7, 1),
        ]);
        let new = snapshot(&[("a.Cart.add", 900, 9), ("a.Same.y", 7, 1)]);
        let found = changes(&old, &new);
        let told: Vec<(&str, i64)> = (found.iter())
            .map(|one| (one.frames[0].as_str(), one.bytes()))
            .collect();
        assert_eq!(told, [("a.Cart.add", 500), ("a.Gone.x", -100)]);
        // (400 / 2)^2 + (900 / 3)^2
        assert_eq!(found[0].standard_error, 130_000f64.sqrt());
    }
}
