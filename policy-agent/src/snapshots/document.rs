//! From a reading to the document, as gzip.

use std::io::{self, Write as _};
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use policy_core::cohorts::{Cohorts, Mark};
use policy_report::{Cohort, Run, SNAPSHOT_VERSION, SnapshotFiles, VARIANCE_UNIT_BYTES2};
use serde::Serialize;

use super::files::{Files, rfc3339};
use crate::report::json::{self, Classes};
use crate::report::{SitesReading, Snapshot, sites_json};

/// How hard the document is compressed: beyond this, time grows faster than size falls.
const LEVEL: u32 = 3;

/// This run of the JVM.
#[derive(Debug)]
pub(super) struct ThisRun {
    pub(super) id: String,
    pub(super) started: SystemTime,
}

/// The run, the time and the reason that a document states beside the reading.
pub(super) struct About<'a> {
    pub(super) run: &'a ThisRun,
    pub(super) at: SystemTime,
    pub(super) why: &'static str,
}

/// The gzip of the document, with a line feed at its end.
///
/// # Errors
/// The serializer's; this document causes none.
pub(super) fn render(
    about: &About<'_>,
    snapshot: &Snapshot,
    cohorts: &Cohorts,
    sites: &SitesReading,
) -> io::Result<Vec<u8>> {
    packed(&document(about, snapshot, cohorts, sites))
}

/// The list of the snapshots on disk, as gzip; an empty one without a folder.
///
/// # Errors
/// When the folder cannot be read.
pub(super) fn files(files: Option<&Files>) -> io::Result<Vec<u8>> {
    let Some(files) = files else {
        return packed(&SnapshotFiles::default());
    };
    let (listed, omitted) = files.list()?;
    packed(&SnapshotFiles {
        directory: Some(files.directory().to_string_lossy()),
        files: listed,
        omitted,
    })
}

fn packed(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut out = io::BufWriter::with_capacity(
        64 << 10,
        GzEncoder::new(Vec::new(), Compression::new(LEVEL)),
    );
    serde_json::to_writer(&mut out, document)?;
    out.write_all(b"\n")?;
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .finish()
}

fn document<'a>(
    about: &About<'a>,
    snapshot: &'a Snapshot,
    cohorts: &Cohorts,
    sites: &'a SitesReading,
) -> policy_report::Snapshot<'a> {
    let accounts = json::accounts(snapshot, Classes::All);
    policy_report::Snapshot {
        heapwarden_snapshot: SNAPSHOT_VERSION,
        at: rfc3339(about.at).into(),
        why: about.why.into(),
        run: Run {
            id: about.run.id.as_str().into(),
            started: rfc3339(about.run.started).into(),
        },
        jvm: accounts.jvm,
        heap: accounts.heap,
        sampling: accounts.sampling,
        policy: accounts.policy,
        evidence: accounts.evidence,
        variance_unit_bytes2: VARIANCE_UNIT_BYTES2,
        cohorts: cohorts.cuts().iter().map(cohort).collect(),
        cohorts_joined: cohorts.is_joined(),
        accounts: accounts.accounts,
        accounts_omitted: accounts.accounts_omitted,
        sites: sites_json::sites(sites),
    }
}

fn cohort<'a>(cut: &Mark) -> Cohort<'a> {
    Cohort {
        upto_epoch: cut.epoch.get().into(),
        at: rfc3339(cut.at).into(),
    }
}
