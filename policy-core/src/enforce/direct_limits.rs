//! Limits on the native memory of accounts: direct buffers and what else Java code takes off the heap, together.
//!
//! The bytes of an account are known to the byte ([`crate::native_memory`]). But a direct buffer that nobody refers to any more
//! is given back only when a collection has found it and the JDK's cleaner has run. So
//!
//! # Rules
//! 1. An account that has more than its limit is *suspect*: a covering collection is wanted. In mode `enforce` threads that
//!    ask for more wait for the verdict meanwhile, if they may be held ([`crate::native_memory::wait`]), and not while the
//!    budget of evidence allows none within `SOON`. Their blocks are given.
//! 2. When one that began afterwards has ended, the cleaner has time: until the least that the account has had since then
//!    was the same for `SETTLES`, at most `LONGEST`. If that is within the limit, the account is open again: the rest is
//!    garbage of later. Otherwise it is *over*. The least is noted at each block that is given back, not by looks.
//! 3. Of an account that is over each block beyond the limit is refused ([`crate::native_memory::gates`]): the JDK throws
//!    its own `OutOfMemoryError`. In mode `observe` it is given, and counted.
//! 4. While blocks are refused, a covering collection is wanted each `RECHECK`: what was held may have been let go.
//! 5. The account is open again when it has less than its limit by a `ROOM`th of it.
//! 6. The end of a suspicion without a verdict is an *acquittal*: what is above the limit is garbage, or soon given back.
//!    Until `FORGOTTEN` after it nobody waits, and a suspicion is left alone for a pause before a collection is wanted: it
//!    doubles with each acquittal in a row, from `FIRST` on. (With waits, a service that dropped direct buffers of 1 MiB at
//!    full speed had a sixtieth of its pace.)
//!
//! The limit holds for an account with the scopes inside it. It does not depend on how short the heap is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Mode, format_rounded_bytes as size};

use crate::core::Core;
use crate::ledger::{Epoch, PurseId};
use crate::native_memory::gates::Verdict;
use crate::snapshot::Kind;

use super::collection_planner::Need;

/// See rule 2.
const SETTLES: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(5);
/// See rule 1.
const SOON: Duration = Duration::from_secs(1);
/// See rule 4.
const RECHECK: Duration = Duration::from_secs(1);
/// See rule 5.
const ROOM: u64 = 16;
/// See rule 6.
const FORGOTTEN: Duration = Duration::from_secs(60);
const FIRST: Duration = Duration::from_millis(200);
const MAX_DOUBLINGS: u32 = 5;
/// How often to look while the cleaner runs.
const LOOK: Duration = Duration::from_millis(20);
/// The shortest time between two lines of the log about one account.
const TOLD: Duration = Duration::from_secs(60);

/// How an account stands at one look.
#[derive(Debug, Clone, Copy)]
struct Seen {
    used_bytes: u64,
    /// The least that it has had since the latest covering collection that was wanted; as much as it has now while that is
    /// still to come.
    lowest_bytes: u64,
    limit_bytes: u64,
    /// Blocks were refused, or would have been, since the look before.
    is_refused: bool,
    epoch: Epoch,
    /// The youngest epoch of which a collection of old memory has proved the survivors.
    covered: Option<Epoch>,
    now: Instant,
}

/// The time that the cleaner has after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settling {
    begun: Instant,
    lowest_bytes: u64,
    /// When it was last lower than ever.
    fell: Instant,
}

impl Settling {
    fn begin(seen: Seen) -> Settling {
        Settling {
            begun: seen.now,
            lowest_bytes: seen.lowest_bytes,
            fell: seen.now,
        }
    }

    /// Whether the cleaner has had its time.
    fn look(&mut self, seen: Seen) -> bool {
        if seen.lowest_bytes < self.lowest_bytes {
            self.lowest_bytes = seen.lowest_bytes;
            self.fell = seen.now;
        }
        seen.now.saturating_duration_since(self.fell) >= SETTLES
            || seen.now.saturating_duration_since(self.begun) >= LONGEST
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    Suspect,
    Over,
}

/// All that is known of one account between two looks. Pure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Standing {
    phase: Phase,
    /// A covering collection of this epoch is wanted.
    wanted: Option<Epoch>,
    settling: Option<Settling>,
    /// When the latest collection had left the account over its limit.
    proved: Option<Instant>,
    /// Blocks were refused since then.
    is_refused: bool,
    /// Since when it is suspect.
    suspect_since: Option<Instant>,
    /// How many acquittals came in a row, and when the latest did.
    acquittals: u32,
    acquitted: Option<Instant>,
}

