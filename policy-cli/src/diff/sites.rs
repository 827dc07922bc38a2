//! The live bytes that came and that went by the place where they were allocated: of the accounts and classes of which
//! the agent takes stacks.
//!
//! A place is the line of the application nearest to the allocation; its callers may be others in the other
//! snapshot. Its survivors are summed by cohort, as those of a class are ([`super::difference`]), so what both
//! snapshots of a run hold cancels. Where a document has no cohorts of a place, the error of its change is that of
//! two independent estimates, each known by the samples that it rests on: `bytes / sqrt(stacks)`.
//!
//! # What is not compared
//! A place that one snapshot lists, and of which the other cannot say how much there is: it lists the largest
//! places only, or it has no stacks of the class any more. [`SiteChanges::unknown`] counts them.

use std::collections::BTreeMap;

use policy_report::{ClassSites, Held, Site, Snapshot};

use super::difference::{Change, Context};

/// The places that changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SiteChanges {
    /// Largest change first.
    pub(crate) changes: Vec<SiteChange>,
    /// Places that cannot be compared.
    pub(crate) unknown: usize,
}

/// The change of one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SiteChange {
    pub(crate) account: String,
    pub(crate) class: String,
    /// The stack, from the place down, of the newer snapshot that has it.
    pub(crate) frames: Vec<String>,
    pub(crate) change: Change,
}

impl SiteChange {
    /// The line of the application nearest to the allocation.
    pub(crate) fn place(&self) -> &str {
        self.frames.first().map_or("?", String::as_str)
    }
}

/// A class of an account.
type Row<'a> = (&'a str, &'a str);

/// The places of both snapshots that changed.
pub(crate) fn changes(old: &Snapshot<'_>, new: &Snapshot<'_>) -> SiteChanges {
    let context = Context::of(old, new);
    let sides = [Side::of(old), Side::of(new)];
    let mut places: BTreeMap<(Row<'_>, &str), [Option<&Site<'_>>; 2]> = BTreeMap::new();
    for (number, side) in sides.iter().enumerate() {
        for (&row, class) in &side.rows {
            for site in &class.sites {
                let place = site.frames.first().map_or("?", |frame| frame);
                places.entry((row, place)).or_default()[number] = Some(site);
            }
        }
    }
    let mut found = SiteChanges::default();
    for ((row, _), both) in places {
        let is_known =
            |number: usize| both[number].is_some() || sides[number].has_none(row, number);
        if !(is_known(0) && is_known(1)) {
            found.unknown += 1;
            continue;
        }
        let change = change(&context, both);
        if change.is_none() {
            continue;
        }
        let frames = both.iter().rev().flatten().next();
        let frames = frames.map_or(&[][..], |site| &site.frames);
        found.changes.push(SiteChange {
            account: row.0.to_owned(),
            class: row.1.to_owned(),
            frames: frames.iter().map(ToString::to_string).collect(),
            change,
        });
    }
    let size = |one: &SiteChange| {
        (
            one.change.is_significant(),
            one.change.bytes().unsigned_abs(),
        )
    };
    found
        .changes
        .sort_by_key(|one| std::cmp::Reverse(size(one)));
    found
}

/// The sites of one snapshot.
struct Side<'a> {
    rows: BTreeMap<Row<'a>, &'a ClassSites<'a>>,
    /// Live bytes.
    live: BTreeMap<Row<'a>, u64>,
}

impl<'a> Side<'a> {
    fn of(snapshot: &'a Snapshot<'a>) -> Side<'a> {
        let sites = snapshot.sites.accounts.iter();
        let live = snapshot.accounts.iter();
        Side {
            rows: sites
                .flat_map(|account| {
                    let classes = account.classes.iter();
                    classes.map(|class| ((&*account.account, &*class.class), class))
                })
                .collect(),
            live: live
                .flat_map(|account| {
                    let classes = account.classes.iter();
                    classes.map(|class| ((&*account.name, &*class.class), class.live_bytes))
                })
                .collect(),
        }
    }

    /// Whether a place of the row that this side does not list has no survivors in it. `number`: 0 is the older
    /// one. In that one a row without stacks is one of which stacks were taken only later.
    fn has_none(&self, row: Row<'_>, number: usize) -> bool {
        match self.rows.get(&row) {
            Some(class) => class.sites_omitted == 0,
            None => number == 0 || self.live.get(&row).is_none_or(|&bytes| bytes == 0),
        }
    }
}

fn change(context: &Context, both: [Option<&Site<'_>>; 2]) -> Change {
    let is_cut = |site: &Site<'_>| site.live_bytes == 0 || !site.cohorts.is_empty();
    if both.iter().flatten().all(|site| is_cut(site)) {
        let cohorts: [&[Held]; 2] = both.map(|site| site.map_or(&[][..], |site| &site.cohorts));
        let live = cohorts.map(|cohorts| cohorts.iter().map(|held| held.live_bytes).sum());
        return context.change(live, cohorts, &mut BTreeMap::new());
    }
    let [old, new] = both.map(|site| site.map_or((0, 0), |site| (site.live_bytes, site.objects)));
    if old == new {
        return Change::default();
    }
    Change {
        old_bytes: old.0,
        new_bytes: new.0,
        went_bytes: old.0,
        came_bytes: new.0,
        went_objects: old.1,
        came_objects: new.1,
        variance: both.iter().flatten().map(|site| own_variance(site)).sum(),
    }
}

fn own_variance(site: &Site<'_>) -> f64 {
    (site.live_bytes as f64).powi(2) / site.stacks.max(1) as f64
}

#[cfg(test)]
mod tests;
