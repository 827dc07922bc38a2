//! Reading a policy file that must be valid.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use policy_config::{MAX_FILE_BYTES, Policy};

/// Why a policy could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file could not be read.
    #[error("{file}: cannot be read: {why}")]
    Unreadable {
        /// Its path.
        file: String,
        /// The message of the system.
        why: String,
    },
    /// It has errors.
    #[error("{file}: rejected: {first}; `heapwarden check` shows it all")]
    Rejected {
        /// Its path.
        file: String,
        /// The first error.
        first: String,
    },
}

/// The policy, and the text it was read from.
///
/// # Errors
/// See [`Error`].
pub(crate) fn read(path: &Path) -> Result<(Policy, String), Error> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    // One byte more than a policy may have: a wrong path may name a device that never ends.
    let done = File::open(path)
        .and_then(|open| open.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = done {
        let why = error.to_string();
        return Err(Error::Unreadable { file, why });
    }
    let (text, parsed) = policy_config::parse_bytes(&bytes);
    match parsed.policy {
        Some(policy) => Ok((policy, text.into_owned())),
        None => {
            let mistakes = parsed.diagnostics.iter();
            let mut mistakes = mistakes.filter(|one| one.is_error());
            let first = mistakes.next().map(|one| one.message.clone());
            Err(Error::Rejected {
                file,
                first: first.unwrap_or_default(),
            })
        }
    }
}
