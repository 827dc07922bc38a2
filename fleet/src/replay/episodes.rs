//! When an account would have been over its limit, by the agent's rules.

use policy_config::Limit;

use crate::history::{Assigned, Jvm};

/// A stretch of steps in which an account would have been refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Episode {
    /// The first step.
    pub(super) first: usize,
    /// The last step in which it was seen over its limit.
    pub(super) last: usize,
    /// Steps with a reading, the first and the last included.
    pub(super) steps: usize,
    /// The most live bytes in it.
    pub(super) peak_bytes: f64,
    /// The limit, at the peak.
    pub(super) limit_bytes: u64,
    /// How it ended.
    pub(super) end: End,
}

/// How an episode ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At most 95 % of the limit was left.
    Admitted,
    /// The JVM was restarted.
    Restarted,
    /// The account was gone, or the record ended.
    Unseen,
}

impl End {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            End::Admitted => "admitted",
            End::Restarted => "restarted",
            End::Unseen => "unseen",
        }
    }
}

/// The episodes of an account under `limit`, in order.
///
/// The rules are those of the agent's state machine after a collection that covers the memory: an
/// account is over when its live bytes are three standard errors above the limit, and is admitted
/// again at 95 % of the limit, or when the limit rose (a percentage, and the JVM was restarted with a
/// larger heap). A step without a reading changes nothing and does not count as time.
pub(super) fn episodes(account: &Assigned<'_>, limit: Limit, jvm: &Jvm) -> Vec<Episode> {
    let mut episodes = Vec::new();
    let mut now: Option<Episode> = None;
    let mut restarts = jvm.restarts.iter().copied().peekable();
    for (step, live) in account.live_bytes.readings() {
        let mut restarted = false;
        while restarts.next_if(|restart| *restart <= step).is_some() {
            restarted = true;
        }
        if restarted && let Some(episode) = now.take() {
            episodes.push(Episode {
                end: End::Restarted,
                ..episode
            });
        }
        let Some(limit) = in_force(limit, jvm, step) else {
            continue;
        };
        let error = account.standard_error_bytes.get(step).unwrap_or(0.0);
        let clears = live - Limit::MARGIN_STANDARD_ERRORS * error > limit as f64;
        match &mut now {
            Some(episode) if live > limit as f64 * Limit::READMISSION_SHARE => {
                episode.last = step;
                episode.steps += 1;
                if live > episode.peak_bytes {
                    episode.peak_bytes = live;
                    episode.limit_bytes = limit;
                }
            }
            Some(_) => {
                episodes.extend(now.take());
            }
            None if clears => {
                now = Some(Episode {
                    first: step,
                    last: step,
                    steps: 1,
                    peak_bytes: live,
                    limit_bytes: limit,
                    end: End::Admitted,
                });
            }
            None => {}
        }
    }
    episodes.extend(now.map(|episode| Episode {
        end: End::Unseen,
        ..episode
    }));
    episodes
}

/// `None` without a limit, and for a percentage of a heap of unknown size.
fn in_force(limit: Limit, jvm: &Jvm, step: usize) -> Option<u64> {
    let heap = jvm.heap_max_bytes.in_force(step);
    match limit {
        Limit::PercentOfMaxHeap(_) => limit.resolve(heap? as u64),
        Limit::None | Limit::Bytes(_) => limit.resolve(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::Column;

    fn column(readings: &[Option<f64>]) -> Column {
        let mut column = Column::default();
        for (step, reading) in readings.iter().enumerate() {
            if let Some(reading) = reading {
                column.put(readings.len(), step, *reading);
            }
        }
        column
    }

    fn assigned(live: &[Option<f64>], error: f64) -> Assigned<'static> {
        let errors: Vec<_> = live.iter().map(|_| Some(error)).collect();
        Assigned {
            rule: 0,
            name: "shop".into(),
            parts: Vec::new(),
            live_bytes: column(live),
            standard_error_bytes: column(&errors),
        }
    }

    const LIMIT: Limit = Limit::Bytes(1000);

    #[test]
    fn over_at_three_errors_and_admitted_at_95_percent() {
        let live = [1030.0, 1031.0, 960.0, 951.0, 950.0, 1030.0, 2000.0].map(Some);
        let found = episodes(&assigned(&live, 10.0), LIMIT, &Jvm::default());
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].first, found[0].last, found[0].steps), (1, 3, 3));
        assert_eq!((found[0].peak_bytes, found[0].end), (1031.0, End::Admitted));
        assert_eq!(
            (found[1].first, found[1].last, found[1].end),
            (6, 6, End::Unseen)
        );
    }

    #[test]
    fn a_restart_ends_it_and_a_gap_is_no_time() {
        let live = [Some(2000.0), None, None, Some(2000.0), Some(990.0)];
        let jvm = Jvm {
            restarts: vec![4],
            ..Jvm::default()
        };
        let found = episodes(&assigned(&live, 0.0), LIMIT, &jvm);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].last, found[0].steps, found[0].end),
            (3, 2, End::Restarted)
        );
        // Without the restart 990 is still above 95 %.
        let found = episodes(&assigned(&live, 0.0), LIMIT, &Jvm::default());
        assert_eq!((found[0].last, found[0].steps), (4, 3));
    }

    #[test]
    fn percentages_are_of_the_heap_of_the_time() {
        let jvm = Jvm {
            heap_max_bytes: column(&[Some(2000.0), Some(2000.0), Some(8000.0)]),
            ..Jvm::default()
        };
        let live = [500.0, 1500.0, 1500.0].map(Some);
        let limit = Limit::PercentOfMaxHeap(50.0);
        let found = episodes(&assigned(&live, 0.0), limit, &jvm);
        assert_eq!((found.len(), found[0].first, found[0].last), (1, 1, 1));
        assert_eq!(episodes(&assigned(&live, 0.0), limit, &Jvm::default()), []);
        assert_eq!(episodes(&assigned(&live, 0.0), Limit::None, &jvm), []);
    }

    proptest! {
        #[test]
        fn nobody_below_the_limit_is_ever_refused(
            live in prop::collection::vec(prop::option::of(0.0_f64..2000.0), 0..60), error in 0.0_f64..50.0,
        ) {
            let found = episodes(&assigned(&live, error), LIMIT, &Jvm::default());
            let clears = live.iter().flatten().any(|live| live - 3.0 * error > 1000.0);
            prop_assert_eq!(!found.is_empty(), clears);
            for episode in &found {
                prop_assert!(episode.first <= episode.last && episode.steps <= episode.last - episode.first + 1);
                prop_assert!(live[episode.first].unwrap() - 3.0 * error > 1000.0);
                prop_assert!(episode.peak_bytes >= live[episode.first].unwrap());
            }
            // A higher limit never refuses where a lower one did not.
            let higher = episodes(&assigned(&live, error), Limit::Bytes(1500), &Jvm::default());
            prop_assert!(higher.is_empty() || !found.is_empty());
        }
    }
}
