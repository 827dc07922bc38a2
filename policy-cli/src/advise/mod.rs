//! `heapwarden advise`

#[cfg_attr(not(test), expect(dead_code, reason = "the subcommand follows"))]
mod planner;
#[cfg(test)]
mod planner_tests;
