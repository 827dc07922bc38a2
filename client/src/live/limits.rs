//! How long and how large an agent's answer may be.

use std::time::Duration;

/// Longest wait for a connection.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Longest time of one request in all.
pub(super) const WHOLE_LIMIT: Duration = Duration::from_secs(5);
/// Largest answer that is read.
pub(super) const MAX_BODY_BYTES: u64 = 64 << 20;
