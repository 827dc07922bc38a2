//! The matrix of who holds what whom: sampled records, divided by the holders that reach them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use policy_jvm::forked_walk::Held;
use policy_report::{HolderRow, MadeRow};

use crate::ground::Ground;
use crate::ledger::Tag;
use crate::sampling::standard_error_bytes;

/// The holder of objects that only running methods hold.
const STACKS: &str = "_stacks";
/// The holder of objects that nothing reaches.
const NOBODY: &str = "_nobody";

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    bytes: u64,
    variance: u64,
    samples: u64,
}

impl Amount {
    fn add(&mut self, other: Amount) {
        self.bytes += other.bytes;
        self.variance = self.variance.wrapping_add(other.variance);
        self.samples += other.samples;
    }

    fn error_bytes(self) -> u64 {
        standard_error_bytes(self.variance).ceil() as u64
    }
}

/// The live records at one moment: by tag, the account that made it and what it stands for.
pub(super) struct Records {
    records: HashMap<i64, (Arc<str>, Amount)>,
}

impl Records {
    /// Reads the records. One pass.
    pub(super) fn read(ground: &Ground) -> Records {
        let names = ground.core.directory().accounts_of_purses();
        let nobody: Arc<str> = crate::report::UNACCOUNTED.into();
        let mut records = HashMap::new();
        ground.core.ledger.scan(|record| {
            if !record.survived {
                return;
            }
            let account = names.get(&record.payer).unwrap_or(&nobody).clone();
            let amount = Amount {
                bytes: record.live.bytes,
                variance: record.live.variance,
                samples: 1,
            };
            records.insert(Tag::Object(record.tag).encode(), (account, amount));
        });
        Records { records }
    }

    pub(super) fn count(&self) -> usize {
        self.records.len()
    }

    fn made(&self) -> BTreeMap<Arc<str>, Amount> {
        let mut made: BTreeMap<Arc<str>, Amount> = BTreeMap::new();
        for (account, amount) in self.records.values() {
            made.entry(account.clone()).or_default().add(*amount);
        }
        made
    }

    /// All accounts but `_unaccounted`, those with the most live bytes first.
    pub(super) fn largest(&self, ground: &Ground) -> Vec<Arc<str>> {
        let mut made: Vec<(Arc<str>, Amount)> = self.made().into_iter().collect();
        made.retain(|(account, _)| **account != *crate::report::UNACCOUNTED);
        made.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        let mut accounts: Vec<Arc<str>> = made.into_iter().map(|(account, _)| account).collect();
        // One that has made nothing may hold what others made.
        let mut others: Vec<Arc<str>> = ground
            .core
            .directory()
            .accounts_of_purses()
            .into_values()
            .collect();
        others.sort();
        others.dedup();
        others.retain(|one| **one != *crate::report::UNACCOUNTED && !accounts.contains(one));
        accounts.extend(others);
        accounts
    }

    /// Divides the records by holders.
    pub(super) fn divided(
        &self,
        held: &[Held],
        holders: &[Arc<str>],
    ) -> (Vec<HolderRow<'static>>, Vec<MadeRow<'static>>) {
        #[derive(Default)]
        struct Row {
            all: Amount,
            exclusive_bytes: u64,
        }
        let mut rows: BTreeMap<(Arc<str>, Arc<str>), Row> = BTreeMap::new();
        let mut shared: HashMap<Arc<str>, u64> = HashMap::new();
        let mut reached: HashMap<i64, &Held> = held.iter().map(|held| (held.tag, held)).collect();
        let (stacks, nobody): (Arc<str>, Arc<str>) = (STACKS.into(), NOBODY.into());
        for (tag, (account, amount)) in &self.records {
            let found = reached.remove(tag);
            let mask = found.map_or(0, |held| held.holders);
            let is_alone = mask.count_ones() <= 1;
            let mut add = |holder: &Arc<str>| {
                let row = rows.entry((holder.clone(), account.clone())).or_default();
                row.all.add(*amount);
                if is_alone {
                    row.exclusive_bytes += amount.bytes;
                }
            };
            match found {
                None => add(&nobody),
                Some(held) if held.by_stacks_alone => add(&stacks),
                Some(_) if mask == 0 => add(&nobody),
                Some(_) => {
                    for (number, holder) in holders.iter().enumerate() {
                        if mask >> number & 1 == 1 {
                            add(holder);
                        }
                    }
                }
            }
            if !is_alone {
                *shared.entry(account.clone()).or_default() += amount.bytes;
            }
        }
        let mut rows: Vec<HolderRow<'static>> = (rows.into_iter())
            .map(|((holder, made_by), row)| HolderRow {
                holder: holder.to_string().into(),
                made_by: made_by.to_string().into(),
                live_bytes: row.all.bytes,
                standard_error_bytes: row.all.error_bytes(),
                exclusive_bytes: row.exclusive_bytes,
                samples: row.all.samples,
            })
            .collect();
        rows.sort_by(|a, b| {
            let order = a.holder.cmp(&b.holder);
            order.then(b.live_bytes.cmp(&a.live_bytes))
        });
        let made = (self.made().into_iter())
            .map(|(account, amount)| MadeRow {
                shared_bytes: shared.get(&account).copied().unwrap_or(0),
                made_by: account.to_string().into(),
                live_bytes: amount.bytes,
                standard_error_bytes: amount.error_bytes(),
            })
            .collect();
        (rows, made)
    }
}