impl Standing {
    fn next(mut self, seen: Seen) -> Standing {
        let room = match self.phase {
            Phase::Over => seen.limit_bytes / ROOM,
            Phase::Open | Phase::Suspect => 0,
        };
        if seen.used_bytes.min(seen.lowest_bytes) <= seen.limit_bytes - room {
            return self.open(seen.now);
        }
        self.is_refused |= seen.is_refused;
        match self.phase {
            Phase::Open => {
                self.phase = Phase::Suspect;
                self.suspect_since = Some(seen.now);
            }
            Phase::Suspect | Phase::Over => {}
        }
        match self.phase {
            Phase::Suspect if self.wanted.is_none() => {
                if self.pause_left(seen.now).is_zero() {
                    self.wanted = Some(seen.epoch);
                }
            }
            Phase::Open | Phase::Suspect => {}
            Phase::Over => {
                let rests = (self.proved)
                    .is_some_and(|then| seen.now.saturating_duration_since(then) < RECHECK);
                if self.is_refused && !rests {
                    self.wanted = self.wanted.or(Some(seen.epoch));
                }
            }
        }
        if self.has_cover(seen.covered) {
            let settling = self.settling.get_or_insert_with(|| Settling::begin(seen));
            if settling.look(seen) {
                self = Standing {
                    phase: Phase::Over,
                    proved: Some(seen.now),
                    ..Standing::default()
                };
            }
        }
        self
    }

    fn open(self, now: Instant) -> Standing {
        let (acquittals, acquitted) = match self.phase {
            Phase::Suspect if self.is_forgotten(now) => (1, Some(now)),
            Phase::Suspect => (self.acquittals + 1, Some(now)),
            Phase::Open => (self.acquittals, self.acquitted),
            Phase::Over => (0, None),
        };
        Standing {
            acquittals: acquittals.min(MAX_DOUBLINGS + 1),
            acquitted,
            ..Standing::default()
        }
    }

    /// Whether no acquittal counts any more. Then threads wait for the verdict.
    fn is_forgotten(&self, now: Instant) -> bool {
        (self.acquitted).is_none_or(|then| now.saturating_duration_since(then) >= FORGOTTEN)
    }

    /// How long the suspicion is left alone from now on.
    fn pause_left(&self, now: Instant) -> Duration {
        if self.is_forgotten(now) {
            return Duration::ZERO;
        }
        let pause = FIRST * (1 << self.acquittals.saturating_sub(1).min(MAX_DOUBLINGS));
        let since = self.suspect_since.unwrap_or(now);
        (since + pause).saturating_duration_since(now)
    }

    /// Whether the collection that is wanted has ended.
    fn has_cover(&self, covered: Option<Epoch>) -> bool {
        self.wanted.is_some() && covered >= self.wanted
    }

    fn need(&self) -> Need {
        match self.wanted.is_some() && self.settling.is_none() {
            true => Need::Covering,
            false => Need::None,
        }
    }

    /// When to look again at the latest.
    fn again(&self, now: Instant) -> Duration {
        match (self.settling, self.phase, self.wanted) {
            (Some(_), ..) => LOOK,
            (None, Phase::Suspect, None) => self.pause_left(now).max(LOOK),
            _ => RECHECK,
        }
    }
}

/// An account that has a limit.
#[derive(Debug)]
struct Limited {
    account: Arc<str>,
    gate: u32,
    purses: Vec<PurseId>,
    limit_bytes: u64,
    standing: Standing,
    told: Option<Instant>,
}

/// The accounts that have a limit on native memory. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct DirectLimits {
    version: u64,
    enforced: bool,
    limited: Vec<Limited>,
}

