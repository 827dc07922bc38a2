//! The page's view of a fleet that Prometheus has recorded: all JVMs together, and each of them.
//!
//! One reading of the period answers all of them for [`FRESH`]. It is bounded as that of `heapwarden advise` is: of a
//! large fleet the accounts of full JVMs alone are read. The documents are bounded too, and count what they leave out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use heapwarden_fleet::history::{self, Account, Column, Error, History, Jvm};
use heapwarden_fleet::prometheus::Span;
use heapwarden_terminal::clock;

/// For how long a reading is good.
const FRESH: Duration = Duration::from_secs(30);
/// Most steps of a period: as many as a chart can show.
const MAX_STEPS: u64 = 200;
/// Most JVMs that are listed, the fullest first.
const MAX_JVMS: usize = 500;
/// Most accounts that are listed, the largest first.
const MAX_ACCOUNTS: usize = 2_000;
/// The accounts that come with their history, the largest.
const MAX_CHARTED: usize = 8;
/// Of a large fleet the accounts of JVMs are read that are fuller than this.
const FULL: f64 = 0.8;
/// A value is the present one if it is one of the latest so many steps.
const PRESENT_STEPS: usize = 3;

/// The id of all JVMs together.
pub(super) const WHOLE: &str = "fleet";

/// A fleet in Prometheus.
#[derive(Debug)]
pub(super) struct Fleet {
    arguments: history::Arguments,
    /// The latest reading, and when it ended.
    latest: Mutex<Option<(Instant, Arc<History>)>>,
}

/// The figures that the page shows of all JVMs, or of one.
#[derive(Debug, Serialize)]
struct Document {
    source: String,
    /// Absent for all together.
    jvm: Option<Listed>,
    from: String,
    to: String,
    step_seconds: u64,
    /// Seconds since 1970 of each step.
    times: Vec<i64>,
    heap_used_after_gc_bytes: Option<f64>,
    heap_max_bytes: Option<f64>,
    /// By step.
    heap_history: Vec<Option<f64>>,
    accounts: Vec<AccountRow>,
    accounts_omitted: usize,
    jvms: Vec<Listed>,
    jvms_omitted: usize,
    notes: Vec<String>,
}

/// An account of one JVM, or of all that have it.
#[derive(Debug, Default, Serialize)]
struct AccountRow {
    name: String,
    kind: String,
    jvms: usize,
    live_bytes: f64,
    standard_error_bytes: f64,
    /// Of all JVMs together; absent if one of them has none.
    limit_bytes: Option<f64>,
    /// How many of them hold more than their limit.
    over: usize,
    /// Errors thrown in the period, and those that `observe` counted.
    refusals: f64,
    would_refuse: f64,
    /// By step; empty for all but the largest.
    history: Vec<Option<f64>>,
}

/// A JVM.
#[derive(Debug, Clone, Serialize)]
struct Listed {
    id: String,
    name: String,
    heap_used_after_gc_bytes: Option<f64>,
    heap_max_bytes: Option<f64>,
    accounts: usize,
    over: usize,
}

impl Fleet {
    /// Reads it once, to see that it can be.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn find(arguments: &history::Arguments) -> Result<Fleet, Error> {
        let fleet = Fleet {
            arguments: arguments.clone(),
            latest: Mutex::default(),
        };
        fleet.read()?;
        Ok(fleet)
    }

    /// The period, at most [`FRESH`] old. Readers wait for each other.
    fn read(&self) -> Result<Arc<History>, Error> {
        let mut latest = self.latest.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((read, history)) = &*latest
            && read.elapsed() < FRESH
        {
            return Ok(history.clone());
        }
        let full = |jvm: &Jvm, span: Span| share(jvm, span).filter(|share| *share > FULL);
        let history = Arc::new(self.arguments.read_overview(MAX_STEPS, &full)?);
        *latest = Some((Instant::now(), history.clone()));
        Ok(history)
    }

    /// All JVMs and each of them: id and name, the fullest first.
    pub(super) fn list(&self) -> Vec<(String, String)> {
        let mut all = vec![(WHOLE.to_owned(), "all JVMs".to_owned())];
        if let Ok(history) = self.read() {
            let (jvms, _) = listed(&history);
            all.extend(jvms.into_iter().map(|jvm| (jvm.id, jvm.name)));
        }
        all
    }

    /// The document of all JVMs, or of one; `None` if there is no such JVM.
    ///
    /// # Errors
    /// Why Prometheus could not be read.
    pub(super) fn document(&self, id: &str) -> Result<Option<Vec<u8>>, Error> {
        let history = self.read()?;
        let jvm = history.jvms.iter().find(|jvm| id_of(jvm) == id);
        if jvm.is_none() && id != WHOLE {
            return Ok(None);
        }
        let document = document(&history, jvm);
        Ok(Some(serde_json::to_vec(&document).unwrap_or_default()))
    }
}

