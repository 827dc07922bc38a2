//! Any bytes that the JVM gives as a class file are left as they are with a reason, or rewritten: with counters for
//! accounts, for contexts, for both, the question of a door and the call where threads end. Without an insertion
//! they come out byte for byte; with one the class is read again and has all that was there.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| policy_exact::oracle::check(bytes));
