//! The lines that the JVM and the agent log while the agent is loaded.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::process::{Process, printable};

/// Most of the log that is read, in bytes.
const MAX_LOG_BYTES: u64 = 64 << 10;
/// Most lines of the log that are shown.
const MAX_LOG_LINES: usize = 20;

/// The log to which the JVM and the agent write, from its length before the agent was loaded.
#[derive(Debug)]
pub(super) struct JvmLog {
    /// Where the log is, for a message.
    pub(super) place: String,
    /// The file and its earlier length, if the log is a regular file.
    file: Option<(File, u64)>,
}

impl JvmLog {
    /// The agent's log file if it has one (`option`), else the JVM's standard error.
    pub(super) fn of(process: &Process, option: Option<&str>) -> JvmLog {
        let info = &process.info;
        let (file, place) = match option.or(info.environment.log.as_deref()) {
            Some(path) => {
                // The file may not exist yet: the agent creates it.
                let opened = process
                    .root
                    .open(Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK);
                (opened.ok().map(File::from), printable(path))
            }
            None => {
                let path = format!("/proc/{}/fd/2", info.pid);
                let target = std::fs::read_link(&path).unwrap_or_default();
                let target = printable(&target.to_string_lossy());
                let kind = std::fs::metadata(&path).map(|found| found.file_type());
                // Opening a terminal or a FIFO would interfere with it.
                let file = match &kind {
                    Ok(kind) if kind.is_file() => File::open(&path).ok(),
                    _ => None,
                };
                let place = match kind {
                    Ok(kind) if kind.is_fifo() || kind.is_socket() => {
                        "the JVM's standard error, a pipe (journalctl, docker logs, kubectl logs)"
                            .to_owned()
                    }
                    _ => format!("the JVM's standard error, {target}"),
                };
                (file, place)
            }
        };
        let file = file.and_then(|file| {
            let found = file.metadata().ok()?;
            found.is_file().then_some((file, found.len()))
        });
        JvmLog { place, file }
    }

    /// The new lines that are about agents.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let Some((file, before_bytes)) = &mut self.file else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(*before_bytes)).is_err() {
            return Vec::new();
        }
        // The part that was read before an error is still shown.
        let _ = file.take(MAX_LOG_BYTES).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let is_about = |line: &&str| {
            let of_the_jvm = line.starts_with("WARNING: ") && line.contains("agent")
                || line.starts_with("WARNING: If a serviceability tool");
            of_the_jvm || line.to_lowercase().contains("heapwarden")
        };
        text.lines()
            .filter(is_about)
            .take(MAX_LOG_LINES)
            .map(printable)
            .collect()
    }
}