/// The latest reading, if it is of now.
fn present(column: &Column, span: Span) -> Option<f64> {
    let steps = span.points();
    (steps.saturating_sub(PRESENT_STEPS)..steps)
        .rev()
        .find_map(|step| column.get(step))
}

fn heap(jvm: &Jvm, span: Span) -> (Option<f64>, Option<f64>) {
    let used = present(&jvm.heap_used_after_gc_bytes, span);
    (used, jvm.heap_max_bytes.last())
}

fn share(jvm: &Jvm, span: Span) -> Option<f64> {
    let (used, max) = heap(jvm, span);
    Some(used? / max.filter(|max| *max > 0.0)?)
}

fn limit(account: &Account) -> Option<f64> {
    account.limit_bytes.last()
}

fn is_over(account: &Account, span: Span) -> bool {
    present(&account.live_bytes, span)
        .zip(limit(account))
        .is_some_and(|(live, limit)| live > limit)
}

/// The same for as long as its labels are.
fn id_of(jvm: &Jvm) -> String {
    let labels = jvm.labels.iter().flat_map(|(name, value)| [name, value]);
    let bytes = labels.flat_map(|text| text.bytes().chain([0]));
    // FNV-1a. Two JVMs with one number would be shown as one of them.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn entry(jvm: &Jvm, span: Span) -> Listed {
    let (used, max) = heap(jvm, span);
    let accounts = jvm.accounts.iter();
    Listed {
        id: id_of(jvm),
        name: jvm.name(),
        heap_used_after_gc_bytes: used,
        heap_max_bytes: max,
        accounts: jvm.accounts.len(),
        over: accounts.filter(|account| is_over(account, span)).count(),
    }
}

/// The JVMs that are there now, the fullest first, and how many are left out.
fn listed(history: &History) -> (Vec<Listed>, usize) {
    let mut all: Vec<(f64, &Jvm)> = (history.jvms.iter())
        .filter_map(|jvm| Some((share(jvm, history.span)?, jvm)))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let omitted = all.len().saturating_sub(MAX_JVMS);
    all.truncate(MAX_JVMS);
    let jvms = all.into_iter().map(|(_, jvm)| entry(jvm, history.span));
    (jvms.collect(), omitted)
}

fn document(history: &History, jvm: Option<&Jvm>) -> Document {
    let span = history.span;
    let of: Vec<&Jvm> = match jvm {
        Some(jvm) => vec![jvm],
        None => history.jvms.iter().collect(),
    };
    let (accounts, accounts_omitted) = accounts(&of, span);
    let (jvms, jvms_omitted) = match jvm {
        Some(_) => (Vec::new(), 0),
        None => listed(history),
    };
    let sum = |value: &dyn Fn(&Jvm) -> Option<f64>| {
        of.iter().filter_map(|jvm| value(jvm)).reduce(|a, b| a + b)
    };
    Document {
        source: history.source.clone(),
        jvm: jvm.map(|jvm| entry(jvm, span)),
        from: clock::format_time(span.start_seconds()),
        to: clock::format_time(span.end_seconds()),
        step_seconds: span.step_seconds(),
        times: (0..span.points() as u64)
            .map(|step| span.time(step))
            .collect(),
        heap_used_after_gc_bytes: sum(&|jvm| heap(jvm, span).0),
        // Of those that are there.
        heap_max_bytes: sum(&|jvm| heap(jvm, span).0.and(heap(jvm, span).1)),
        heap_history: (0..span.points())
            .map(|step| sum(&|jvm| jvm.heap_used_after_gc_bytes.get(step)))
            .collect(),
        accounts,
        accounts_omitted,
        jvms,
        jvms_omitted,
        notes: history.notes.clone(),
    }
}

/// The accounts by name over some JVMs, the largest first, and how many are left out.
fn accounts(jvms: &[&Jvm], span: Span) -> (Vec<AccountRow>, usize) {
    let mut by_name: BTreeMap<&str, Vec<&Account>> = BTreeMap::new();
    for account in jvms.iter().flat_map(|jvm| &jvm.accounts) {
        if present(&account.live_bytes, span).is_some() {
            by_name.entry(&account.name).or_default().push(account);
        }
    }
    let mut rows: Vec<(AccountRow, Vec<&Account>)> = (by_name.into_iter())
        .map(|(name, of)| (row(name, &of, span), of))
        .collect();
    rows.sort_by(|a, b| b.0.live_bytes.total_cmp(&a.0.live_bytes));
    let omitted = rows.len().saturating_sub(MAX_ACCOUNTS);
    rows.truncate(MAX_ACCOUNTS);
    for (row, of) in rows.iter_mut().take(MAX_CHARTED) {
        let at = |step| {
            let readings = of.iter().filter_map(|account| account.live_bytes.get(step));
            readings.reduce(|a, b| a + b)
        };
        row.history = (0..span.points()).map(at).collect();
    }
    (rows.into_iter().map(|(row, _)| row).collect(), omitted)
}

