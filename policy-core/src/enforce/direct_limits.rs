//! Limits on the native memory of accounts: direct buffers and what else Java code takes off the heap, together.
//!
//! The bytes of an account are known ([`crate::native_memory`]). But a direct buffer that nobody refers to any more is given
//! back only when a collection has found it and the JDK's cleaner has run. So
//!
//! # Rules
//! 1. An account that has more than its limit is *suspect*: a covering collection is wanted. In mode `enforce` threads that
//!    ask for more wait for the verdict meanwhile, where that does no harm: until `WAITS` after the suspicion began, and not
//!    while the budget of evidence allows none within `SOON`. Their blocks are given.
//! 2. When one that began afterwards has ended, the cleaner has time, until the least that the account has had was the same
//!    for `SETTLES`. While that goes on falling for `LONGEST`, another collection is wanted. The least counts from when the
//!    collection is wanted, and is noted at each block that is given back. If it is within the limit, the account is open
//!    again: the rest is garbage of later. Otherwise it is *over*, if it has more than its limit also without the direct bytes
//!    that it has taken since then: of those nobody knows yet. (A thread that dropped a gigabyte a second was never seen below
//!    20 MiB.) If not, that counts as an acquittal, but it stays suspect.
//! 3. Of an account that is over each block beyond the limit is refused ([`crate::native_memory::gates`]): the JDK throws
//!    its own `OutOfMemoryError`. In mode `observe` it is given, and counted.
//! 4. While blocks are refused, a covering collection is wanted each `RECHECK` (in mode `observe` each `RECHECK_OBSERVED`): what
//!    was held may have been let go. The account is open again if the least since then is within the limit; and without a
//!    collection when it has less than its limit by a `ROOM`th of it.
//! 5. The end of a suspicion without a verdict is an *acquittal*: what is above the limit is garbage, or soon given back.
//!    Until `FORGOTTEN` after it nobody waits, and a suspicion is left alone for a pause before a collection is wanted, which
//!    is a patient one then: the pause doubles with each acquittal in a row, from `FIRST` on. (With waits, a service that
//!    dropped direct buffers of 1 MiB at full speed had a sixtieth of its pace.)
//!
//! Of several purses of one account the least is the sum of each one's own, which is at most that of the account: an error
//! is an acquittal. The limit holds for an account with the scopes inside it, however short the heap is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Mode, format_rounded_bytes as size};

use crate::core::Core;
use crate::ledger::{Epoch, PurseId};
use crate::native_memory::gates::Verdict;
use crate::snapshot::Kind;

use super::collection_planner::Need;

/// See rule 1. A collection and the JDK's cleaner take less where the machine is not busy.
const WAITS: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(1);
/// See rule 2. The JDK itself gives its cleaner half a second before it throws.
const SETTLES: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);
/// See rule 4.
const RECHECK: Duration = Duration::from_secs(1);
const RECHECK_OBSERVED: Duration = Duration::from_secs(30);
const ROOM: u64 = 16;
/// See rule 5.
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
    /// The least that it has had since a collection was wanted; as much as it has now while none is.
    lowest_bytes: u64,
    limit_bytes: u64,
    /// The direct bytes that it has taken since a collection was wanted.
    taken_bytes: u64,
    /// Blocks were refused, or would have been, since the look before.
    is_refused: bool,
    /// The mode is `enforce`.
    is_enforced: bool,
    epoch: Epoch,
    /// The youngest epoch of which a collection of old memory has proved the survivors.
    covered: Option<Epoch>,
    now: Instant,
}

impl Seen {
    /// Whether what it had before the collection was wanted is more than its limit.
    fn is_proved(&self) -> bool {
        self.used_bytes.saturating_sub(self.taken_bytes) > self.limit_bytes
    }
}

/// The time that the cleaner has after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settling {
    begun: Instant,
    lowest_bytes: u64,
    /// When it was last lower than ever.
    fell: Instant,
}

/// Whether the cleaner has had its time.
enum Cleaned {
    NotYet,
    Yes,
    /// It goes on and on.
    StillAtWork,
}

impl Settling {
    fn begin(seen: Seen) -> Settling {
        Settling {
            begun: seen.now,
            lowest_bytes: seen.lowest_bytes,
            fell: seen.now,
        }
    }

