//! Errors of JVM TI.

/// A JVM TI error code, printed with its name in the specification where it is common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("JVM TI error {code}{}", Self::name(.code))]
pub struct JvmTiError {
    code: i32,
}

impl JvmTiError {
    /// `JVMTI_ERROR_CLASS_NOT_PREPARED`: the class is not linked.
    pub const CLASS_NOT_PREPARED: JvmTiError = JvmTiError { code: 22 };
    /// `JVMTI_ERROR_NOT_AVAILABLE`: another agent holds a capability, or the VM cannot give it.
    pub const NOT_AVAILABLE: JvmTiError = JvmTiError { code: 98 };
    /// `JVMTI_ERROR_ILLEGAL_ARGUMENT`.
    pub(crate) const ILLEGAL_ARGUMENT: JvmTiError = JvmTiError { code: 103 };

    pub(crate) fn of(code: i32) -> JvmTiError {
        JvmTiError { code }
    }

    fn name(code: &i32) -> &'static str {
        match code {
            22 => " (CLASS_NOT_PREPARED)",
            62 => " (FAILS_VERIFICATION)",
            79 => " (UNMODIFIABLE_CLASS)",
            98 => " (NOT_AVAILABLE)",
            99 => " (MUST_POSSESS_CAPABILITY)",
            112 => " (WRONG_PHASE)",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_errors_are_named() {
        let shown = JvmTiError::NOT_AVAILABLE.to_string();
        assert_eq!(shown, "JVM TI error 98 (NOT_AVAILABLE)");
        assert_eq!(JvmTiError::of(7).to_string(), "JVM TI error 7");
    }
}