fn row(name: &str, of: &[&Account], span: Span) -> AccountRow {
    let live = |account: &&Account| present(&account.live_bytes, span);
    let total = |column: &dyn Fn(&Account) -> f64| of.iter().map(|account| column(account)).sum();
    let variance: f64 = total(&|account| {
        present(&account.standard_error_bytes, span)
            .unwrap_or(0.0)
            .powi(2)
    });
    let counted = |column: &Column| column.readings().map(|(_, count)| count).sum::<f64>();
    AccountRow {
        name: name.to_owned(),
        kind: of
            .first()
            .map(|account| account.kind.to_string())
            .unwrap_or_default(),
        jvms: of.len(),
        live_bytes: of.iter().filter_map(live).sum(),
        standard_error_bytes: variance.sqrt(),
        limit_bytes: of.iter().map(|account| limit(account)).sum(),
        over: of.iter().filter(|account| is_over(account, span)).count(),
        refusals: total(&|account| counted(&account.refusals)),
        would_refuse: total(&|account| counted(&account.would_refuse)),
        history: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwarden_fleet::history::Kind;

    const SPAN_SECONDS: u64 = 660;

    fn column(values: &[(usize, f64)]) -> Column {
        let mut column = Column::default();
        for &(step, value) in values {
            assert!(column.put(11, step, value));
        }
        column
    }

    fn jvm(instance: &str, used: f64, live: &[(usize, f64)], limit: f64) -> Jvm {
        let account = Account {
            name: "shop".into(),
            kind: Kind::Service,
            live_bytes: column(live),
            standard_error_bytes: column(&[(10, 3.0)]),
            limit_bytes: column(&[(10, limit)]),
            refusals: column(&[(4, 2.0), (6, 1.0)]),
            ..Account::default()
        };
        Jvm {
            labels: vec![("instance".into(), instance.into())],
            heap_max_bytes: column(&[(10, 100.0)]),
            heap_used_after_gc_bytes: column(&[(10, used)]),
            accounts: vec![account],
            ..Jvm::default()
        }
    }

    fn fleet() -> History {
        History {
            source: "here".into(),
            span: Span::covering(6_000, SPAN_SECONDS, 60),
            jvms: vec![
                jvm("a", 40.0, &[(9, 30.0), (10, 20.0)], 50.0),
                jvm("b", 90.0, &[(10, 60.0)], 50.0),
                // It ended: its heap's last reading is old.
                Jvm {
                    heap_used_after_gc_bytes: column(&[(2, 99.0)]),
                    ..jvm("c", 0.0, &[(2, 70.0)], 50.0)
                },
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn accounts_are_summed_over_the_jvms_that_are_there() {
        let fleet = fleet();
        assert_eq!(fleet.span.points(), 11);
        let whole = document(&fleet, None);
        let [shop] = &whole.accounts[..] else {
            panic!("{whole:?}")
        };
        assert_eq!((shop.live_bytes, shop.jvms, shop.over), (80.0, 2, 1));
        assert_eq!((shop.limit_bytes, shop.refusals), (Some(100.0), 6.0));
        assert!((shop.standard_error_bytes - 18.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(shop.history[9..], [Some(30.0), Some(80.0)]);
        assert_eq!(whole.heap_used_after_gc_bytes, Some(130.0));
        assert_eq!(whole.heap_max_bytes, Some(200.0));
        let names: Vec<&str> = whole.jvms.iter().map(|jvm| jvm.name.as_str()).collect();
        assert_eq!(names, ["b", "a"], "the fullest first");
        let own = document(&fleet, Some(&fleet.jvms[0]));
        assert_eq!(own.accounts[0].live_bytes, 20.0);
        assert!(own.jvms.is_empty());
        assert_ne!(id_of(&fleet.jvms[0]), id_of(&fleet.jvms[1]));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut fleet = fleet();
        fleet.jvms = (0..MAX_JVMS + 3)
            .map(|at| {
                let mut one = jvm(&at.to_string(), 50.0, &[(10, 1.0)], 50.0);
                one.accounts[0].name = format!("shop-{at}");
                let more = (0..4).map(|more| Account {
                    name: format!("shop-{at}-{more}"),
                    ..one.accounts[0].clone()
                });
                let more: Vec<Account> = more.collect();
                one.accounts.extend(more);
                one
            })
            .collect();
        let whole = document(&fleet, None);
        assert_eq!((whole.jvms.len(), whole.jvms_omitted), (MAX_JVMS, 3));
        let all = 5 * (MAX_JVMS + 3);
        assert_eq!(whole.accounts.len() + whole.accounts_omitted, all);
        assert_eq!(whole.accounts.len(), MAX_ACCOUNTS);
        let charted = whole.accounts.iter().filter(|one| !one.history.is_empty());
        assert_eq!(charted.count(), MAX_CHARTED);
    }
}
