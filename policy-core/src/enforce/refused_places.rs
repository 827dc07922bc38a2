//! The places where errors are thrown, or in mode `observe` would have been, as reports list them: by name,
//! with counts, and with the line of policy that would spare a background thread.
//!
//! # Rules
//! 1. A place is listed only if an error was thrown there, or would have been: after the judgement of the stack,
//!    its unit of work, grace and mask. What is deferred is counted by reason, and has no place.
//! 2. An account has at most [`MAX_OF_KIND`] places of requests, and as many of background work. Refusals at
//!    others are counted as *elsewhere*.
//! 3. Counts live as long as the account, and begin anew when the policy's mode changes: those of `observe` and
//!    those of `enforce` never add up.
//! 4. A line is proposed for a background thread, because an error may end what frees memory. It names the
//!    package of the account's code with which the thread's work begins (code that only passes calls on, as
//!    frameworks do, is passed over): `never-interrupt` holds for all that
//!    this code calls. None is proposed
//!    * for a request: the error ends that request;
//!    * for a scope, or for work that the policy itself names: somebody has asked for errors there;
//!    * if there is only code that passes calls on: its package serves all kinds of work;
//!    * if the package also has code of a request's place: the line would spare requests as well;
//!    * for the unnamed package, which no pattern names.
//!
//! The allocating threads' half is [`super::place_counts`].

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use super::place_counts::{Drained, MAX_OF_KIND, PlaceCounts};
use super::place_name::{PlaceName, Work};

/// A place of an account, as reports list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPlace {
    /// Where.
    pub name: PlaceName,
    /// How many errors were thrown there, or would have been.
    pub count: u64,
    /// The line of policy that would spare the thread, if one is proposed.
    pub never_interrupt: Option<String>,
}

/// The places of one account. The enforcer and reports use it, under the lock of the statuses.
#[derive(Debug)]
pub struct RefusedPlaces {
    counts: Arc<PlaceCounts>,
    /// The table before `counts`, as long as a thread may be counting in it.
    former: Option<Arc<PlaceCounts>>,
    by_name: BTreeMap<PlaceName, u64>,
    elsewhere: u64,
}

impl Default for RefusedPlaces {
    fn default() -> RefusedPlaces {
        RefusedPlaces {
            counts: PlaceCounts::new(),
            former: None,
            by_name: BTreeMap::new(),
            elsewhere: 0,
        }
    }
}

impl RefusedPlaces {
    /// Where the account's threads count.
    pub fn counts(&self) -> &Arc<PlaceCounts> {
        &self.counts
    }

    /// Takes over what was counted. A table that is full of places which have few names, as those of a service
    /// that was deployed several times, is replaced.
    pub fn collect(&mut self) {
        if let Some(mut former) = self.former.take() {
            // Looked at first: a thread that counts in it, or is to name a place of it, holds it.
            let is_in_use = Arc::get_mut(&mut former).is_none();
            self.add(former.drain());
            if is_in_use {
                self.former = Some(former);
            } else {
                self.elsewhere += former.pending();
            }
        }
        self.add(self.counts.drain());
        let wants_room =
            |work| self.counts.is_full(work == Work::Request) && self.names_of(work) < MAX_OF_KIND;
        if self.former.is_none()
            && [Work::Request, Work::Background]
                .into_iter()
                .any(wants_room)
        {
            self.former = Some(mem::replace(&mut self.counts, PlaceCounts::new()));
        }
    }

    fn names_of(&self, work: Work) -> usize {
        let names = self.by_name.keys();
        names.filter(|name| name.work == work).count()
    }

    fn add(&mut self, drained: Drained) {
        self.elsewhere += drained.elsewhere;
        for (name, count) in drained.named {
            if let Some(sum) = self.by_name.get_mut(&name) {
                *sum += count;
            } else if self.names_of(name.work) < MAX_OF_KIND {
                self.by_name.insert(name, count);
            } else {
                self.elsewhere += count;
            }
        }
    }

    /// Forgets all places: the mode of the policy has changed.
    pub fn restart(&mut self) {
        *self = RefusedPlaces::default();
    }

    /// The places, most frequent first.
    pub fn listed(&self) -> Vec<RefusedPlace> {
        let mut listed: Vec<RefusedPlace> = (self.by_name.iter())
            .map(|(name, &count)| RefusedPlace {
                name: name.clone(),
                count,
                never_interrupt: name.never_interrupt(self.by_name.keys()),
            })
            .collect();
        listed.sort_by_key(|place| std::cmp::Reverse(place.count));
        listed
    }

    /// How many refusals were at places that are not listed, or have no name yet.
    pub fn elsewhere(&self) -> u64 {
        let former = self.former.as_ref().map_or(0, |former| former.pending());
        self.elsewhere + former + self.counts.pending()
    }

    /// Native memory held, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        let former = (self.former.as_ref()).map_or(0, |former| former.committed_bytes());
        self.counts.committed_bytes() + former
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::enforce::place_counts::PlaceKey;
    use crate::enforce::place_name::MethodName;

