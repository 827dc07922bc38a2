//! Any bytes in the policy file give a policy or errors with places in the text, never a
//! panic, and a policy keeps every rule of the contract.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| policy_config::oracle::check(bytes));
