//! The targets of a walk: sampled objects, or the class loaders of services that were undeployed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use policy_report::WalkRequest;

use crate::ground::Ground;
use crate::identity::classes::ClassId;
use crate::identity::directory::LoaderIdentity;
use crate::ledger::{PurseId, Tag};

/// Objects that one walk looks for at the most.
const MOST: usize = 64;

/// The account and the class that a group of objects stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) account: Arc<str>,
    pub(super) class: Arc<str>,
}

/// The sums of a group, and those of its objects that are looked for.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) bytes: u64,
    pub(super) tags: Vec<i64>,
    seen: u64,
}

/// The objects that are looked for, by group.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) groups: BTreeMap<Group, Looked>,
}

impl Wanted {
    /// Finds what a request asks for.
    ///
    /// # Errors
    /// A sentence, if there is nothing.
    pub(super) fn find(ground: &Ground, request: &WalkRequest<'_>) -> Result<Wanted, String> {
        if request.retired {
            return Wanted::retired(ground, request);
        }
        let report = ground.core.leaks.report();
        let suspects: HashSet<(PurseId, u32)> = (report.suspects.iter())
            .flat_map(|one| one.rows.iter().copied())
            .collect();
        let is_named = request.account.is_some() || request.class.is_some();
        if !is_named && suspects.is_empty() {
            return Err(
                "nothing is suspected to leak: name what to look for with --account or --class, or give --retired"
                    .to_owned(),
            );
        }
        let names = ground.core.directory().accounts_of_purses();
        let mut classes: HashMap<u32, Arc<str>> = HashMap::new();
        let mut wanted = Wanted::default();
        let nobody: Arc<str> = crate::report::UNACCOUNTED.into();
        for survived in [true, false] {
            ground.core.ledger.scan(|record| {
                if record.survived != survived {
                    return;
                }
                if !is_named && !suspects.contains(&(record.payer, record.class)) {
                    return;
                }
                let account = names.get(&record.payer).unwrap_or(&nobody);
                if request
                    .account
                    .as_deref()
                    .is_some_and(|asked| asked != &**account)
                {
                    return;
                }
                let class = classes.entry(record.class).or_insert_with(|| {
                    let name = ground.core.directory().class_name(ClassId(record.class));
                    name.unwrap_or_else(|| "?".into())
                });
                if request
                    .class
                    .as_deref()
                    .is_some_and(|asked| asked != &**class)
                {
                    return;
                }
                let group = Group {
                    account: account.clone(),
                    class: class.clone(),
                };
                let looked = wanted.groups.entry(group).or_default();
                looked.bytes += record.charge.bytes;
                looked.seen += 1;
                // A fair draw of bounded size.
                let tag = Tag::Object(record.tag).encode();
                if looked.tags.len() < MOST {
                    looked.tags.push(tag);
                } else if let Some(place) =
                    looked.tags.get_mut(fastrand::u64(..looked.seen) as usize)
                {
                    *place = tag;
                }
            });
            // Objects that no collection has looked at may be garbage, and are sought only if there is nothing else.
            if !wanted.groups.is_empty() {
                break;
            }
        }
        if wanted.groups.is_empty() {
            return Err(nothing(request));
        }
        wanted.share();
        Ok(wanted)
    }

    /// Keeps [`MOST`] objects, of the largest groups most.
    fn share(&mut self) {
        let total: u64 = self.groups.values().map(|looked| looked.bytes).sum();
        let mut by_size: Vec<(Group, Looked)> =
            std::mem::take(&mut self.groups).into_iter().collect();
        by_size.sort_by_key(|(_, looked)| std::cmp::Reverse(looked.bytes));
        by_size.truncate(MOST);
        let mut left = MOST;
        for (group, mut looked) in by_size {
            let part = MOST as f64 * looked.bytes as f64 / total.max(1) as f64;
            let count = (part.round() as usize).clamp(1, MOST).min(left);
            looked.tags.truncate(count);
            left -= looked.tags.len();
            if !looked.tags.is_empty() {
                self.groups.insert(group, looked);
            }
        }
    }

    /// The loaders of services that were undeployed and are still there.
    fn retired(ground: &Ground, request: &WalkRequest<'_>) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        let loaders = &ground.core.identity.loaders;
        let directory = ground.core.directory();
        for number in 1..loaders.high_water() {
            let id = crate::identity::loaders::LoaderId(number);
            let Some(loader) = directory.loader(id) else {
                continue;
            };
            if !loader.retired || loader.gone {
                continue;
            }
            let LoaderIdentity::Service(service) = &loader.identity else {
                continue;
            };
            let account = directory.account_name(loader.purse);
            let asked = request.account.as_deref();
            if asked.is_some_and(|asked| asked != &*account && asked != service.name) {
                continue;
            }
            if let Some(tag) = loaders.tag(id) {
                let group = Group {
                    account,
                    class: "(class loader)".into(),
                };
                let looked = wanted.groups.entry(group).or_default();
                if looked.tags.len() < MOST {
                    looked.tags.push(tag);
                }
            }
        }
        drop(directory);
        if wanted.groups.is_empty() {
            return Err(
                "no class loader of an undeployed service is left: the collector has freed them all, or no service was undeployed"
                    .to_owned(),
            );
        }
        Ok(wanted)
    }

    /// The tags of all that is looked for, sorted.
    pub(super) fn tags(&self) -> Vec<i64> {
        let mut tags: Vec<i64> = (self.groups.values())
            .flat_map(|looked| looked.tags.iter().copied())
            .collect();
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    /// The accounts of what is looked for, without `_unaccounted`.
    pub(super) fn accounts(&self) -> Vec<Arc<str>> {
        let named = self.groups.keys().map(|group| &group.account);
        let mut accounts: Vec<Arc<str>> = (named
            .filter(|name| ***name != *crate::report::UNACCOUNTED))
        .cloned()
        .collect();
        accounts.dedup();
        accounts
    }

    /// Whether arrays of this class are looked for.
    pub(super) fn has_class(&self, class: &str) -> bool {
        self.groups.keys().any(|group| &*group.class == class)
    }

    /// The group of a tag.
    pub(super) fn group_of(&self, tag: i64) -> Option<(&Group, &Looked)> {
        self.groups
            .iter()
            .find(|(_, looked)| looked.tags.contains(&tag))
    }
}

fn nothing(request: &WalkRequest<'_>) -> String {
    let of_class = request
        .class
        .as_deref()
        .map(|class| format!(" of class {class}"));
    let of_account = request
        .account
        .as_deref()
        .map(|name| format!(" of account {name}"));
    format!(
        "no sampled object{}{} is alive; names are as /api/v1/accounts?classes=all has them",
        of_class.unwrap_or_default(),
        of_account.unwrap_or_default()
    )
}
