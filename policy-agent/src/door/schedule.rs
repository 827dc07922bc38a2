//! When the fitter looks for container classes, and whether any account wants a door.

use std::time::{Duration, Instant};

use policy_config::{Door, Limit, Matcher, Mode, Policy};

/// How many seconds after a reason to look the fitter looks: at once, and again, because a container may load the
/// class after its loader is known. An application with a server inside takes minutes to start on a busy machine,
/// and has no door until the next look.
const LOOKS_SECONDS: [u64; 14] = [0, 1, 3, 6, 10, 15, 20, 30, 40, 50, 60, 75, 90, 120];

/// And after those, for as long as doors are wanted: some libraries load the class with their first connection.
const EVERY_SECONDS: u64 = 120;

/// The time of a look, by its place.
fn after_seconds(look: usize) -> u64 {
    let last = LOOKS_SECONDS.len() - 1;
    LOOKS_SECONDS[look.min(last)] + look.saturating_sub(last) as u64 * EVERY_SECONDS
}

/// The shortest time between two looks, each of which passes over all loaded classes.
const SHORTEST: Duration = Duration::from_millis(250);

/// How many looks may come soon after another, for one reason to look: the container's own loader has no name
/// yet, which takes the loader thread some milliseconds.
const MAX_SOON: u32 = 8;

/// Whether a policy has an account that may get a door: a service with a limit that is enforced.
pub(super) fn wants_doors(policy: &Policy) -> bool {
    policy.enforcement.mode == Mode::Enforce
        && policy.accounts.iter().any(|account| {
            matches!(account.matcher, Matcher::Service(_))
                && account.limit != Limit::None
                && account.door != Door::Off
        })
}

/// When to look. See [`LOOKS_SECONDS`].
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// When the last reason came up, and the next of [`LOOKS_SECONDS`] after it; empty if none is left.
    begun: Option<(Instant, usize)>,
    last: Option<Instant>,
    /// Whether the next look is to come soon, and how many have come so.
    soon: (bool, u32),
}

impl Schedule {
    /// There is a reason to look: begins [`LOOKS_SECONDS`] anew.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun = Some((now, 0));
        self.soon = (false, 0);
    }

    /// A class was found that may get a door in a moment: the next look comes as soon as it may.
    pub(super) fn soon(&mut self) {
        self.soon.0 = self.soon.1 < MAX_SOON;
    }

    /// There is no reason any more.
    pub(super) fn end(&mut self) {
        self.begun = None;
    }

    /// How long until the next look; `None` if there is no reason to look.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let (begun, next) = self.begun?;
        let due = match self.soon.0 {
            true => now,
            false => begun + Duration::from_secs(after_seconds(next)),
        };
        let due = (self.last).map_or(due, |last| due.max(last + SHORTEST));
        Some(due.saturating_duration_since(now))
    }

    /// Whether to look now. One look stands for all that were missed.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.wait(now) != Some(Duration::ZERO) {
            return false;
        }
        if let Some((begun, next)) = &mut self.begun {
            while *begun + Duration::from_secs(after_seconds(*next)) <= now {
                *next += 1;
            }
        }
        self.last = Some(now);
        if self.soon.0 {
            self.soon = (false, self.soon.1 + 1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(text: &str) -> bool {
        let policy = policy_config::parse(text).policy;
        wants_doors(&policy.expect("a valid policy"))
    }

    #[test]
    fn services_with_a_limit_that_is_enforced_want_doors() {
        const ENFORCE: &str = "[enforcement]\nmode = \"enforce\"\n";
        let enforced = |account: &str| wants(&format!("{ENFORCE}[[account]]\n{account}\n"));
        assert!(enforced("service = \"/shop\"\nlimit = \"1MiB\""));
        assert!(enforced(
            "service = \"*\"\nlimit = \"10%\"\ndoor = \"auto\""
        ));
        assert!(!enforced("service = \"/shop\""));
        assert!(!enforced("service = \"/shop\"\nsoft-limit = \"1MiB\""));
        assert!(!enforced(
            "service = \"/shop\"\nlimit = \"1MiB\"\ndoor = \"off\""
        ));
        assert!(!enforced("scope = \"tenant-*\"\nlimit = \"1MiB\""));
        assert!(!enforced(
            "name = \"a\"\npackages = [\"com.a.*\"]\nlimit = \"1MiB\""
        ));
        assert!(!wants(
            "[[account]]\nservice = \"/shop\"\nlimit = \"1MiB\"\n"
        ));
        assert!(!wants(ENFORCE));
    }

    #[test]
    fn it_looks_at_once_and_again_more_and_more_rarely() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        assert_eq!(schedule.wait(start), None);
        assert!(!schedule.take(start));
        schedule.begin(start);
        let mut now = start;
        for after in LOOKS_SECONDS.into_iter().chain([240, 360, 480]) {
            now += schedule.wait(now).expect("another look");
            assert_eq!(now, start + Duration::from_secs(after));
            assert!(schedule.take(now));
            assert!(!schedule.take(now));
        }
        schedule.end();
        assert_eq!(schedule.wait(now), None);
    }

    #[test]
    fn reasons_without_end_make_it_look_four_times_a_second() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        let mut looks = 0;
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            schedule.begin(now);
            looks += u32::from(schedule.take(now));
        }
        assert_eq!(looks, 4);
        schedule.end();
        assert!(!schedule.take(start + Duration::from_secs(9)));
    }

    #[test]
    fn it_looks_again_soon_where_a_loader_has_no_name_yet_but_not_for_ever() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        schedule.begin(start);
        let mut now = start;
        let mut looks = Vec::new();
        while now < start + Duration::from_secs(5) {
            if schedule.take(now) {
                looks.push((now - start).as_millis());
                schedule.soon();
            }
            now += Duration::from_millis(50);
        }
        assert_eq!(
            looks,
            [0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000, 3000]
        );
        schedule.begin(now);
        assert!(schedule.take(now));
        schedule.soon();
        assert_eq!(schedule.wait(now), Some(SHORTEST));
    }

    #[test]
    fn one_look_stands_for_those_that_were_missed() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        schedule.begin(start);
        let late = start + Duration::from_secs(4);
        assert!(schedule.take(late));
        assert_eq!(schedule.wait(late), Some(Duration::from_secs(2)));
    }
}
