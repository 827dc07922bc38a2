//! Evaluates all accounts that have limits, once per turn of the enforcer: reads their charges,
//! reads the records if a collection has proved something new, and checks each account
//! ([`super::account_check`]). Knows the ledger, the gates and the statuses, no directory and no JVM.
//!
//! A program that makes garbage at full speed is collected a hundred times a second, and each collection proves
//! something new. A pass over the records is followed by a pause of `PAUSE_PER_RECORD` for each record that it read,
//! which holds its cost to a four-hundredth of a processor, if all that is near its limit is known to make garbage.
//! There is no pause in duress, nor after a covering collection: a verdict waits for that one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::events;
use crate::ledger::{Epoch, Ledger, PurseId};
use crate::sampling::governor::Wants;
use crate::sampling::thinning_error::Found;
use crate::uncertainty::{Survivors, widened};

use super::account_check::{AccountCheck, CheckContext, LimitedAccount};
use super::collection_planner::Need;
use super::duress::{Beyond, Figures, victims};
use super::enforcement::Enforcement;
use super::enforcement_log::EnforcementLog;
use super::gate::Gates;
use super::limit_status::{Assigned, LimitStatus, LimitStatuses};
use super::second_look::Seen;
use super::state::{Estimate, Phase, Proof};

/// A record is read in about 50 ns.
const PAUSE_PER_RECORD: Duration = Duration::from_micros(20);
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// An account that grows is close to its limit from this share of it on: at a tenth of a limit in a second there is time
/// for two looks of G1's at its flags.
const CLOSE: f64 = 0.75;

/// Access to the statuses, one short step at a time: so that no reader waits while the enforcer
/// passes over the records.
pub trait StatusAccess {
    /// Runs one step under the lock.
    fn with<T>(&mut self, step: impl FnOnce(&mut LimitStatuses) -> T) -> T;
}

impl StatusAccess for LimitStatuses {
    fn with<T>(&mut self, step: impl FnOnce(&mut LimitStatuses) -> T) -> T {
        step(self)
    }
}

impl StatusAccess for &Enforcement {
    fn with<T>(&mut self, step: impl FnOnce(&mut LimitStatuses) -> T) -> T {
        step(&mut self.statuses())
    }
}

/// The accounts that have limits, and what is known of them between two turns. On the enforcer's
/// thread.
#[derive(Default)]
pub struct Evaluation {
    limited: Vec<LimitedAccount>,
    /// The boundaries at the last pass over the records.
    scanned: (Option<Epoch>, Option<Epoch>),
    /// Until then only a covering collection, or duress, lets the records be read again.
    scan_again: Option<Instant>,
    /// The reasons why accounts want finer samples.
    wants: Wants,
    /// The boundary at the latest turn.
    collected: Option<Epoch>,
    /// The covering proof that was there when duress began, or when it last chose one account more, and how many more
    /// it chose.
    pressed: Option<(Option<Epoch>, usize)>,
    /// The bytes that the suspects can take until the next evidence.
    wanted_bytes: u64,
    /// Whether the figure of an open account is to be looked at again.
    looks_again: bool,
    /// Whether an account grows and has not far to go to its limit.
    is_any_close: bool,
    /// The log's rate limits.
    pub log: EnforcementLog,
}

impl Evaluation {
    /// The accounts that have limits.
    pub fn limited(&self) -> &[LimitedAccount] {
        &self.limited
    }

