//! In place: which stops are made, in which order, and what the answer says of each.
//!
//! The world stands still for a whole walk in place, so it is asked in two stops where that helps: first a *slice*,
//! what the accounts themselves hold that are asked about; and the whole heap only if something was not found there.
//!
//! # Rules
//! 1. Every stop is at most as long as the operator has accepted: it is given up then, with what it has found.
//! 2. A slice comes first if it can give the answer, and is short: see [`OneStop`] for when it cannot, or is not.
//! 3. The second stop is made only if its prediction is within what is accepted. It is predicted anew, by the speed
//!    of the slice.
//! 4. What was not found is called *unreached* only if the whole heap was walked to its end. Otherwise it is
//!    *undecided*.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use policy_jvm::Jni;
use policy_jvm::forked_walk::{Answer, MAX_SLICE_ROOTS, Path, Request, Walk, WalkError};
use policy_report::StopMade;

use crate::ground::Ground;

use super::outcome::{CannotWalk, How, Walked, described, milliseconds};
use super::survey::Survey;

/// The first release of Java on which a walk is given up at once: before, the JVM looks at every object again.
const FIRST_WITH_SLICES: u32 = 21;
/// How long a walk in place takes for each GiB in use: most of the measured ones, and on ZGC.
const SECONDS_PER_GIB: f64 = 5.0;
const SECONDS_PER_GIB_ZGC: f64 = 18.0;
/// The least time that a stop takes, by prediction.
const LEAST: Duration = Duration::from_millis(100);
/// From so many bytes on the speed of a slice says something about the rest of the heap, and by what factor the rest
/// may be slower.
const SPEED_BYTES: u64 = 4 << 20;
const SLOWER: f64 = 2.0;
/// Names of accounts in a sentence.
const MAX_NAMES: usize = 3;

/// Why the heap is walked in one stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum OneStop {
    #[error("before JDK 21 a JVM that gives a walk up looks at every object once more")]
    Release,
    #[error("holders are asked for, and they may be anywhere")]
    Holders,
    #[error("it is asked who outside holds class loaders")]
    Outside,
    #[error("what is looked for belongs to no account with classes or threads of its own")]
    Nobody,
    #[error("what is looked for belongs to accounts that have most of the heap")]
    Most,
    #[error("the accounts have too many classes and threads")]
    TooMany,
}

/// The facts that decide whether a slice comes first.
#[derive(Debug, Clone, Copy)]
struct Known {
    release: u32,
    /// Class objects and threads that a slice would begin at.
    roots: usize,
    /// Live bytes of the accounts that are asked about, and of all.
    own_bytes: u64,
    all_bytes: u64,
}

impl Known {
    fn one_stop(&self) -> Option<OneStop> {
        if self.release < FIRST_WITH_SLICES {
            Some(OneStop::Release)
        } else if self.roots == 0 {
            Some(OneStop::Nobody)
        } else if self.roots > MAX_SLICE_ROOTS {
            Some(OneStop::TooMany)
        } else if self.own_bytes > self.all_bytes / 2 {
            Some(OneStop::Most)
        } else {
            None
        }
    }
}

/// The question, as far as the stops depend on it.
pub(super) enum Asked<'a> {
    /// Who holds objects of these accounts.
    Paths {
        survey: &'a Survey<'a>,
        accounts: &'a [Arc<str>],
    },
    /// Who outside holds class loaders.
    Retired,
    /// The matrix of holders.
    Holders,
}

/// The stops that are to be made.
pub(super) struct Plan<'a> {
    /// The first stop, if it is a slice.
    slice: Option<Slice<'a>>,
    one_stop: Option<OneStop>,
    /// Bytes in use, and how long it takes to walk them.
    used_bytes: u64,
    whole: Duration,
}

struct Slice<'a> {
    survey: &'a Survey<'a>,
    accounts: &'a [Arc<str>],
    predicted: Duration,
}

