//! Which routes a thread is in, and whose purse a sample of it is charged to.
//!
//! A request writes its route into the thread's cell at the door of its server, and nobody takes it out: the thread
//! keeps it until its next one. A call of a method that the policy names as a door *begins* at the entry of the method
//! and *ends* when the method is left, in whatever way. Calls are nested; requests are not.
//!
//! # Rules
//! 1. A call begins only if no call of its account is open on the thread, and at most one call of another account.
//!    Otherwise it is a part of what is open: it has no route.
//! 2. What an account pays on a thread while a call of it is open is charged to the route of that call: also what
//!    calls through other doors of the account allocate inside it.
//! 3. A call counts for its route exactly if it begins. One that has no route counts for none.
//! 4. At a shut door a call goes in as a probe, however little its route keeps: no route of calls is cheap.
//!
//! # Why none is cheap
//! A request allocates all that it keeps. A call keeps what its caller has made as well: its arguments, which no door
//! has seen. An `INSERT` into H2 or HSQLDB allocates little between the entry of its method and the end,
//! and keeps a row of 32 KiB that the thread of the connection has read before. Such a route looks cheap and grows:
//! with prices at these doors both databases took limit and reserve before anything was turned away.
//!
//! To let calls in by price, all that the account keeps outside of calls would have to count for each of its routes,
//! in the price, in what is kept since the door was shut, and in what may be charged until the next evidence.
//!
//! # Nested calls
//! So the bytes that a route is charged and the calls that they are divided by are of the same calls. A method that
//! grows by calling another door does not make the other one dear, nor does the other one make it cheap; and a method
//! that is mostly called inside others has the price of its calls from outside.
//!
//! # If an end is not told
//! The end of a call ends what is open inside it. If that of the outermost call is never told (the stack overflows in
//! the end itself), its thread begins no call of this account any more, and the open route pays: it looks dearer.
//!
//! The Java half (`dev.heapwarden.agent.Cell`) keeps the calls by these rules.

use super::NUMBER_BITS;

/// The routes in a thread's cell: that of its latest request, and those of the calls that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inside {
    request: u32,
    /// The outermost call in the lower half, one inside it in the upper half.
    calls: u32,
}

impl Inside {
    /// From the fields `route` and `calls` of the cell.
    #[must_use]
    pub fn new(route: i32, calls: i32) -> Inside {
        Inside {
            request: u32::try_from(route).unwrap_or(0),
            calls: calls.cast_unsigned(),
        }
    }

    /// The route that is charged for an account. `of_account` knows the account's routes by number.
    pub fn charged<T>(&self, of_account: impl Fn(u32) -> Option<T>) -> Option<T> {
        let outer = self.calls & ((1 << NUMBER_BITS) - 1);
        let inner = self.calls >> NUMBER_BITS;
        [outer, inner, self.request]
            .into_iter()
            .filter(|&number| number != 0)
            .find_map(of_account)
    }
}

/// The calls of a thread, as the Java half keeps them.
#[cfg(all(test, not(loom)))]
pub(super) mod model {
    use super::Inside;
    use crate::enforce::routes::{NUMBER_BITS, PLACES};

    /// A cell's field `calls`.
    #[derive(Debug, Default)]
    pub(in super::super) struct Cell(i32);

    impl Cell {
        /// Returns the level, which the end of the call is to be told; `None` if the call does not begin.
        pub(in super::super) fn begin(&mut self, route: u32) -> Option<u32> {
            let open = self.0.cast_unsigned();
            let account = |number: u32| (number - 1) / PLACES as u32;
            let may_begin =
                open == 0 || open >> NUMBER_BITS == 0 && account(open) != account(route);
            may_begin.then(|| {
                let level = if open == 0 { 0 } else { 1 };
                self.0 = (open | route << (level * NUMBER_BITS)).cast_signed();
                level
            })
        }

        pub(in super::super) fn end(&mut self, level: u32) {
            let below = (1 << (level * NUMBER_BITS)) - 1;
            self.0 = (self.0.cast_unsigned() & below).cast_signed();
        }

        pub(in super::super) fn inside(&self) -> Inside {
            Inside::new(0, self.0)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::model::Cell;
    use super::*;
    use crate::enforce::routes::{MAX_SERVICES, PLACES};
    use proptest::prelude::*;

    /// The route that is charged for the account in this place.
    fn charged(inside: Inside, account: u32) -> Option<u32> {
        let of = |number: u32| ((number - 1) / PLACES as u32 == account).then_some(number);
        inside.charged(of)
    }

    fn route(account: u32, at: u32) -> u32 {
        account * PLACES as u32 + at + 1
    }

    #[test]
    fn numbers_of_routes_fit_into_a_half() {
        let last = route(MAX_SERVICES as u32 - 1, PLACES as u32 - 1);
        assert!(last < 1 << NUMBER_BITS);
        let mut cell = Cell::default();
        assert_eq!((cell.begin(last), cell.begin(1)), (Some(0), Some(1)));
        assert_eq!(charged(cell.inside(), MAX_SERVICES as u32 - 1), Some(last));
        assert_eq!(charged(cell.inside(), 0), Some(1));
    }

    #[test]
    fn calls_are_before_the_request_that_the_thread_served_last() {
        let request = route(7, 3).cast_signed();
        assert_eq!(charged(Inside::new(request, 0), 7), Some(route(7, 3)));
        let call = route(7, 5).cast_signed();
        assert_eq!(charged(Inside::new(request, call), 7), Some(route(7, 5)));
        assert_eq!(
            charged(Inside::new(request, route(2, 0).cast_signed()), 7),
            Some(route(7, 3))
        );
        assert_eq!(charged(Inside::new(-1, 0), 7), None);
    }

    proptest! {
        /// Calls of three accounts in one another: what an account pays is charged to its outermost call that
        /// began; a call of an account that has one open never begins; an end that is not told ends with the one
        /// around it.
        #[test]
        fn the_outermost_call_of_an_account_pays(
            steps in proptest::collection::vec((0u32..3, 0u32..4, any::<bool>(), any::<bool>()), 1..80),
        ) {
            let mut cell = Cell::default();
            // Open calls: account, route, and the level if it began.
            let mut open: Vec<(u32, u32, Option<u32>)> = Vec::new();
            for (account, at, begins, is_told) in steps {
                if begins {
                    let route = route(account, at);
                    let began = cell.begin(route);
                    let of_account = |one: &(u32, u32, Option<u32>)| one.0 == account && one.2.is_some();
                    let begun = open.iter().filter(|one| one.2.is_some()).count();
                    prop_assert_eq!(began.is_some(), !open.iter().any(of_account) && begun < 2);
                    open.push((account, route, began));
                } else if let Some((_, _, level)) = open.pop()
                    && let Some(level) = level
                {
                    // The outermost one is told always.
                    if is_told || level == 0 {
                        cell.end(level);
                    } else {
                        // Its caller goes on, and ends.
                        while let Some((_, _, around)) = open.pop() {
                            if around == Some(0) {
                                cell.end(0);
                                break;
                            }
                        }
                    }
                }
                for account in 0..3 {
                    let outermost = open.iter().find(|one| one.0 == account && one.2.is_some());
                    prop_assert_eq!(charged(cell.inside(), account), outermost.map(|one| one.1));
                }
            }
        }
    }
}