    /// Returns the reasons why accounts want finer samples, as of the latest turn.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Returns the bytes that the accounts which are suspect, or over and not refused, can take until the next
    /// evidence, as of the latest turn.
    pub fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes
    }

    /// Whether a covering collection is wanted for the figure of an account that is not suspect, as of the latest turn.
    pub fn looks_again(&self) -> bool {
        self.looks_again
    }

    /// Whether an account grows towards its limit and is close to it, as of the latest turn: its verdict will need a
    /// covering collection soon, and the account grows on for as long as that is in coming.
    pub fn is_any_close(&self) -> bool {
        self.is_any_close
    }

    /// Chooses whom duress refuses first, by what each was found to hold.
    fn choose_victims(&mut self, context: &CheckContext<'_>, statuses: &mut LimitStatuses) {
        let Figures {
            is_on,
            free_bytes,
            short_below_bytes,
        } = context.duress;
        let covered = context.ledger.epochs().covered();
        self.pressed = match self.pressed {
            _ if !is_on => None,
            None => Some((covered, 0)),
            Some((before, more)) if covered > before => Some((covered, more + 1)),
            same => same,
        };
        let mut beyond = Vec::new();
        for limited in &self.limited {
            let status = statuses.status_mut(&limited.account);
            status.is_victim = false;
            if let (true, Some(excess_bytes)) = (is_on, status.excess_bytes()) {
                beyond.push((
                    &limited.account,
                    Beyond {
                        excess_bytes,
                        priority: limited.priority,
                    },
                ));
            }
        }
        let accounts: Vec<Beyond> = beyond.iter().map(|(_, beyond)| *beyond).collect();
        let shortage_bytes = short_below_bytes.saturating_sub(free_bytes);
        let more = self.pressed.map_or(0, |(_, more)| more);
        for index in victims(&accounts, shortage_bytes, more) {
            statuses.status_mut(beyond[index].0).is_victim = true;
        }
    }

    /// Takes over a new list of accounts that have limits: closes the gates that have another
    /// account now, then calls `publish`, which tells threads which purse has which gate. Returns
    /// the numbers of the gates that have no account any more.
    pub fn adopt(
        &mut self,
        limited: Vec<LimitedAccount>,
        ledger: &Ledger,
        statuses: &mut LimitStatuses,
        gates: &Gates,
        publish: impl FnOnce(),
    ) -> Vec<u32> {
        let assigned = limited.iter().map(|l| (l.gate, l.account.clone()));
        let Assigned {
            closed,
            mut changed,
        } = statuses.assign(gates, assigned);
        for limited in &limited {
            if statuses
                .status_mut(&limited.account)
                .set_purses(ledger, &limited.purses)
            {
                changed.push(limited.gate);
            }
        }
        for &number in closed.iter().chain(&changed) {
            if let Some(gate) = gates.get(number) {
                gate.close();
            }
        }
        publish();
        self.limited = limited;
        closed
    }

    /// Checks all accounts once. Returns which evidence they need, and when to look again at the
    /// latest. Calls `publish` for every account that has a limit, with the limit in bytes, so that
    /// it writes what a refusal would say.
    pub fn turn(
        &mut self,
        context: &CheckContext<'_>,
        access: &mut impl StatusAccess,
        publish: &mut dyn FnMut(&LimitedAccount, u64, &LimitStatus),
    ) -> (Need, Duration) {
        let epochs = context.ledger.epochs();
        let epoch = epochs.current();
        let mut checks: Vec<AccountCheck> =
            (self.limited.iter().map(|l| AccountCheck::new(context, l))).collect();
        // Only the enforcer writes statuses: they stay the same until the checks below.
        let mut makes_garbage = true;
        let known: Vec<bool> = access.with(|statuses| {
            let mut known = Vec::new();
            for (limited, check) in self.limited.iter().zip(&mut checks) {
                let status = statuses.status_mut(&limited.account);
                check.near |= status.phase != Phase::Open || status.above_soft;
                check.state_error(context, limited, status);
                if check.near {
                    (status.survival).begin(check.charged.bytes, check.allocated_bytes);
                }
                known.push(status.survived.upto.is_some());
                makes_garbage &= !check.near || status.makes_garbage(context.now);
            }
            known
        });
        let gates_of = |wanted: fn(&AccountCheck) -> bool| {
            let checked = self.limited.iter().zip(&checks);
            let wanted = checked.filter(move |(_, check)| wanted(check));
            wanted.map(|(limited, _)| limited.gate)
        };
        let near = gates_of(|check| check.near);
        (context.gates).watch(near.chain(gates_of(|check| check.is_watched && !check.near)));
        let boundaries = (epochs.boundary(), epochs.covered());
        let is_any_new = checks
            .iter()
            .zip(&known)
            .any(|(check, known)| check.near && !known);
        let is_wanted = checks.iter().any(|check| check.near)
            && boundaries.0.is_some()
            && (boundaries != self.scanned || is_any_new);
        let pause = self.scan_again.map_or(Duration::ZERO, |then| {
            then.saturating_duration_since(context.now)
        });
        let may_wait =
            makes_garbage && boundaries.1 == self.scanned.1 && !is_any_new && !context.duress.is_on;
        let waits = is_wanted && may_wait && !pause.is_zero();
        let sums = (is_wanted && !waits).then(|| self.scan(context, &mut checks, boundaries));
        let is_collected = self.collected != boundaries.0;
        self.collected = boundaries.0;
        let mut need = Need::None;
        let mut again = if waits { pause } else { Duration::from_secs(1) };
        let (mut is_any_asked, mut wants) = (false, Wants::default());
        let (mut wanted_bytes, mut looks_again, mut is_any_close) = (0_u64, false, false);
        access.with(|statuses| {
            if let Some(sums) = sums {
                self.prove(context, statuses, &checks, boundaries, sums);
            }
            self.choose_victims(context, statuses);
            for (limited, check) in self.limited.iter().zip(&checks) {
                let status = statuses.status_mut(&limited.account);
                let (needed, soon) =
                    check.judge(context, epoch, limited, status, &mut self.log, publish);
                need = need.max(needed);
                again = again.min(soon);
                looks_again |= status.second_look.turn(Seen {
                    is_open: status.phase == Phase::Open,
                    is_above: (limited.limit_bytes)
                        .is_some_and(|limit| check.charged.bytes > limit),
                    epoch,
                    covered: boundaries.1,
                    now: context.now,
                });
                if let Some(limit_bytes) = limited.limit_bytes {
                    let gate = context.gates.get(limited.gate);
                    if is_collected
                        && let Some((gate, boundary)) = gate.zip(boundaries.0)
                        && let Some(left) = check.left_after(context, gate, boundary)
                    {
                        (status.filling).collected(left, limit_bytes, context.now);
                    }
                    let fills = !matches!(status.phase, Phase::Over { .. })
                        && status.filling.is_seen(context.now);
                    wants.is_any_filling |= fills;
                    is_any_close |=
                        fills && check.charged.bytes as f64 >= limit_bytes as f64 * CLOSE;
                }
                is_any_asked |= context.enforced && status.is_shut();
                wants.is_any_refused |= context.enforced && status.is_refused();
                wanted_bytes = wanted_bytes.saturating_add(status.wanted_bytes(context.now));
            }
        });
        context.gates.set_any_asked(is_any_asked);
        self.wants = wants;
        self.wanted_bytes = wanted_bytes;
        self.looks_again = looks_again;
        self.is_any_close = is_any_close;
        (need, again)
    }

    /// Passes over the records once, for the accounts that are near their limits. Returns for each
    /// account what survived any collection, and what survived a covering one, with their errors as reports state
    /// them.
    fn scan(
        &mut self,
        context: &CheckContext<'_>,
        checks: &mut [AccountCheck],
        boundaries: (Option<Epoch>, Option<Epoch>),
    ) -> Vec<Survived> {
        let _timing = events::reading_for_verdict();
        let since = self.scanned.0;
        let (survived_upto, covered_upto) = boundaries;
        // The purse of a scope is in at most two accounts: its own and its service's.
        let mut places: HashMap<PurseId, Vec<usize>> = HashMap::new();
        for (place, (limited, _)) in (self.limited.iter().zip(checks.iter()))
            .enumerate()
            .filter(|(_, (_, check))| check.near)
        {
            for &purse in &limited.purses {
                places.entry(purse).or_default().push(place);
            }
        }
        let mut sums = vec![Survived::default(); checks.len()];
        let mut records = 0;
        let used_bytes = context.used_after_gc_bytes();
        let survivors = Survivors::of(context.ledger, used_bytes, |record| {
            records += 1;
            let Some(places) = places.get(&record.payer) else {
                return;
            };
            let born = Some(record.birth);
            let (bytes, variance) = (record.charge.bytes, record.charge.variance);
            for &place in places {
                if born <= survived_upto {
                    sums[place].any.add(bytes, variance);
                    if born > since {
                        checks[place].cohort.add(bytes, variance);
                    }
                }
                if born <= covered_upto {
                    sums[place].covering.add(bytes, variance);
                }
            }
        });
        let pause = PAUSE_PER_RECORD.saturating_mul(records);
        self.scan_again = Some(context.now + pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
        for ((limited, check), sum) in self.limited.iter().zip(checks.iter()).zip(&mut sums) {
            if check.near {
                sum.state_errors(context.ledger, &survivors, &limited.purses);
            }
        }
        sums
    }

    /// Writes the results of a pass over the records into the statuses.
    fn prove(
        &mut self,
        context: &CheckContext<'_>,
        statuses: &mut LimitStatuses,
        checks: &[AccountCheck],
        boundaries: (Option<Epoch>, Option<Epoch>),
        sums: Vec<Survived>,
    ) {
        let since = self.scanned.0;
        let (survived_upto, covered_upto) = boundaries;
        let interval = context.interval_bytes();
        for (place, sum) in sums.into_iter().enumerate() {
            if !checks[place].near {
                continue;
            }
            let status = statuses.status_mut(&self.limited[place].account);
            let gate = context.gates.get(self.limited[place].gate);
            if let (Some(gate), Some(since), Some(upto)) = (gate, since, survived_upto)
                && let Some(born) = gate.born_between(since, upto)
            {
                (status.survival).observe(born, checks[place].cohort.bytes, interval);
            }
            status.survived = Proof {
                upto: survived_upto,
                left: sum.any,
            };
            status.covered = Proof {
                upto: covered_upto,
                left: sum.covering,
            };
            status.found = sum.found;
        }
        self.scanned = boundaries;
    }
}

/// The survivors of one account, summed up in a pass over the records.
#[derive(Debug, Clone, Copy, Default)]
struct Survived {
    /// The sum of the records that survived any collection.
    any: Estimate,
    /// The sum of those that survived a covering one.
    covering: Estimate,
    found: Found,
}

impl Survived {
    /// Sets the variances, which are those of the records, to those of the errors that reports state.
    fn state_errors(&mut self, ledger: &Ledger, survivors: &Survivors, purses: &[PurseId]) {
        self.found = survivors.found(purses);
        let of_records = survivors.live(purses).variance;
        let stated = survivors.live_variance(ledger, purses);
        // The objects that were passed over may be of any age, so both sums lack as much of them.
        for sum in [&mut self.any, &mut self.covering] {
            let variance = (sum.variance.saturating_add(stated)).saturating_sub(of_records);
            sum.variance = widened(ledger, variance);
        }
    }
}

#[cfg(test)]
mod tests;