impl Slice<'_> {
    fn names(&self) -> String {
        let names: Vec<&str> = (self.accounts.iter().take(MAX_NAMES))
            .map(|name| &**name)
            .collect();
        match self.accounts.len().saturating_sub(MAX_NAMES) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }
}

impl<'a> Plan<'a> {
    /// Decides. One pass over the records.
    pub(super) fn make(ground: &Ground, asked: &Asked<'a>, is_zgc: bool) -> Plan<'a> {
        let rate = match is_zgc {
            true => SECONDS_PER_GIB_ZGC,
            false => SECONDS_PER_GIB,
        };
        let used_bytes = ground.core.heap.used_after_gc_bytes();
        let mut plan = Plan {
            slice: None,
            one_stop: None,
            used_bytes,
            whole: predicted(used_bytes, rate),
        };
        plan.one_stop = match *asked {
            Asked::Holders => Some(OneStop::Holders),
            Asked::Retired => Some(OneStop::Outside),
            Asked::Paths { survey, accounts } => {
                let (own_bytes, all_bytes) = live_bytes(ground, accounts);
                let known = Known {
                    release: ground.release(),
                    roots: survey.roots_of_holders(),
                    own_bytes,
                    all_bytes: all_bytes.max(used_bytes),
                };
                let one_stop = known.one_stop();
                if one_stop.is_none() {
                    plan.slice = Some(Slice {
                        survey,
                        accounts,
                        predicted: predicted(own_bytes, rate),
                    });
                }
                one_stop
            }
        };
        plan
    }

    /// Returns the expected cost in words, for whoever has to accept it.
    pub(super) fn cost(&self) -> String {
        let whole = self.whole.as_secs_f64().ceil();
        match &self.slice {
            None => format!("about {whole} s"),
            Some(slice) => format!(
                "about {:.1} s for what {} itself holds, and, if something is not found there, for about {whole} s more",
                slice.predicted.as_secs_f64(),
                slice.names()
            ),
        }
    }

    /// Walks. `request` is made anew for each stop.
    ///
    /// # Errors
    /// See [`WalkError`].
    pub(super) fn walk(
        &self,
        ground: &Ground,
        jni: &Jni,
        request: &Request<'_>,
        why: &WalkError,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Walked, CannotWalk> {
        let accepted = request.limits.max_pause;
        let looked_for = request.targets.most();
        let mut stops = Vec::new();
        let mut first = None;
        let mut whole = self.whole;
        if let Some(slice) = &self.slice {
            tracing::warn!(
                "the JVM stands still for about {:.1} s, and for at most {} s, while what {} itself holds is walked in place, because {why}",
                slice.predicted.as_secs_f64(),
                accepted.as_secs_f64(),
                slice.names()
            );
            let owned = slice.survey.owned();
            let walk = ground.jvmti.walk_slice(jni, request.clone(), &owned)?;
            whole = after(&walk, self.used_bytes, whole);
            let found = paths_of(&walk).len();
            stops.push(stop("slice", &walk, slice.predicted, accepted, found));
            let next = Next::after(looked_for.saturating_sub(found), whole, accepted);
            if next != Next::Whole {
                if next == Next::Leave {
                    stops.push(not_made(whole, accepted));
                }
                return Ok(Walked {
                    is_complete: next == Next::Done,
                    ..self.walked(walk, stops)
                });
            }
            if is_cancelled() {
                return Err(WalkError::Cancelled.into());
            }
            first = Some(walk);
        }
        tracing::warn!(
            "the JVM stands still for about {:.1} s, and for at most {} s, while the whole heap is walked in place, because {why}",
            whole.as_secs_f64(),
            accepted.as_secs_f64()
        );
        let mut walk = ground.jvmti.walk_in_place(request.clone())?;
        let is_complete = !walk.is_cut_short;
        let before = first.as_ref().map_or(0, |first| paths_of(first).len());
        let all = match first {
            Some(first) => join(&mut walk, first),
            None => paths_of(&walk).len(),
        };
        stops.push(stop("whole", &walk, whole, accepted, all - before.min(all)));
        Ok(Walked {
            is_complete,
            ..self.walked(walk, stops)
        })
    }

    /// The answer of the last stop, with what all of them cost.
    fn walked(&self, walk: Walk, stops: Vec<StopMade<'static>>) -> Walked {
        let (answer, mut made) = described(walk, How::InPlace);
        let made_ones = || stops.iter().filter(|stop| stop.ended != NOT_MADE);
        let longest = made_ones().max_by(|a, b| a.pause_ms.total_cmp(&b.pause_ms));
        if let Some(longest) = longest {
            made.pause_ms = longest.pause_ms;
            made.predicted_pause_ms = longest.predicted_ms;
            made.most_predicted_pause_ms = longest.predicted_ms;
        }
        made.references = made_ones().map(|stop| stop.references).sum();
        made.one_stop_because = self.one_stop.map(|why| why.to_string().into());
        made.stops = stops;
        Walked {
            answer,
            made,
            is_complete: true,
        }
    }
}

/// How a stop ended.
const DONE: &str = "done";
const GIVEN_UP: &str = "given-up";
const NOT_MADE: &str = "not-made";

/// The step that follows a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing: all was found.
    Done,
    /// The whole heap.
    Whole,
    /// Nothing: the second stop would be longer than what is accepted.
    Leave,
}

impl Next {
    fn after(missing: usize, whole: Duration, accepted: Duration) -> Next {
        match missing {
            0 => Next::Done,
            _ if whole <= accepted => Next::Whole,
            _ => Next::Leave,
        }
    }
}

fn predicted(bytes: u64, seconds_per_gib: f64) -> Duration {
    let gib = bytes as f64 / (1u64 << 30) as f64;
    Duration::from_secs_f64(gib * seconds_per_gib).max(LEAST)
}

/// How long the whole heap takes, after a slice was walked. Its speed counts if it was of some size and went to its end.
fn after(slice: &Walk, used_bytes: u64, before: Duration) -> Duration {
    if slice.bytes < SPEED_BYTES || slice.is_cut_short {
        return before;
    }
    let of_slice = slice.pause.as_secs_f64() * used_bytes as f64 / slice.bytes as f64;
    Duration::from_secs_f64(of_slice * SLOWER).max(LEAST)
}

fn paths_of(walk: &Walk) -> &[Path] {
    match &walk.answer {
        Answer::Paths(paths) => paths,
        Answer::Held(_) => &[],
    }
}

/// Adds to the paths of the whole walk those of the slice whose targets it has not reached: it may have been given up.
/// Returns how many paths there are.
fn join(whole: &mut Walk, slice: Walk) -> usize {
    let (Answer::Paths(all), Answer::Paths(first)) = (&mut whole.answer, slice.answer) else {
        return 0;
    };
    let reached: HashSet<i64> = all.iter().map(|path| path.target_tag).collect();
    let only_there = |path: &Path| !reached.contains(&path.target_tag);
    all.extend(first.into_iter().filter(only_there));
    all.len()
}

fn stop(
    of: &'static str,
    walk: &Walk,
    predicted: Duration,
    accepted: Duration,
    found: usize,
) -> StopMade<'static> {
    StopMade {
        of: of.into(),
        ended: if walk.is_cut_short { GIVEN_UP } else { DONE }.into(),
        predicted_ms: milliseconds(predicted),
        accepted_ms: milliseconds(accepted),
        pause_ms: milliseconds(walk.pause),
        references: walk.references,
        found: found as u64,
    }
}

