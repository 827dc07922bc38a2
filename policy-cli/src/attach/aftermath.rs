//! What there is to be told when the agent is in: its address, what the JVM logged, and how to
//! see the accounts.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use policy_config::Listen;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, mkdirat, unlinkat};

use super::options::AgentOptions;
use crate::live::{Address, Classes, Client};
use crate::process::{Folder, Process, printable};

/// How long the agent may take to bind its listener before it is taken for waiting.
const BINDING: Duration = Duration::from_secs(15);
/// How long its first answer may take.
const ANSWERING: Duration = Duration::from_secs(15);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// Largest run file that is read, in bytes.
const MAX_RUN_FILE_BYTES: u64 = 4096;
/// Most of the JVM's log that is read, in bytes, and shown, in lines.
const MAX_LOG_BYTES: u64 = 64 << 10;
const MAX_LOG_LINES: usize = 20;
/// Most folders of one JVM that earlier attempts may have left.
const MAX_LEFT_OVER: u32 = 100;

/// Where the agent will write the address that it bound.
#[derive(Debug)]
pub(super) enum RunFile {
    /// Nowhere: it does not listen.
    None,
    /// Where it was told to, by option or environment; the JVM's path.
    Known(PathBuf),
    /// In a folder made for this, that nobody but the JVM's user may write to.
    Own {
        temporary: Folder,
        folder: String,
        path: PathBuf,
    },
}

impl RunFile {
    /// Finds or makes the place.
    ///
    /// # Errors
    /// The JVM's `/tmp` cannot be written to.
    pub(super) fn prepare(
        process: &Process,
        options: &AgentOptions,
        off: bool,
    ) -> io::Result<RunFile> {
        if off {
            return Ok(RunFile::None);
        }
        let told = options.get("run-file");
        if let Some(path) = told.or(process.facts.environment.run_file.as_deref()) {
            return Ok(RunFile::Known(path.into()));
        }
        let temporary = process.root.folder(Path::new("/tmp"))?;
        let status = &process.facts.status;
        for attempt in 0..MAX_LEFT_OVER {
            let folder = format!("heapwarden-{}-{attempt}", status.own_id());
            match mkdirat(&temporary, &folder, Mode::RWXU) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(status.user), Gid::from_raw(status.group));
                let no_link = AtFlags::SYMLINK_NOFOLLOW;
                chownat(&temporary, &folder, Some(user), Some(group), no_link)?;
            }
            let path = Path::new("/tmp").join(&folder).join("run.json");
            return Ok(RunFile::Own {
                temporary,
                folder,
                path,
            });
        }
        let message =
            "there are a hundred folders /tmp/heapwarden-* of earlier attempts: remove them";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    }

    /// The path that the agent has still to be given.
    pub(super) fn to_be_given(&self) -> Option<&Path> {
        match self {
            RunFile::Own { path, .. } => Some(path),
            RunFile::None | RunFile::Known(_) => None,
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            RunFile::None => None,
            RunFile::Known(path) | RunFile::Own { path, .. } => Some(path),
        }
    }

    /// Removes what was made.
    pub(super) fn discard(self) {
        if let RunFile::Own {
            temporary, folder, ..
        } = self
        {
            // What is not removed is an empty folder in /tmp.
            let _ = unlinkat(&temporary, format!("{folder}/run.json"), AtFlags::empty());
            let _ = unlinkat(&temporary, folder, AtFlags::REMOVEDIR);
        }
    }

    /// The address in it, once it is written.
    fn address(&self, process: &Process) -> Option<String> {
        let bytes = process.root.read(self.path()?, MAX_RUN_FILE_BYTES).ok()?;
        let run: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        // One of an earlier JVM may lie where the operator wants the next.
        let is_its = run["pid"] == process.facts.status.own_id();
        run["listen"].as_str().filter(|_| is_its).map(str::to_owned)
    }
}

/// The JVM's log, from where it was before the agent came.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it goes, for a sentence.
    place: String,
    /// The file, and how long it was, if it is a plain one.
    file: Option<(File, u64)>,
}

