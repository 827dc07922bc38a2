//! Any bytes a client can send are parsed and answered without a panic, the response is
//! well-formed, and no account is shown to an unknown host.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| heapwarden::http::oracle::check(bytes));