    fn look(&mut self, seen: Seen) -> Cleaned {
        if seen.lowest_bytes < self.lowest_bytes {
            self.lowest_bytes = seen.lowest_bytes;
            self.fell = seen.now;
        }
        if seen.now.saturating_duration_since(self.fell) >= SETTLES {
            Cleaned::Yes
        } else if seen.now.saturating_duration_since(self.begun) >= LONGEST {
            Cleaned::StillAtWork
        } else {
            Cleaned::NotYet
        }
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
        let has_cover = self.wanted.is_some() && seen.covered >= self.wanted;
        let is_within = match self.phase {
            Phase::Over => {
                seen.used_bytes <= seen.limit_bytes - seen.limit_bytes / ROOM
                    || has_cover && seen.lowest_bytes <= seen.limit_bytes
            }
            Phase::Open | Phase::Suspect => {
                seen.used_bytes.min(seen.lowest_bytes) <= seen.limit_bytes
            }
        };
        if is_within {
            return self.open(seen.now);
        }
        self.is_refused |= seen.is_refused;
        if self.phase == Phase::Open {
            self.phase = Phase::Suspect;
            self.suspect_since = Some(seen.now);
        }
        if self.wanted.is_none() {
            self.wanted = self.is_wanting(seen).then_some(seen.epoch);
        } else if has_cover {
            let settling = self.settling.get_or_insert_with(|| Settling::begin(seen));
            match settling.look(seen) {
                Cleaned::NotYet => {}
                Cleaned::Yes if self.phase == Phase::Suspect && !seen.is_proved() => {
                    self = Standing {
                        phase: Phase::Suspect,
                        suspect_since: Some(seen.now),
                        ..self.open(seen.now)
                    };
                }
                Cleaned::Yes => {
                    self = Standing {
                        phase: Phase::Over,
                        proved: Some(seen.now),
                        ..Standing::default()
                    };
                }
                Cleaned::StillAtWork => {
                    self.wanted = Some(seen.epoch);
                    self.settling = None;
                }
            }
        }
        self
    }

    /// Whether a covering collection is to be wanted now.
    fn is_wanting(&self, seen: Seen) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Suspect => self.pause_left(seen.now).is_zero(),
            Phase::Over => {
                let recheck = if seen.is_enforced {
                    RECHECK
                } else {
                    RECHECK_OBSERVED
                };
                let rests = (self.proved)
                    .is_some_and(|then| seen.now.saturating_duration_since(then) < recheck);
                self.is_refused && !rests
            }
        }
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

    /// Whether no acquittal counts any more.
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

    /// For how long threads that ask for more wait from now on; zero if nobody does.
    fn waits_left(&self, now: Instant) -> Duration {
        match (self.phase, self.suspect_since) {
            (Phase::Suspect, Some(since)) if self.is_forgotten(now) => {
                (since + WAITS).saturating_duration_since(now)
            }
            _ => Duration::ZERO,
        }
    }

    fn need(&self) -> Need {
        match self.wanted.is_some() && self.settling.is_none() {
            true => Need::Covering,
            false => Need::None,
        }
    }

    /// Whether what it needs may take long: it was acquitted just now, or nobody is refused.
    fn is_patient(&self, is_enforced: bool, now: Instant) -> bool {
        !is_enforced || self.phase == Phase::Suspect && !self.is_forgotten(now)
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
    /// All direct bytes that it had ever taken when the latest collection was wanted.
    taken_before_bytes: u64,
    /// Whether the log has it over its limit, and since when.
    told: Option<(bool, Instant)>,
}

/// The evidence that the accounts need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// For verdicts that somebody waits for.
    pub need: Need,
    /// Whether a covering collection is wanted that may take long.
    pub is_any_patient: bool,
    /// When to look again at the latest.
    pub again: Duration,
}

/// The accounts that have a limit on native memory. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct DirectLimits {
    version: u64,
    enforced: bool,
    limited: Vec<Limited>,
    said_unseen: bool,
}

