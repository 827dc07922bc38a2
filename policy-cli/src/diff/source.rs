//! Where a snapshot comes from: a file, plain or gzip, or an agent.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use policy_report::{RunFile, SNAPSHOT_VERSION, Snapshot};
use serde::Deserialize;

use heapwarden_client::live::{Address, Client};
use heapwarden_terminal::printable;

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Largest document, in bytes: an agent writes a quarter of that at most.
const MAX_DOCUMENT_BYTES: u64 = 512 << 20;
/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why there is no snapshot, as one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{name} cannot be read: {error}")]
    Unreadable { name: String, error: io::Error },
    #[error("{name} is larger than {} MiB", limit >> 20)]
    TooLarge { name: String, limit: u64 },
    #[error("{name} is damaged or cut off: {error}")]
    Damaged { name: String, error: io::Error },
    #[error("{name} is no snapshot; heapwarden snapshot ADDRESS -o FILE takes one")]
    NoSnapshot { name: String },
    #[error(
        "{name} is a snapshot of version {version}, and this command knows version {SNAPSHOT_VERSION}; use the command of the agent's release"
    )]
    Version { name: String, version: u64 },
    #[error("{name} is neither a file nor an address ({reason})")]
    Nothing { name: String, reason: String },
    #[error("{0}")]
    Agent(String),
}

/// Reads a snapshot from a file, or from the agent at an address.
///
/// # Errors
/// Why there is none.
pub(crate) fn read(text: &str, client: &Client) -> Result<Snapshot<'static>, SourceError> {
    let name = printable::fitted(text, 200).into_owned();
    let path = Path::new(text);
    if path.exists() {
        let bytes = file(path, &name)?;
        if serde_json::from_slice::<RunFile>(&bytes).is_err() {
            return parse(&bytes, &name);
        }
    }
    let address: Address = text.parse().map_err(|error| SourceError::Nothing {
        name: name.clone(),
        reason: format!("as an address it {error}"),
    })?;
    if path.extension().is_some_and(|end| end == "gz") {
        let error = io::ErrorKind::NotFound.into();
        return Err(SourceError::Unreadable { name, error });
    }
    let gzip = client.snapshot(&address);
    let gzip = gzip.map_err(|error| SourceError::Agent(error.to_string()))?;
    parse(&gzip, &name)
}

/// The JSON of a snapshot that is a file; `None` if there is no such file, or it is an agent's run file.
///
/// # Errors
/// A file that is no snapshot.
pub(crate) fn snapshot_file(path: &Path) -> Result<Option<Vec<u8>>, SourceError> {
    if !path.exists() {
        return Ok(None);
    }
    let name = printable::fitted(&path.to_string_lossy(), 200).into_owned();
    let bytes = file(path, &name)?;
    if serde_json::from_slice::<RunFile>(&bytes).is_ok() {
        return Ok(None);
    }
    parse(&bytes, &name)?;
    plain(&bytes, &name).map(Some)
}

fn file(path: &Path, name: &str) -> Result<Vec<u8>, SourceError> {
    let unreadable = |error| SourceError::Unreadable {
        name: name.to_owned(),
        error,
    };
    // Opening a pipe would wait for its writer.
    let about = path.metadata().map_err(unreadable)?;
    if !about.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    let open = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    (open.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    within(bytes, MAX_FILE_BYTES, name)
}

fn within(bytes: Vec<u8>, limit: u64, name: &str) -> Result<Vec<u8>, SourceError> {
    if bytes.len() as u64 <= limit {
        return Ok(bytes);
    }
    let name = name.to_owned();
    Err(SourceError::TooLarge { name, limit })
}

/// The plain text of a document that may be gzip.
///
/// # Errors
/// Gzip that is damaged, cut off, or too large.
pub(crate) fn plain(bytes: &[u8], name: &str) -> Result<Vec<u8>, SourceError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes.to_vec());
    }
    let mut text = Vec::new();
    let mut decoder = MultiGzDecoder::new(bytes).take(MAX_DOCUMENT_BYTES + 1);
    decoder
        .read_to_end(&mut text)
        .map_err(|error| SourceError::Damaged {
            name: name.to_owned(),
            error,
        })?;
    within(text, MAX_DOCUMENT_BYTES, name)
}

/// The field that every version of the document has.
#[derive(Deserialize)]
struct Versioned {
    heapwarden_snapshot: u64,
}

fn parse(bytes: &[u8], name: &str) -> Result<Snapshot<'static>, SourceError> {
    let text = plain(bytes, name)?;
    let no_snapshot = || SourceError::NoSnapshot {
        name: name.to_owned(),
    };
    match serde_json::from_slice::<Versioned>(&text) {
        Ok(Versioned {
            heapwarden_snapshot: SNAPSHOT_VERSION,
        }) => serde_json::from_slice(&text).map_err(|_| no_snapshot()),
        Ok(Versioned {
            heapwarden_snapshot: version,
        }) => Err(SourceError::Version {
            name: name.to_owned(),
            version,
        }),
        Err(error) if error.is_eof() => Err(SourceError::Damaged {
            name: name.to_owned(),
            error: io::ErrorKind::UnexpectedEof.into(),
        }),
        Err(_) => Err(no_snapshot()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const DOCUMENT: &str = r#"{"heapwarden_snapshot":1,"at":"2026-11-24T08:00:00.000Z","run":{"id":"a"},"accounts":[]}"#;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn told(bytes: &[u8]) -> String {
        match parse(bytes, "f") {
            Ok(_) => panic!("it was taken for a snapshot"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn files_are_read_plain_and_as_gzip() {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::new();
        for (name, bytes) in [
            ("a.json", DOCUMENT.as_bytes().to_vec()),
            ("a.gz", gzip(DOCUMENT)),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let read = read(path.to_str().unwrap(), &client).unwrap();
            assert_eq!(read.run.id, "a");
        }
        let missing = folder.path().join("b.json.gz");
        let error = read(missing.to_str().unwrap(), &client).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
        let error = read(folder.path().to_str().unwrap(), &client).unwrap_err();
        assert!(error.to_string().ends_with("it is not a file"), "{error}");
    }

    #[test]
    fn what_is_no_snapshot_is_told_apart() {
        let whole = gzip(DOCUMENT);
        for end in [12, whole.len() / 2, whole.len() - 1] {
            assert!(
                told(&whole[..end]).starts_with("f is damaged or cut off"),
                "{end}"
            );
        }
        assert!(told(&DOCUMENT.as_bytes()[..40]).starts_with("f is damaged"));
        for text in ["", "{}", "[]", "hello", r#"{"accounts":[]}"#] {
            let told = told(text.as_bytes());
            assert!(
                told.starts_with("f is no snapshot") || text.is_empty(),
                "{text}: {told}"
            );
        }
        let newer = DOCUMENT.replace("\":1,", "\":2,");
        assert!(told(newer.as_bytes()).contains("of version 2"));
    }
}