impl DirectLimits {
    /// Looks at all accounts once. Returns the evidence that they need, and when to look again at the latest.
    /// `until_allowed`: for how long the budget of evidence allows none.
    pub fn turn(&mut self, core: &Core, now: Instant, until_allowed: Duration) -> (Need, Duration) {
        self.read_directory(core);
        let is_soon = until_allowed <= SOON;
        let (mut need, mut again) = (Need::None, Duration::MAX);
        let epochs = core.ledger.epochs();
        let (epoch, covered) = (epochs.current(), epochs.covered());
        let memory = &core.native_memory;
        for limited in &mut self.limited {
            let beyond = memory.gates.take_beyond(limited.gate);
            core.usages.refused(&limited.account, beyond);
            let used = |purse: &PurseId| memory.used_by(*purse);
            let used_bytes = (limited.purses.iter().map(used)).fold(0, u64::saturating_add);
            let before = limited.standing;
            let has_cover = before.has_cover(covered);
            if has_cover && before.settling.is_none() {
                limited
                    .purses
                    .iter()
                    .for_each(|purse| memory.note_lowest(*purse));
            }
            let lowest = |purse: &PurseId| memory.lowest_of(*purse);
            let lowest_bytes = (limited.purses.iter().map(lowest)).fold(0, u64::saturating_add);
            limited.standing = before.next(Seen {
                used_bytes,
                lowest_bytes: if has_cover { lowest_bytes } else { used_bytes },
                limit_bytes: limited.limit_bytes,
                is_refused: beyond.refused + beyond.observed > 0,
                epoch,
                covered,
                now,
            });
            let is_over = limited.standing.phase == Phase::Over;
            let verdict = match limited.standing.phase {
                _ if core.has_failed() => Verdict::Given,
                Phase::Over if self.enforced => Verdict::Refused,
                Phase::Over => Verdict::Observed,
                Phase::Suspect
                    if self.enforced
                        && (is_soon || has_cover)
                        && limited.standing.is_forgotten(now) =>
                {
                    Verdict::Awaited
                }
                Phase::Suspect | Phase::Open => Verdict::Given,
            };
            memory.gates.decide(limited.gate, verdict);
            if is_over != (before.phase == Phase::Over) {
                limited.tell(is_over, used_bytes, self.enforced, now);
            }
            // Whoever takes the account across its limit wakes the enforcer.
            let left = limited.limit_bytes.saturating_sub(used_bytes);
            for purse in &limited.purses {
                memory.wake_above(*purse, memory.used_by(*purse).saturating_add(left).max(1));
            }
            need = need.max(limited.standing.need());
            again = again.min(limited.standing.again(now));
        }
        (need, again)
    }

    /// Reads the accounts again if anything about them has changed.
    fn read_directory(&mut self, core: &Core) {
        let directory = core.directory();
        if directory.version() == self.version {
            return;
        }
        self.version = directory.version();
        let policy = directory.policy().clone();
        let enforced = policy.enforcement.mode == Mode::Enforce;
        let max_heap = core.heap.max_bytes();
        let found: Vec<Limited> = (directory.accounts())
            .filter_map(|(account, entry)| {
                // The callers of a library pay.
                let rule = (entry.kind != Kind::Library)
                    .then(|| policy.accounts.get(entry.rule?))
                    .flatten()?;
                Some(Limited {
                    account: account.clone(),
                    gate: u32::from(directory.standing_for(entry)?.get()),
                    purses: entry.tree().collect(),
                    limit_bytes: rule.direct_limit.resolve(max_heap)?,
                    standing: Standing::default(),
                    told: None,
                })
            })
            .collect();
        drop(directory);
        self.enforced = enforced;
        self.adopt(core, found);
    }

    /// Takes over a new list. An account that was there before keeps its standing, unless its limit has changed.
    fn adopt(&mut self, core: &Core, mut found: Vec<Limited>) {
        let memory = &core.native_memory;
        let mut before: HashMap<Arc<str>, Limited> = HashMap::new();
        for limited in self.limited.drain(..) {
            core.usages
                .refused(&limited.account, memory.gates.take_beyond(limited.gate));
            memory.gates.close(limited.gate);
            for purse in &limited.purses {
                memory.wake_above(*purse, 0);
            }
            before.insert(limited.account.clone(), limited);
        }
        for limited in &mut found {
            memory
                .gates
                .assign(limited.gate, &limited.purses, limited.limit_bytes);
            if let Some(old) = before.remove(&limited.account) {
                limited.told = old.told;
                if old.limit_bytes == limited.limit_bytes {
                    limited.standing = old.standing;
                }
            }
        }
        let limits = found
            .iter()
            .map(|limited| (limited.account.clone(), limited.limit_bytes));
        core.usages.limit_direct(limits);
        self.limited = found;
    }
}

