//! A walk for a suspect, without a command, where the policy says so.

/// What was walked for without a command.
#[derive(Default)]
pub(crate) struct Automatic {}