impl DirectLimits {
    /// Looks at all accounts once. `until_allowed`: for how long the budget of evidence allows none; `uptime_ms`: the
    /// milliseconds since the agent was made, as threads that wait read them.
    pub fn turn(
        &mut self,
        core: &Core,
        now: Instant,
        until_allowed: Duration,
        uptime_ms: u64,
    ) -> Wanted {
        self.read_directory(core);
        let mut wanted = Wanted {
            need: Need::None,
            is_any_patient: false,
            again: Duration::MAX,
        };
        let enforced = self.enforced;
        for limited in &mut self.limited {
            limited.look(core, enforced, now);
            let standing = &limited.standing;
            let waits_left = match until_allowed <= SOON || standing.settling.is_some() {
                true => standing.waits_left(now),
                false => Duration::ZERO,
            };
            let gates = &core.native_memory.gates;
            gates.set_wait_until_ms(limited.gate, uptime_ms + waits_left.as_millis() as u64);
            let verdict = match standing.phase {
                _ if core.has_failed() => Verdict::Given,
                Phase::Over if enforced => Verdict::Refused,
                Phase::Over => Verdict::Observed,
                Phase::Suspect if enforced && !waits_left.is_zero() => Verdict::Awaited,
                Phase::Suspect | Phase::Open => Verdict::Given,
            };
            gates.decide(limited.gate, verdict);
            if standing.is_patient(enforced, now) {
                wanted.is_any_patient |= standing.need() != Need::None;
            } else {
                wanted.need = wanted.need.max(standing.need());
            }
            wanted.again = wanted.again.min(standing.again(now));
        }
        wanted
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
                    taken_before_bytes: 0,
                    told: None,
                })
            })
            .collect();
        drop(directory);
        self.enforced = enforced;
        if !found.is_empty() && !core.native_memory.is_seen() && !self.said_unseen {
            self.said_unseen = true;
            tracing::warn!(
                "a direct-limit binds nobody in this JVM: native memory is not counted (the agent must be loaded by a start-up flag)"
            );
        }
        self.adopt(core, found);
    }

    /// Takes over a new list. An account that was there before keeps its standing, unless its limit has changed; a gate about
    /// which nothing has changed is left alone.
    fn adopt(&mut self, core: &Core, mut found: Vec<Limited>) {
        let memory = &core.native_memory;
        let mut before: HashMap<Arc<str>, Limited> = HashMap::new();
        for limited in self.limited.drain(..) {
            let beyond = memory.gates.take_beyond(limited.gate);
            core.usages.refused(&limited.account, beyond);
            before.insert(limited.account.clone(), limited);
        }
        let mut fresh = Vec::new();
        for (place, limited) in found.iter_mut().enumerate() {
            let mut is_same = false;
            if let Some(old) = before.get(&limited.account) {
                limited.told = old.told;
                if old.limit_bytes == limited.limit_bytes {
                    limited.standing = old.standing;
                    limited.taken_before_bytes = old.taken_before_bytes;
                    is_same = old.gate == limited.gate && old.purses == limited.purses;
                }
            }
            match is_same {
                true => drop(before.remove(&limited.account)),
                false => fresh.push(place),
            }
        }
        // First those that are closed: a number may have gone from one account to another.
        for old in before.values() {
            memory.gates.close(old.gate);
            for purse in &old.purses {
                memory.wake_above(*purse, 0);
            }
        }
        for place in fresh {
            let limited = &found[place];
            (memory.gates).assign(limited.gate, &limited.purses, limited.limit_bytes);
        }
        let limits = found.iter();
        let limits = limits.map(|limited| (limited.account.clone(), limited.limit_bytes));
        core.usages.limit_direct(limits);
        self.limited = found;
    }
}

impl Limited {
    /// Moves its standing, and tells the log.
    fn look(&mut self, core: &Core, enforced: bool, now: Instant) {
        let memory = &core.native_memory;
        let beyond = memory.gates.take_beyond(self.gate);
        core.usages.refused(&self.account, beyond);
        let sum = |of: &dyn Fn(PurseId) -> u64| {
            let each = self.purses.iter().map(|purse| of(*purse));
            each.fold(0, u64::saturating_add)
        };
        // In this order: what is taken in between does not count as had.
        let used_bytes = sum(&|purse| memory.used_by(purse));
        let taken_bytes = sum(&|purse| memory.direct_taken_by(purse));
        let before = self.standing;
        let epochs = core.ledger.epochs();
        self.standing = before.next(Seen {
            used_bytes,
            lowest_bytes: match before.wanted {
                Some(_) => sum(&|purse| memory.lowest_of(purse)),
                None => used_bytes,
            },
            limit_bytes: self.limit_bytes,
            taken_bytes: taken_bytes.saturating_sub(self.taken_before_bytes),
            is_refused: beyond.refused + beyond.observed > 0,
            is_enforced: enforced,
            epoch: epochs.current(),
            covered: epochs.covered(),
            now,
        });
        if self.standing.wanted.is_some() && self.standing.wanted != before.wanted {
            self.purses
                .iter()
                .for_each(|purse| memory.note_lowest(*purse));
            self.taken_before_bytes = taken_bytes;
        }
        // Whoever takes the account across its limit wakes the enforcer. Above it nobody need.
        let left = self.limit_bytes.checked_sub(used_bytes);
        for purse in &self.purses {
            let mark = left.map_or(0, |left| memory.used_by(*purse).saturating_add(left).max(1));
            memory.wake_above(*purse, mark);
        }
        self.tell(used_bytes, enforced, now);
    }

