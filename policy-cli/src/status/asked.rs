//! The result of reading one JVM.

use crate::live::Accounts;
use crate::targets;

/// The result of reading one JVM.
pub(super) type Asked = targets::Asked<Accounts>;