impl Log {
    /// The agent's log file if it is given one, else the JVM's standard error.
    pub(super) fn of(process: &Process, told: Option<&str>) -> Log {
        let facts = &process.facts;
        let (file, place) = match told.or(facts.environment.log.as_deref()) {
            Some(path) => {
                // The agent makes the file where there is none: looked at again later.
                let opened = process
                    .root
                    .open(Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK);
                (opened.ok().map(File::from), printable(path))
            }
            None => {
                let path = format!("/proc/{}/fd/2", facts.pid);
                let target = std::fs::read_link(&path).unwrap_or_default();
                let target = printable(&target.to_string_lossy());
                let kind = std::fs::metadata(&path).map(|found| found.file_type());
                // Opening a terminal or a FIFO would take part in it.
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
        Log { place, file }
    }

    /// The lines since then that are about agents.
    fn lines(&mut self) -> Vec<String> {
        let Some((file, before_bytes)) = &mut self.file else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(*before_bytes)).is_err() {
            return Vec::new();
        }
        // What was read before an error is shown.
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

/// What is known when the JVM has said that the agent is loaded.
pub(super) struct Aftermath<'a> {
    pub(super) process: &'a Process,
    pub(super) listen: &'a Listen,
    pub(super) run_file: RunFile,
    pub(super) log: Log,
}

impl Aftermath<'_> {
    /// Waits for the listener and its first answer, and tells. True if accounts are kept, as far
    /// as can be seen from here.
    ///
    /// # Errors
    /// Only those of the output.
    pub(super) fn tell(mut self, out: &mut dyn Write) -> io::Result<bool> {
        let is_mapped = self.process.mapped_files();
        let is_mapped = is_mapped.is_ok_and(|files| files.libheapwarden().is_some());
        let address = until(BINDING, || self.run_file.address(self.process));
        let lines = self.log.lines();
        if lines.is_empty() {
            writeln!(out, "The agent logs to {}.", self.log.place)?;
        } else {
            writeln!(out, "The JVM logged to {}:", self.log.place)?;
            for line in lines {
                writeln!(out, "  | {line}")?;
            }
        }
        if self.run_file.path().is_none() {
            writeln!(
                out,
                "It does not listen: accounts cannot be read (listen=off)."
            )?;
            return Ok(is_mapped);
        }
        let Some(address) = address else {
            writeln!(
                out,
                "It has not said where it listens within {BINDING:?} (wanted: {}). Its log says why: the address is \
                 taken, perhaps, and then it waits for it; or the agent does nothing in this JVM.",
                self.listen
            )?;
            return Ok(false);
        };
        self.run_file.discard();
        let shown = printable(&address);
        writeln!(out, "Metrics are on http://{shown}/metrics.")?;
        if !self.process.facts.shares_network {
            writeln!(
                out,
                "That address is in the JVM's own network (a container): from here, use\n  \
                 nsenter -t {} -n heapwarden status {shown}",
                self.process.facts.pid
            )?;
            return Ok(is_mapped);
        }
        let told = first_answer(&address);
        match told {
            Ok(sentence) => {
                writeln!(out, "{sentence}")?;
                writeln!(out, "See the accounts:  heapwarden status {shown}")?;
                Ok(true)
            }
            Err(why) => {
                writeln!(out, "{why}")?;
                writeln!(out, "What is wrong:  heapwarden doctor {shown}")?;
                Ok(false)
            }
        }
    }
}

/// What the agent answers first: a sentence on the accounts, or on why there are none.
fn first_answer(listener: &str) -> Result<String, String> {
    let address: Address = match listener.parse() {
        Ok(address) => address,
        Err(error) => return Err(format!("Its address was not understood: {error}.")),
    };
    let client = Client::new();
    if let Some(why) = client.not_ready(&address) {
        return Err(printable(&why));
    }
    let mut last = String::new();
    let accounts = until(ANSWERING, || {
        match client.accounts(&address, Classes::Top) {
            Ok(accounts) => Some(accounts),
            Err(error) => {
                last = error.to_string();
                None
            }
        }
    });
    let accounts = accounts.ok_or(last)?;
    let mode = match accounts.policy.mode.as_str() {
        "enforce" => "allocations of accounts over their limits are refused",
        _ => "nothing is refused (mode = \"observe\")",
    };
    Ok(format!(
        "It keeps accounts, {} so far; {mode}. Live bytes appear with the next collection.",
        accounts.accounts.len()
    ))
}

/// For an agent that is in already: where it can be read.
pub(super) fn where_it_listens(process: &Process, out: &mut dyn Write) -> io::Result<()> {
    for address in crate::process::agents_listeners(process) {
        writeln!(out, "  listens  {address}  (heapwarden status {address})")?;
    }
    Ok(())
}

fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}