impl Limited {
    fn tell(&mut self, is_over: bool, used_bytes: u64, enforced: bool, now: Instant) {
        if (self.told).is_some_and(|then| now.saturating_duration_since(then) < TOLD) {
            return;
        }
        self.told = Some(now);
        let (account, used, limit) = (&self.account, size(used_bytes), size(self.limit_bytes));
        match (is_over, enforced) {
            (true, true) => tracing::warn!(
                "account {account} holds {used} off the heap, above its direct-limit of {limit}: what it asks for beyond that is refused by an OutOfMemoryError"
            ),
            (true, false) => tracing::warn!(
                "account {account} holds {used} off the heap, above its direct-limit of {limit}: in mode enforce what it asks for beyond that would be refused"
            ),
            (false, _) => tracing::info!(
                "account {account} holds {used} off the heap, within its direct-limit of {limit} again"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = 1_600;

    /// An account in a simulated JVM, which looks at it every 10 ms.
    struct World {
        now: Instant,
        standing: Standing,
        epoch: u32,
        covered: Option<Epoch>,
    }

    impl World {
        fn new() -> World {
            World {
                now: Instant::now(),
                standing: Standing::default(),
                epoch: 5,
                covered: Some(Epoch::new(4)),
            }
        }

        fn look(&mut self, used_bytes: u64, lowest_bytes: u64, is_refused: bool) -> Phase {
            self.now += Duration::from_millis(10);
            self.standing = self.standing.next(Seen {
                used_bytes,
                lowest_bytes,
                limit_bytes: LIMIT,
                is_refused,
                epoch: Epoch::new(self.epoch),
                covered: self.covered,
                now: self.now,
            });
            self.standing.phase
        }

        fn looks(&mut self, ms: u64, used_bytes: u64) -> Phase {
            for _ in 0..ms / 10 {
                self.look(used_bytes, used_bytes, false);
            }
            self.standing.phase
        }

        /// A covering collection ends that began just now.
        fn collect(&mut self) {
            self.covered = Some(Epoch::new(self.epoch));
            self.epoch += 1;
        }

        fn over() -> World {
            let mut world = World::new();
            world.looks(10, LIMIT + 1);
            world.collect();
            assert_eq!(world.looks(600, LIMIT + 1), Phase::Over);
            world
        }
    }

    #[test]
    fn an_account_is_over_when_a_collection_and_the_cleaner_have_left_it_more_than_its_limit() {
        let mut world = World::new();
        assert_eq!(world.looks(5_000, LIMIT), Phase::Open);
        assert_eq!(world.standing.need(), Need::None);
        assert_eq!(world.looks(60_000, LIMIT + 1), Phase::Suspect);
        assert_eq!(
            world.standing.need(),
            Need::Covering,
            "for as long as it takes"
        );
        world.collect();
        assert_eq!(world.looks(290, LIMIT + 1), Phase::Suspect);
        assert_eq!(world.standing.need(), Need::None);
        assert_eq!(world.looks(30, LIMIT + 1), Phase::Over);
    }

    #[test]
    fn a_collection_that_had_begun_before_proves_nothing() {
        let mut world = World::new();
        world.looks(10, LIMIT + 1);
        world.covered = Some(Epoch::new(world.epoch - 1));
        assert_eq!(world.looks(60_000, LIMIT + 1), Phase::Suspect);
    }

    #[test]
    fn garbage_that_is_replaced_as_fast_as_it_is_cleaned_convicts_nobody() {
        let mut world = World::new();
        for _ in 0..100 {
            world.looks(1_000, LIMIT * 3);
            world.collect();
            world.look(LIMIT * 3, LIMIT * 3, false);
            // No look sees it, but it was low in between.
            assert_eq!(world.look(LIMIT * 3, LIMIT / 2, false), Phase::Open);
        }
    }

    #[test]
    fn an_account_that_was_acquitted_is_left_alone_for_longer_and_longer() {
        let mut world = World::new();
        let mut pauses = Vec::new();
        let mut acquit = |world: &mut World| {
            let mut ms = 0;
            while world.standing.need() == Need::None {
                world.look(LIMIT * 3, LIMIT * 3, false);
                ms += 10;
            }
            pauses.push(ms);
            world.collect();
            assert_eq!(world.look(LIMIT * 3, LIMIT, false), Phase::Open);
            assert!(!world.standing.is_forgotten(world.now));
        };
        for _ in 0..8 {
            acquit(&mut world);
        }
        world.looks(59_000, LIMIT);
        acquit(&mut world);
        world.looks(60_000, LIMIT);
        assert!(world.standing.is_forgotten(world.now));
        acquit(&mut world);
        acquit(&mut world);
        let long = 200 * 32 + 10;
        // The last acquittal is forgotten within the pause of the ninth.
        let expected = [10, 210, 410, 810, 1_610, 3_210, long, long, 1_000, 10, 210];
        assert_eq!(pauses, expected);
    }

    #[test]
    fn a_cleaner_that_is_at_work_is_waited_for_but_not_for_ever() {
        let mut world = World::new();
        world.looks(10, LIMIT * 9);
        world.collect();
        for less in 0..49 {
            assert_eq!(world.looks(100, LIMIT * 9 - less), Phase::Suspect);
        }
        assert_eq!(world.looks(200, LIMIT * 9 - 49), Phase::Over);
    }

    #[test]
    fn while_blocks_are_refused_collections_look_for_what_was_let_go() {
        let mut world = World::over();
        assert_eq!(world.looks(60_000, LIMIT + 1), Phase::Over);
        assert_eq!(world.standing.need(), Need::None, "nobody asks for more");
        world.look(LIMIT + 1, LIMIT + 1, true);
        assert_eq!(world.standing.need(), Need::Covering);
        world.collect();
        // It was let go, and is cleaned away.
        world.look(LIMIT + 1, LIMIT + 1, true);
        assert_eq!(world.look(LIMIT / 2, LIMIT / 2, true), Phase::Open);
    }

    #[test]
    fn collections_for_an_account_that_stays_over_rest() {
        let mut world = World::over();
        let mut wanted = 0;
        for _ in 0..1_000 {
            world.look(LIMIT + 1, LIMIT + 1, true);
            if world.standing.need() == Need::Covering {
                wanted += 1;
                world.collect();
            }
        }
        // One in each 1.3 s.
        assert!((7..=8).contains(&wanted), "{wanted}");
        assert_eq!(world.standing.phase, Phase::Over);
    }

    #[test]
    fn an_account_that_wavers_about_its_limit_stays_over() {
        let mut world = World::over();
        assert_eq!(world.looks(1_000, LIMIT), Phase::Over);
        assert_eq!(world.looks(1_000, LIMIT - LIMIT / ROOM + 1), Phase::Over);
        assert_eq!(world.looks(10, LIMIT - LIMIT / ROOM), Phase::Open);
    }

    proptest! {
        /// Whatever comes in whatever order: nobody is over without a covering collection that began while it was above
        /// its limit, and whoever is at or below fifteen sixteenths of it is not over.
        #[test]
        fn no_account_is_over_without_proof(
            steps in prop::collection::vec((0..LIMIT * 2, any::<bool>(), prop::bool::weighted(0.1)), 1..300)
        ) {
            let mut world = World::new();
            let mut above_since: Option<u32> = None;
            let mut before = Phase::Open;
            for (used, is_refused, is_collected) in steps {
                if is_collected {
                    world.collect();
                }
                let phase = world.look(used, used, is_refused);
                if used <= LIMIT - LIMIT / ROOM {
                    prop_assert_eq!(phase, Phase::Open);
                }
                if phase == Phase::Open {
                    above_since = None;
                }
                if phase == Phase::Suspect && above_since.is_none() {
                    above_since = Some(world.epoch);
                }
                if phase == Phase::Over && before != Phase::Over {
                    let since = above_since.expect("it was suspect");
                    prop_assert!(world.covered >= Some(Epoch::new(since)));
                }
                before = phase;
            }
        }
    }
}
