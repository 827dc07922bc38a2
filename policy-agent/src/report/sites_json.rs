//! `GET /api/v1/sites`: where survivors were allocated, as JSON. The document is defined in
//! [`policy_report::Sites`]; this fills it from a reading.
//!
//! It is bounded: [`MAX_CLASSES`] classes of an account, and [`MAX_SITES`] places in all, largest first, with
//! [`MAX_COHORTS`] cohorts of them in a snapshot.

use policy_core::sampling::weight::OBJECT_UNIT;
use policy_core::sites::Skip;
use policy_core::sites::reading::{AccountSites, SitesReading};
use policy_core::sites::survivors::{Cohort, RowSites, Site};
use policy_report::{self as document, Counts};

use super::fold::clip;

/// Most classes of one account.
pub const MAX_CLASSES: usize = 20;
/// As many of them are those of which most was allocated, among those with few survivors.
const MAX_GARBAGE_CLASSES: usize = 5;
/// Most places in one document. Each has up to 16 frames.
pub const MAX_SITES: usize = 2_000;
/// Most cohorts of all places in one document.
pub const MAX_COHORTS: usize = 50_000;

/// How much of the document is left.
struct Left {
    sites: usize,
    cohorts: usize,
}

/// Renders the document, one line with a line feed at its end.
///
/// # Errors
/// The serializer's error; this document causes none.
pub fn render(reading: &SitesReading) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = serde_json::to_vec(&sites(reading))?;
    out.push(b'\n');
    Ok(out)
}

/// The document, borrowed from the reading.
pub(crate) fn sites(reading: &SitesReading) -> document::Sites<'_> {
    let mut left = Left {
        sites: MAX_SITES,
        cohorts: MAX_COHORTS,
    };
    let skipped = Skip::ALL.map(|why| (why.name().into(), reading.counts.skipped[why as usize]));
    document::Sites {
        stacks: reading.counts.taken,
        skipped: Counts(skipped.into()),
        accounts: (reading.accounts.iter())
            .map(|one| account(one, &mut left))
            .collect(),
    }
}

fn account<'a>(account: &'a AccountSites, left: &mut Left) -> document::AccountSites<'a> {
    let listed = listed(account);
    let live = |row: &RowSites| u64::from(row.live_bytes > 0 || row.allocated_bytes == 0);
    let all: u64 = account.classes.iter().map(|(_, row)| live(row)).sum();
    let shown: u64 = listed.iter().map(|(_, row)| live(row)).sum();
    document::AccountSites {
        account: clip(&account.account),
        classes: (listed.iter())
            .map(|&(name, row)| class(name, row, left))
            .collect(),
        classes_omitted: all - shown,
    }
}

/// The classes with most survivors, and others of which most was allocated.
fn listed(account: &AccountSites) -> Vec<(&str, &RowSites)> {
    let all = account.classes.iter().map(|(name, row)| (&**name, row));
    let mut listed: Vec<(&str, &RowSites)> = all.collect();
    if listed.len() > MAX_CLASSES {
        let mut others = listed.split_off(MAX_CLASSES - MAX_GARBAGE_CLASSES);
        others.sort_by_key(|(_, row)| std::cmp::Reverse(row.allocated_bytes));
        others.truncate(MAX_GARBAGE_CLASSES);
        listed.append(&mut others);
    }
    listed
}

fn class<'a>(name: &'a str, row: &'a RowSites, left: &mut Left) -> document::ClassSites<'a> {
    let listed = row.sites.len().min(left.sites);
    left.sites -= listed;
    let omitted = row.sites[listed..].iter().filter(|site| site.stacks > 0);
    document::ClassSites {
        class: clip(name),
        live_bytes: row.live_bytes,
        with_stack_bytes: row.with_stack_bytes,
        stacks: row.stacks,
        allocated_bytes: row.allocated_bytes,
        allocated_stacks: row.allocated_stacks,
        sites: (row.sites[..listed].iter())
            .map(|one| {
                let has_room = one.cohorts.len() <= left.cohorts;
                let cohorts = if has_room { &one.cohorts[..] } else { &[] };
                left.cohorts -= cohorts.len();
                document::Site {
                    cohorts: cohorts.iter().map(held).collect(),
                    ..site(one)
                }
            })
            .collect(),
        sites_omitted: (omitted.count() + row.left_out) as u64,
    }
}

/// A place, as this document and that of leaks have it: not by birth.
pub fn site(site: &Site) -> document::Site<'_> {
    document::Site {
        frames: site.frames.iter().map(|frame| frame.into()).collect(),
        through: site.through.iter().map(|frame| frame.into()).collect(),
        share: site.share,
        share_standard_error: site.share_standard_error,
        live_bytes: site.live_bytes,
        objects: site.live_objects,
        stacks: site.stacks,
        live_standard_error_bytes: site.live_standard_error_bytes.ceil() as u64,
        allocated_bytes: site.allocated.bytes,
        allocated_standard_error_bytes: site.allocated.standard_error_bytes.ceil() as u64,
        allocated_objects: site.allocated.objects,
        allocated_share: site.allocated.share,
        allocated_share_standard_error: site.allocated.share_standard_error,
        allocated_stacks: site.allocated.stacks,
        cohorts: Vec::new(),
    }
}

fn held(of: &Cohort) -> document::Held {
    document::Held {
        upto_epoch: of.upto.get().into(),
        records: of.held.records,
        live_bytes: of.held.bytes,
        live_objects: of.held.objects / OBJECT_UNIT,
        variance: of.held.variance,
    }
}

#[cfg(test)]
mod tests {
    use policy_core::sites::Counts as StackCounts;

    use super::*;

    #[test]
    fn the_document_is_bounded_and_says_what_it_leaves_out() {
        let site = Site {
            frames: vec!["com.acme.Cart.add(Cart.java:41)".to_owned()],
            through: vec!["java.util.HashMap.put(HashMap.java:1)".to_owned()],
            share: 0.7,
            stacks: 1,
            ..Site::default()
        };
        let row = RowSites {
            sites: vec![site; 10],
            left_out: 3,
            ..RowSites::default()
        };
        let account = AccountSites {
            account: "shop".into(),
            classes: vec![("byte[]".into(), row); 30],
        };
        let reading = SitesReading {
            counts: StackCounts {
                taken: 9,
                skipped: [1, 2, 3, 4],
                frames: 0,
            },
            accounts: vec![account; 50],
        };
        let body = render(&reading).unwrap();
        let read: document::Sites<'static> = serde_json::from_slice(&body).unwrap();
        assert_eq!((read.stacks, read.skipped.sum()), (9, 10));
        let first = &read.accounts[0];
        assert_eq!(
            (first.classes.len(), first.classes_omitted),
            (MAX_CLASSES, 10)
        );
        assert_eq!(first.classes[0].sites_omitted, 3);
        assert_eq!(first.classes[0].sites[0].through.len(), 1);
        let classes = read.accounts.iter().flat_map(|account| &account.classes);
        assert_eq!(
            classes
                .clone()
                .map(|class| class.sites.len())
                .sum::<usize>(),
            MAX_SITES
        );
        assert_eq!(classes.last().unwrap().sites_omitted, 13);
    }
}
