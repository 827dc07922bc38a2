//! The figures of an account in an error.

use policy_jvm::kinds::JavaString;
use policy_jvm::{Global, Value};

/// An account's name as a Java string.
pub(crate) type AccountName = Global<JavaString>;

/// The figures in an error's message. Bytes.
pub(crate) struct Figures<'a> {
    /// The account's name as `Errors::account_name` makes it.
    pub(crate) account: &'a AccountName,
    pub(crate) live_bytes: u64,
    pub(crate) limit_bytes: u64,
    pub(crate) standard_error_bytes: u64,
    pub(crate) requested_bytes: u64,
}

impl Figures<'_> {
    /// In the order of the constructor's parameters and the fields.
    pub(super) fn values(&self) -> [Value<'_>; 5] {
        let bytes = |bytes: u64| Value::long(i64::try_from(bytes).unwrap_or(i64::MAX));
        [
            Value::object(self.account),
            bytes(self.live_bytes),
            bytes(self.limit_bytes),
            bytes(self.standard_error_bytes),
            bytes(self.requested_bytes),
        ]
    }
}
