//! `GET /api/v1/history`: the accounts over the last hour, so that a page that is opened now shows what was
//! before. The document is defined in [`policy_report::History`].
//!
//! It is bounded: [`MAX_POINTS`] points, each with [`MAX_ACCOUNTS`] accounts and the sum of the others. A
//! point costs one reading each [`STEP`]; it is taken on the listener's thread, and not at all without a
//! listener.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use policy_report as document;

use super::fold::clip;
use super::{Account, OTHER, Snapshot};

/// The time between two points.
pub const STEP: Duration = Duration::from_secs(30);
/// Most points: an hour of them.
pub const MAX_POINTS: usize = 120;
/// Most accounts of a point, beside [`OTHER`].
pub const MAX_ACCOUNTS: usize = 50;

/// The points of the last hour.
#[derive(Debug, Default)]
pub struct History {
    points: VecDeque<Point>,
    /// Every name in use, once.
    names: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Point {
    at: SystemTime,
    live_gc_epoch: u64,
    used_after_gc_bytes: u64,
    accounts: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: Arc<str>,
    live_bytes: u64,
    variance: f64,
    allocated_bytes_total: u64,
    state: super::State,
    /// Errors thrown, errors that would have been, requests turned away, threads ended.
    counts: [u64; 4],
}

impl History {
    /// Adds a point, and forgets the oldest if there are too many.
    pub fn record(&mut self, snapshot: &Snapshot, at: SystemTime) {
        let mut largest: Vec<&Account> = snapshot.accounts.iter().collect();
        largest.sort_unstable_by(|a, b| {
            (b.live_bytes.cmp(&a.live_bytes)).then_with(|| a.name.cmp(&b.name))
        });
        let rest = largest.split_off(largest.len().min(MAX_ACCOUNTS));
        let mut accounts = Vec::with_capacity(largest.len() + usize::from(!rest.is_empty()));
        accounts.extend(largest.into_iter().map(|one| self.row(one)));
        if !rest.is_empty() {
            let mut other = self.row(&Account {
                name: OTHER.to_owned(),
                ..Account::default()
            });
            for one in rest {
                other.add(one);
            }
            accounts.push(other);
        }
        self.points.push_back(Point {
            at,
            live_gc_epoch: snapshot.heap.live_gc_epoch,
            used_after_gc_bytes: snapshot.heap.used_after_gc_bytes,
            accounts,
        });
        if self.points.len() > MAX_POINTS {
            self.points.pop_front();
            self.names.retain(|name| Arc::strong_count(name) > 1);
        }
    }

    fn row(&mut self, account: &Account) -> Row {
        let mut row = Row {
            name: self.name(&clip(&account.name)),
            live_bytes: 0,
            variance: 0.0,
            allocated_bytes_total: 0,
            state: account.state,
            counts: [0; 4],
        };
        row.add(account);
        row
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        name
    }

    /// Returns the memory that the points take, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let rows = self.points.iter().map(|point| point.accounts.capacity());
        let names = self
            .names
            .iter()
            .map(|name| 4 * size_of::<usize>() + name.len());
        let bytes = rows.sum::<usize>() * size_of::<Row>()
            + names.sum::<usize>()
            + self.points.capacity() * size_of::<Point>();
        bytes as u64
    }

    /// Renders the document, one line with a line feed at its end.
    ///
    /// # Errors
    /// The serializer's error; this document causes none.
    pub fn render(&self) -> Result<Vec<u8>, serde_json::Error> {
        let document = document::History {
            step_seconds: STEP.as_secs(),
            points: self.points.iter().map(Point::document).collect(),
        };
        let mut out = serde_json::to_vec(&document)?;
        out.push(b'\n');
        Ok(out)
    }
}

impl Row {
    fn add(&mut self, account: &Account) {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        self.live_bytes = sum(self.live_bytes, account.live_bytes);
        self.variance += account.live_standard_error_bytes.powi(2);
        self.allocated_bytes_total = sum(self.allocated_bytes_total, account.allocated_bytes_total);
        let counts = [
            account.refusals_total,
            account.would_refuse_total,
            account.admission_refusals_total,
            account.threads_killed_total,
        ];
        for (own, more) in self.counts.iter_mut().zip(counts) {
            *own = sum(*own, more);
        }
    }
}

impl Point {
    fn document(&self) -> document::HistoryPoint<'_> {
        document::HistoryPoint {
            at: humantime::format_rfc3339_millis(self.at).to_string().into(),
            live_gc_epoch: self.live_gc_epoch,
            used_after_gc_bytes: self.used_after_gc_bytes,
            accounts: (self.accounts.iter())
                .map(|row| document::HistoryAccount {
                    name: (&*row.name).into(),
                    live_bytes: row.live_bytes,
                    live_standard_error_bytes: Some(row.variance.sqrt().ceil() as u64),
                    allocated_bytes_total: row.allocated_bytes_total,
                    state: super::json::state(row.state),
                    refusals_total: row.counts[0],
                    would_refuse_total: row.counts[1],
                    admission_refusals_total: row.counts[2],
                    threads_killed_total: row.counts[3],
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds)
    }

    #[test]
    fn an_hour_of_the_largest_accounts_is_kept_and_the_rest_is_summed() {
        let mut history = History::default();
        for round in 0..(MAX_POINTS as u64 + 10) {
            let account = |index: u64| Account {
                // Tenants come and go.
                name: format!("tenant-{}", round * 1000 + index),
                live_bytes: index,
                live_standard_error_bytes: 3.0,
                refusals_total: round,
                ..Account::default()
            };
            let snapshot = Snapshot {
                accounts: (0..MAX_ACCOUNTS as u64 + 4).map(account).collect(),
                ..Snapshot::default()
            };
            history.record(&snapshot, at(30 * round));
        }
        assert_eq!(history.names.len(), MAX_POINTS * MAX_ACCOUNTS + 1);
        let least = MAX_POINTS * (MAX_ACCOUNTS + 1) * size_of::<Row>();
        let memory = history.memory_bytes();
        assert!(memory > least as u64 && memory < 1 << 20, "{memory}");
        let json = history.render().expect("it can be written");
        let read: document::History<'_> = serde_json::from_slice(&json).expect("it can be read");
        assert_eq!((read.step_seconds, read.points.len()), (30, MAX_POINTS));
        assert_eq!(read.points[0].at, "2001-09-09T01:51:40.000Z");
        let last = read.points.last().expect("a point");
        assert_eq!(last.accounts.len(), MAX_ACCOUNTS + 1);
        assert_eq!(last.accounts[0].live_bytes, 53);
        let other = last.accounts.last().expect("the rest");
        assert_eq!((&*other.name, other.live_bytes), (OTHER, 1 + 2 + 3));
        assert_eq!(other.live_standard_error_bytes, Some(6));
        assert_eq!(other.refusals_total, 4 * 129);
    }
}