    fn method(text: &str) -> MethodName {
        let (class, method) = text.split_once('#').unwrap();
        MethodName {
            class: class.into(),
            method: method.into(),
        }
    }

    fn place(frame: &str, entry: &str, work: Work) -> PlaceName {
        PlaceName {
            frame: method(frame),
            entry: method(entry),
            unit: Some(method("java.util.concurrent.FutureTask#run")),
            work,
            passes_on: false,
            is_named_by_policy: false,
        }
    }

    fn proposed(place: &PlaceName, others: &[PlaceName]) -> Option<String> {
        place.never_interrupt(others.iter())
    }

    #[test]
    fn a_line_is_proposed_for_the_code_with_which_a_background_thread_begins() {
        let cleaner = place(
            "com.acme.store.Map#put",
            "com.acme.jobs.Cleaner#run",
            Work::Background,
        );
        let line = "never-interrupt = [\"com.acme.jobs\"]";
        assert_eq!(proposed(&cleaner, &[]).as_deref(), Some(line));
        // It is a line of policy that says what was meant.
        let text = format!("[[account]]\nname = 'a'\npackages = ['com.acme.*']\n{line}");
        let policy = policy_config::parse(&text).policy.unwrap();
        let table = policy.accounts[0].interrupts.table();
        assert_eq!(
            table.lookup("com.acme.jobs"),
            Some(policy_config::Interrupt::Never)
        );
        assert_eq!(table.lookup("com.acme.store"), None);

        let request = place(
            "com.acme.store.Map#put",
            "com.acme.web.Cart#add",
            Work::Request,
        );
        assert_eq!(proposed(&request, &[]), None);
        assert_eq!(proposed(&cleaner, &[request]).as_deref(), Some(line));
        for (frame, entry) in [
            ("com.acme.jobs.Queue#add", "com.acme.web.Cart#add"),
            ("com.acme.store.Map#put", "com.acme.jobs.Servlet#doPost"),
        ] {
            let request = place(frame, entry, Work::Request);
            assert_eq!(proposed(&cleaner, &[request]), None, "{frame} {entry}");
        }
    }

    #[test]
    fn nothing_is_proposed_where_errors_were_asked_for_or_no_pattern_fits() {
        let cleaner = place("a.X#m", "a.X#m", Work::Background);
        let of_scope = PlaceName {
            unit: None,
            ..cleaner.clone()
        };
        let of_policy = PlaceName {
            is_named_by_policy: true,
            ..cleaner.clone()
        };
        let passing = PlaceName {
            passes_on: true,
            ..cleaner.clone()
        };
        let unnamed = place("X#m", "X#m", Work::Background);
        let hostile = place("a.X#m", "a\"]\nlimit = \"1B.X#m", Work::Background);
        for place in [of_scope, of_policy, passing, unnamed, hostile] {
            assert_eq!(proposed(&place, &[]), None, "{place:?}");
        }
    }

    #[test]
    fn versions_of_a_service_share_their_places() {
        let mut places = RefusedPlaces::default();
        let key = |version: u64| PlaceKey {
            frame: version,
            entry: version,
            unit: None,
            is_request: false,
        };
        let name = place("a.X#m", "a.X#m", Work::Background);
        for version in 0..10 * MAX_OF_KIND as u64 {
            let counts = places.counts().clone();
            let slot = counts.slot(key(version));
            counts.count(slot);
            if let Some(slot) = slot {
                counts.name(slot, Some(name.clone()));
            }
            places.collect();
            // A thread that is late counts in the table that it has.
            counts.count(slot);
            drop(counts);
        }
        places.collect();
        let listed = places.listed();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (listed[0].count, places.elsewhere()),
            (20 * MAX_OF_KIND as u64, 0)
        );
        places.restart();
        assert_eq!((places.listed().len(), places.elsewhere()), (0, 0));
    }

    proptest! {
        /// The list is bounded and sorted, and every refusal is in it or elsewhere.
        #[test]
        fn places_are_bounded_and_nothing_is_lost(
            refusals in proptest::collection::vec((0u64..60, any::<bool>(), any::<bool>()), 0..300),
        ) {
            let mut places = RefusedPlaces::default();
            for &(frame, is_request, collects) in &refusals {
                let key = PlaceKey { frame, entry: frame, unit: Some(1), is_request };
                let counts = places.counts().clone();
                let slot = counts.slot(key);
                if let Some(slot) = slot
                    && counts.takes_over_naming(slot)
                {
                    counts.name(slot, Some(PlaceName::numbered(key)));
                }
                counts.count(slot);
                if collects {
                    places.collect();
                }
            }
            places.collect();
            let listed = places.listed();
            let sum: u64 = listed.iter().map(|place| place.count).sum();
            prop_assert_eq!(sum + places.elsewhere(), refusals.len() as u64);
            for work in [Work::Request, Work::Background] {
                let of_kind = listed.iter().filter(|place| place.name.work == work);
                prop_assert!(of_kind.count() <= MAX_OF_KIND);
            }
            prop_assert!(listed.is_sorted_by(|a, b| a.count >= b.count));
        }
    }
}