fn not_made(predicted: Duration, accepted: Duration) -> StopMade<'static> {
    StopMade {
        of: "whole".into(),
        ended: NOT_MADE.into(),
        predicted_ms: milliseconds(predicted),
        accepted_ms: milliseconds(accepted),
        ..StopMade::default()
    }
}

/// The live bytes of some accounts, and of all.
fn live_bytes(ground: &Ground, accounts: &[Arc<str>]) -> (u64, u64) {
    let names = ground.core.directory().accounts_of_purses();
    let (mut own, mut all) = (0, 0);
    ground.core.ledger.scan(|record| {
        if record.survived {
            all += record.live.bytes;
            let account = names.get(&record.payer);
            if account.is_some_and(|account| accounts.contains(account)) {
                own += record.live.bytes;
            }
        }
    });
    (own, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known = Known {
        release: 21,
        roots: 40,
        own_bytes: 30 << 20,
        all_bytes: 300 << 20,
    };

    fn walk(pause_ms: u64, bytes: u64, reached: &[i64]) -> Walk {
        let path = |&target_tag: &i64| Path {
            target_tag,
            class_tag: pause_ms as i64,
            root: None,
            steps: Vec::new(),
            is_cut: false,
        };
        Walk {
            answer: Answer::Paths(reached.iter().map(path).collect()),
            pause: Duration::from_millis(pause_ms),
            fork: Duration::ZERO,
            predicted_pause: Duration::ZERO,
            most_predicted_pause: Duration::ZERO,
            processor_share: None,
            references: 1,
            objects: 1,
            bytes,
            is_cut_short: false,
        }
    }

    #[test]
    fn a_slice_comes_first_where_it_can_help_and_is_given_up_cheaply() {
        assert_eq!(KNOWN.one_stop(), None);
        let cases = [
            (
                Known {
                    release: 20,
                    ..KNOWN
                },
                OneStop::Release,
            ),
            (Known { roots: 0, ..KNOWN }, OneStop::Nobody),
            (
                Known {
                    roots: MAX_SLICE_ROOTS + 1,
                    ..KNOWN
                },
                OneStop::TooMany,
            ),
            (
                Known {
                    own_bytes: 151 << 20,
                    ..KNOWN
                },
                OneStop::Most,
            ),
        ];
        for (known, expected) in cases {
            assert_eq!(known.one_stop(), Some(expected), "{known:?}");
        }
        let half = Known {
            own_bytes: 150 << 20,
            ..KNOWN
        };
        assert_eq!(half.one_stop(), None);
    }

    #[test]
    fn the_rest_follows_only_if_something_is_missing_and_its_pause_is_accepted() {
        let second = Duration::from_secs(1);
        assert_eq!(Next::after(0, 9 * second, second), Next::Done);
        assert_eq!(Next::after(1, second, second), Next::Whole);
        let longer = second + Duration::from_millis(1);
        assert_eq!(Next::after(1, longer, second), Next::Leave);
    }

    #[test]
    fn the_rest_is_predicted_by_the_speed_of_the_slice_unless_that_says_nothing() {
        let used = 300 << 20;
        let before = predicted(used, SECONDS_PER_GIB_ZGC);
        let tenth = walk(100, 30 << 20, &[]);
        assert_eq!(after(&tenth, used, before), Duration::from_secs(2));
        let small = walk(100, SPEED_BYTES - 1, &[]);
        assert_eq!(after(&small, used, before), before);
        let given_up = Walk {
            is_cut_short: true,
            ..walk(100, 30 << 20, &[])
        };
        assert_eq!(after(&given_up, used, before), before);
        assert_eq!(predicted(0, SECONDS_PER_GIB), LEAST);
    }

    #[test]
    fn the_whole_walk_speaks_for_what_both_have_reached() {
        let mut whole = walk(2, 0, &[7, 9]);
        assert_eq!(join(&mut whole, walk(1, 0, &[7, 8])), 3);
        let found: Vec<(i64, i64)> = (paths_of(&whole).iter())
            .map(|path| (path.target_tag, path.class_tag))
            .collect();
        assert_eq!(found, [(7, 2), (9, 2), (8, 1)]);
    }
}
