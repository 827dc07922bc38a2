//! The entry points that the VM looks up by name.
#![allow(
    unsafe_code,
    reason = "exported functions are called by anybody who finds them"
)]

policy_jvm::export_agent!(super::load);
