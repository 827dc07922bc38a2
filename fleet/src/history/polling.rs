//! Reads a period by polling one running JVM.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::prometheus::Span;
use heapwarden_client::live::{Accounts, Address, Classes, Client};
use heapwarden_terminal::clock;

use super::{Account, Error, History, Jvm, Kind, live_error};

/// Readings that a period is divided into unless a step is given.
const READINGS: u64 = 240;

/// Coarsest step unless one is given.
const COARSEST_STEP_SECONDS: u64 = 30;

/// Polls the JVM at `address` for `seconds`.
///
/// A reading that fails is missing, and counted in a note; the JVM may be restarting.
///
/// # Errors
/// [`Error::Live`] if the first reading fails, or all later ones.
pub(super) fn read(address: &Address, seconds: u64, step: Option<u64>) -> Result<History, Error> {
    let step = step.unwrap_or_else(|| (seconds / READINGS).clamp(1, COARSEST_STEP_SECONDS));
    let client = Client::new();
    let first = client.accounts(address, Classes::Top)?;
    let length = i64::try_from(seconds).unwrap_or(i64::MAX);
    let span = Span::covering(clock::now_seconds().saturating_add(length), seconds, step);
    tell(span);
    let mut polled = Polled::new(span.points());
    polled.add(0, &first);
    let began = Instant::now();
    let (mut failed, mut last_error) = (0, None);
    for reading in 1..span.points() {
        let due = Duration::from_secs(step.saturating_mul(reading as u64));
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        match client.accounts(address, Classes::Top) {
            Ok(accounts) => polled.add(reading, &accounts),
            Err(error) => {
                failed += 1;
                last_error = Some(error);
            }
        }
    }
    let mut notes = Vec::new();
    if let Some(error) = last_error {
        if failed == span.points() - 1 {
            return Err(error.into());
        }
        notes.push(format!(
            "{failed} of {} readings failed: {error}",
            span.points()
        ));
    }
    if polled.epochs.0 == polled.epochs.1 {
        notes.push(
            "no collection took place meanwhile: live bytes are those of the latest one before"
                .into(),
        );
    }
    Ok(History {
        source: format!("the JVM at {address}"),
        span,
        jvms: vec![polled.finish(address)],
        notes,
    })
}

/// Tells a user at a terminal how long it will take.
fn tell(span: Span) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let (length, step) = (span.seconds(), span.step_seconds());
        let length = clock::format_duration(length);
        // If this cannot be printed, nothing is lost.
        let _ = writeln!(
            err,
            "heapwarden: one reading every {step} s, for {length} …"
        );
    }
}

/// The readings taken so far.
struct Polled {
    steps: usize,
    jvm: Jvm,
    accounts: BTreeMap<String, (Account, Counters)>,
    samples: u64,
    /// The first and the latest.
    epochs: (Option<u64>, Option<u64>),
}

/// As of the latest reading.
#[derive(Clone, Copy)]
struct Counters {
    reading: usize,
    refusals: u64,
    would_refuse: u64,
}

impl Polled {
    fn new(steps: usize) -> Polled {
        Polled {
            steps,
            jvm: Jvm::default(),
            accounts: BTreeMap::new(),
            samples: 0,
            epochs: (None, None),
        }
    }

    fn add(&mut self, step: usize, found: &Accounts) {
        let steps = self.steps;
        let heap = &found.heap;
        self.jvm
            .heap_max_bytes
            .put(steps, step, heap.max_bytes as f64);
        self.jvm
            .heap_used_after_gc_bytes
            .put(steps, step, heap.used_after_gc_bytes as f64);
        let interval = found.sampling.interval_bytes as f64;
        self.jvm.sampling_interval_bytes.put(steps, step, interval);
        if found.sampling.samples < self.samples {
            self.jvm.restarts.push(step);
        }
        self.samples = found.sampling.samples;
        self.epochs = (self.epochs.0.or(Some(heap.gc_epoch)), Some(heap.gc_epoch));
        for one in &found.accounts {
            let now = Counters {
                reading: step,
                refusals: one.refusals_total,
                would_refuse: one.would_refuse_total,
            };
            let fresh = || {
                let account = Account {
                    name: one.name.to_string(),
                    ..Account::default()
                };
                (account, now)
            };
            let (account, before) = self
                .accounts
                .entry(one.name.to_string())
                .or_insert_with(fresh);
            account.kind = Kind::from_word(&one.kind);
            account.places.clone_from(&one.places);
            account.places_other = one.places_other;
            account.routes.clone_from(&one.routes);
            account.service = one.service.to_string();
            account.parent = one.parent.as_deref().unwrap_or_default().to_owned();
            let whole = one.whole();
            let (live, charged) = (whole.live_bytes as f64, whole.charged_bytes as f64);
            account.live_bytes.put(steps, step, live);
            let error = match whole.live_standard_error_bytes {
                Some(error) => error as f64,
                None => live_error(whole.standard_error_bytes as f64, live, charged),
            };
            account.standard_error_bytes.put(steps, step, error);
            for (column, limit) in [
                (&mut account.limit_bytes, one.limit_bytes),
                (&mut account.soft_limit_bytes, one.soft_limit_bytes),
            ] {
                if let Some(limit) = limit {
                    column.put(steps, step, limit as f64);
                }
            }
            for (column, was, is) in [
                (&mut account.refusals, before.refusals, now.refusals),
                (
                    &mut account.would_refuse,
                    before.would_refuse,
                    now.would_refuse,
                ),
            ] {
                // A counter that fell was reset; after a gap, the time of the increase is unknown.
                let gained = if is < was { is } else { is - was };
                if gained > 0 && step == before.reading + 1 {
                    column.put(steps, step, gained as f64);
                }
            }
            *before = now;
        }
    }