    fn tell(&mut self, used_bytes: u64, enforced: bool, now: Instant) {
        let is_over = self.standing.phase == Phase::Over;
        let rests = |then: Instant| now.saturating_duration_since(then) < TOLD;
        match self.told {
            None if !is_over => return,
            Some((told, then)) if told == is_over || rests(then) => return,
            _ => self.told = Some((is_over, now)),
        }
        let (account, used, limit) = (&self.account, size(used_bytes), size(self.limit_bytes));
        match (is_over, enforced) {
            (true, true) => tracing::warn!(
                "account {account} holds {used} off the heap, above its direct-limit of {limit}: what it asks for beyond that is refused by an OutOfMemoryError"
            ),
            (true, false) => tracing::warn!(
                "account {account} holds {used} off the heap, above its direct-limit of {limit}: in mode enforce what it asks for beyond that would be refused"
            ),
            (false, _) => tracing::info!(
                "account {account} holds {used} off the heap: its direct-limit of {limit} refuses nothing any more"
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
        taken_bytes: u64,
    }

    impl World {
        fn new() -> World {
            World {
                now: Instant::now(),
                standing: Standing::default(),
                epoch: 5,
                covered: Some(Epoch::new(4)),
                taken_bytes: 0,
            }
        }

        fn look(&mut self, used_bytes: u64, lowest_bytes: u64, is_refused: bool) -> Phase {
            self.now += Duration::from_millis(10);
            self.standing = self.standing.next(Seen {
                used_bytes,
                lowest_bytes,
                limit_bytes: LIMIT,
                taken_bytes: self.taken_bytes,
                is_refused,
                is_enforced: true,
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
        assert_eq!(world.looks(490, LIMIT + 1), Phase::Suspect);
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
    fn by_what_it_has_taken_since_nobody_is_over() {
        let mut world = World::new();
        world.looks(10, LIMIT * 3);
        world.collect();
        world.taken_bytes = LIMIT * 2;
        assert_eq!(world.looks(510, LIMIT * 3), Phase::Suspect);
        assert!(
            !world.standing.is_forgotten(world.now),
            "as if it was acquitted"
        );
        assert_eq!(world.looks(300, LIMIT * 3), Phase::Suspect);
        assert_eq!(world.standing.need(), Need::Covering, "another one");
        world.collect();
        world.taken_bytes -= 1;
        assert_eq!(world.looks(600, LIMIT * 3), Phase::Over);
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
    fn a_cleaner_that_is_at_work_convicts_nobody() {
        let mut world = World::new();
        world.looks(10, LIMIT * 9);
        for turn in 0..5 {
            world.collect();
            for less in 0..51 {
                let used = LIMIT * 9 - 100 * turn - less;
                assert_eq!(world.looks(100, used), Phase::Suspect);
            }
            assert_eq!(world.standing.need(), Need::Covering, "another one");
        }
        world.collect();
        assert_eq!(world.looks(600, LIMIT * 2), Phase::Over);
    }

    #[test]
    fn threads_wait_for_a_suspicion_once_and_not_for_longer() {
        let mut world = World::new();
        assert_eq!(world.standing.waits_left(world.now), Duration::ZERO);
        world.looks(10, LIMIT + 1);
        assert_eq!(world.standing.waits_left(world.now), WAITS);
        world.looks(1_500, LIMIT + 1);
        let left = world.standing.waits_left(world.now);
        assert_eq!(left, WAITS - Duration::from_millis(1_500));
        world.looks(60_000, LIMIT + 1);
        assert_eq!(world.standing.waits_left(world.now), Duration::ZERO);
        assert_eq!(world.standing.phase, Phase::Suspect);
        // It was acquitted.
        world.looks(10, LIMIT);
        world.looks(10, LIMIT + 1);
        assert_eq!(world.standing.waits_left(world.now), Duration::ZERO);
        assert!(world.standing.is_patient(true, world.now));
    }

    #[test]
    fn who_holds_its_limit_or_less_is_not_over_for_garbage() {
        let mut world = World::over();
        let held = LIMIT - LIMIT / ROOM + 1;
        world.looks(1_000, held);
        assert_eq!(world.look(held + 200, held + 200, true), Phase::Over);
        assert_eq!(world.standing.need(), Need::Covering);
        // It had no more than that, but no collection has shown it yet.
        assert_eq!(world.look(held + 200, held, true), Phase::Over);
        world.collect();
        assert_eq!(world.look(held + 200, held, true), Phase::Open);
        assert!(world.standing.is_forgotten(world.now), "it is no acquittal");
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
        // One in each 1.5 s.
        assert!((6..=7).contains(&wanted), "{wanted}");
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