    fn finish(self, address: &Address) -> Jvm {
        Jvm {
            labels: vec![("address".into(), address.to_string())],
            accounts: self
                .accounts
                .into_values()
                .map(|(account, _)| account)
                .collect(),
            ..self.jvm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwarden_client::live::{self, Tree};

    fn accounts(samples: u64, live_bytes: u64, refusals_total: u64) -> Accounts {
        let mut found = Accounts {
            accounts: vec![live::Account {
                name: "shop".into(),
                kind: "service".into(),
                service: "/shop".into(),
                live_bytes,
                charged_bytes: 4 * live_bytes,
                standard_error_bytes: 8,
                limit_bytes: Some(1000),
                refusals_total,
                ..live::Account::default()
            }],
            ..Accounts::default()
        };
        found.sampling.samples = samples;
        found
    }

    #[test]
    fn readings_restarts_and_refusals_are_noted_where_they_happened() {
        let mut polled = Polled::new(6);
        polled.add(0, &accounts(10, 100, 5));
        polled.add(1, &accounts(20, 200, 7));
        polled.add(3, &accounts(30, 300, 9));
        polled.add(4, &accounts(2, 10, 1));
        let jvm = polled.finish(&"127.0.0.1:9464".parse().unwrap());
        assert_eq!(jvm.restarts, [4]);
        let shop = &jvm.accounts[0];
        let live: Vec<_> = shop.live_bytes.readings().collect();
        assert_eq!(live, [(0, 100.0), (1, 200.0), (3, 300.0), (4, 10.0)]);
        let refusals: Vec<_> = shop.refusals.readings().collect();
        assert_eq!(refusals, [(1, 2.0), (4, 1.0)]);
        assert_eq!(shop.standard_error_bytes.get(0), Some(4.0));
        assert_eq!(
            (shop.limit_bytes.last(), shop.soft_limit_bytes.last()),
            (Some(1000.0), None)
        );
        assert_eq!((shop.kind, shop.service.as_str()), (Kind::Service, "/shop"));
    }

    #[test]
    fn the_published_error_of_live_bytes_is_used_where_there_is_one() {
        let mut found = accounts(10, 100, 0);
        found.accounts[0].live_standard_error_bytes = Some(3);
        let mut polled = Polled::new(1);
        polled.add(0, &found);
        let jvm = polled.finish(&"127.0.0.1:9464".parse().unwrap());
        assert_eq!(jvm.accounts[0].standard_error_bytes.get(0), Some(3.0));
    }

    #[test]
    fn what_has_scopes_beneath_it_counts_with_them() {
        let mut found = accounts(10, 100, 0);
        found.accounts[0].parent = Some("mall".into());
        found.accounts[0].tree = Some(Tree {
            live_bytes: 300,
            charged_bytes: 300,
            standard_error_bytes: 9,
            ..Tree::default()
        });
        let mut polled = Polled::new(1);
        polled.add(0, &found);
        let jvm = polled.finish(&"127.0.0.1:9464".parse().unwrap());
        let shop = &jvm.accounts[0];
        assert_eq!(shop.live_bytes.get(0), Some(300.0));
        assert_eq!(shop.standard_error_bytes.get(0), Some(9.0));
        assert_eq!(shop.parent, "mall");
    }
}
