//! The folder of snapshots: names, writing, and removing what is too much.
//!
//! # Names
//! `PROGRAM-RUN-TIME.json.gz`: the program, the identifier of the run, and when it was taken
//! (`20261124T080312.123Z`). JVMs that share a folder have different runs, so no two write one file.
//!
//! # Which runs have ended
//! Each run holds an exclusive lock on `.PROGRAM-RUN.lock` while it lives; the kernel gives it up however
//! the process ends. A run whose lock can be had has ended. Where locks are not seen by another host (some
//! network file systems), that host's runs look ended: such hosts should not share a folder.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use policy_report::SnapshotFile;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

/// Longest part of a file's name that stands for the program, in bytes.
const MAX_PROGRAM_BYTES: usize = 60;
/// How a finished file ends.
const SUFFIX: &str = ".json.gz";
/// How one ends that is being written; it begins with a dot as well.
const UNFINISHED: &str = ".json.gz.new";
/// How the file ends that is locked while the run lives.
const LOCK: &str = ".lock";
/// The most entries of a folder that are looked at when files are removed.
const MAX_ENTRIES: usize = 100_000;
/// The most files that are listed.
const MAX_LISTED: usize = 1_000;
/// The largest file that is read for a reader.
const MAX_READ_BYTES: u64 = 32 << 20;

/// The files of one run in one folder.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    program: String,
    run: String,
    /// Locked while this run lives; `None` if that could not be had.
    lock: Option<File>,
}

impl Files {
    /// The files of this run. Touches nothing yet.
    pub(super) fn new(directory: &Path, program: &str, run: &str) -> Files {
        Files {
            directory: directory.to_owned(),
            program: file_name_of(program),
            run: run.to_owned(),
            lock: None,
        }
    }

    /// The folder.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn name(&self, at: SystemTime) -> String {
        let stamp: String = (rfc3339(at).chars())
            .filter(|one| !matches!(one, '-' | ':'))
            .collect();
        format!("{}-{}-{stamp}{SUFFIX}", self.program, self.run)
    }

    /// Writes a file that is there as a whole or not at all.
    ///
    /// # Errors
    /// Those of the file system; nothing is left behind, as far as it lets us.
    pub(super) fn write(&mut self, at: SystemTime, bytes: &[u8]) -> io::Result<PathBuf> {
        if self.lock.is_none() {
            self.lock = self.locked();
        }
        let name = self.name(at);
        let file = self.directory.join(&name);
        let unfinished = self
            .directory
            .join(format!(".{}", name.replace(SUFFIX, UNFINISHED)));
        let written = create(&unfinished)
            .and_then(|mut open| {
                open.write_all(bytes)?;
                open.sync_all()
            })
            .and_then(|()| rename_new(&unfinished, &file));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        // The name is on the disk once the folder is; not every file system can do that.
        let _ = File::open(&self.directory).and_then(|folder| folder.sync_all());
        Ok(file)
    }

    fn lock_name(&self) -> String {
        format!(".{}-{}{LOCK}", self.program, self.run)
    }

    fn locked(&self) -> Option<File> {
        let open = create(&self.directory.join(self.lock_name())).ok()?;
        flock(&open, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(open)
    }

    /// Gives the lock up: the run ends, or writes elsewhere.
    pub(super) fn close(&mut self) {
        if self.lock.take().is_some() {
            let _ = fs::remove_file(self.directory.join(self.lock_name()));
        }
    }

    /// Removes the oldest files beyond `keep`: of this run, and of all ended runs of the same program
    /// together. Also what ended runs left unfinished.
    ///
    /// # Errors
    /// When the folder cannot be read, or the first of the files that cannot be removed.
    pub(super) fn prune(&self, keep: usize) -> io::Result<()> {
        let mut finished: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
        let mut others: Vec<(String, PathBuf)> = Vec::new();
        let mut locks: HashSet<String> = HashSet::new();
        for entry in fs::read_dir(&self.directory)?.take(MAX_ENTRIES) {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            match self.parse(name) {
                Some(Found::Finished { run, stamp }) => {
                    let files = finished.entry(run).or_default();
                    files.push((stamp, entry.path()));
                }
                Some(Found::Unfinished { run }) => others.push((run, entry.path())),
                Some(Found::Lock { run }) => {
                    locks.insert(run);
                }
                None => {}
            }
        }
        let mut first_error = Ok(());
        let mut remove = |path: &Path| match fs::remove_file(path) {
            // Another JVM of this program was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if first_error.is_ok() => first_error = Err(error),
            _ => {}
        };
        let oldest_beyond = |mut files: Vec<(String, PathBuf)>| {
            files.sort();
            let beyond = files.len().saturating_sub(keep);
            files.truncate(beyond);
            files
        };
        let own = finished.remove(&self.run).unwrap_or_default();
        for (_, path) in oldest_beyond(own) {
            remove(&path);
        }
        let runs = finished.keys().chain(others.iter().map(|(run, _)| run));
        let ended: HashSet<String> = (runs.chain(&locks))
            .filter(|run| **run != self.run && self.has_ended(run, &locks))
            .cloned()
            .collect();
        let (of_ended, _): (Vec<_>, Vec<_>) =
            (finished.into_iter()).partition(|(run, _)| ended.contains(run));
        let of_ended = of_ended.into_iter().flat_map(|(_, files)| files).collect();
        for (_, path) in oldest_beyond(of_ended) {
            remove(&path);
        }
        for (run, path) in &others {
            // This thread alone writes for its run, and writes nothing now.
            if *run == self.run || ended.contains(run) {
                remove(path);
            }
        }
        for run in ended.intersection(&locks) {
            remove(
                &self
                    .directory
                    .join(format!(".{}-{run}{LOCK}", self.program)),
            );
        }
        first_error
    }

    /// The finished files of this program, latest first, at most [`MAX_LISTED`]; and how many are left out.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn list(&self) -> io::Result<(Vec<SnapshotFile<'static>>, u64)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)?.take(MAX_ENTRIES) {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(Found::Finished { run, stamp }) = self.parse(name) {
                // It may be gone already.
                let bytes = entry.metadata().map_or(0, |about| about.len());
                found.push((stamp, run, name.to_owned(), bytes));
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let omitted = found.len().saturating_sub(MAX_LISTED) as u64;
        found.truncate(MAX_LISTED);
        let files = found
            .into_iter()
            .map(|(stamp, run, name, bytes)| SnapshotFile {
                name: name.into(),
                at: time_of(&stamp).into(),
                bytes,
                is_this_run: run == self.run,
            });
        Ok((files.collect(), omitted))
    }

    /// Returns the content of a finished file of this program; `None` if there is none of this name.
    ///
    /// # Errors
    /// Those of the file system; a file that is too large, or is not a file.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if !matches!(self.parse(name), Some(Found::Finished { .. })) {
            return Ok(None);
        }
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(NO_FOLLOW)
            .open(self.directory.join(name));
        let open = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if !open.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        open.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_READ_BYTES {
            return Err(io::Error::other("it is too large"));
        }
        Ok(Some(bytes))
    }

    fn has_ended(&self, run: &str, locks: &HashSet<String>) -> bool {
        if !locks.contains(run) {
            return true;
        }
        let path = self
            .directory
            .join(format!(".{}-{run}{LOCK}", self.program));
        // It is not followed if it is a link, and what is no file is nobody's lock.
        match OpenOptions::new()
            .read(true)
            .custom_flags(NO_FOLLOW)
            .open(path)
        {
            Ok(open) => flock(&open, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Returns the kind of file that a name in the folder stands for, if it is this program's.
    fn parse(&self, name: &str) -> Option<Found> {
        let run_of = |rest: &str| is_run(rest).then(|| rest.to_owned());
        let mine = |name: &str| {
            Some(
                name.strip_prefix(&self.program)?
                    .strip_prefix('-')?
                    .to_owned(),
            )
        };
        if let Some(hidden) = name.strip_prefix('.') {
            let rest = mine(hidden)?;
            return match rest.strip_suffix(LOCK) {
                Some(run) => Some(Found::Lock { run: run_of(run)? }),
                None => {
                    let (run, stamp) = rest.strip_suffix(UNFINISHED)?.split_once('-')?;
                    let run = is_stamp(stamp).then(|| run_of(run)).flatten()?;
                    Some(Found::Unfinished { run })
                }
            };
        }
        let rest = mine(name)?;
        let (run, stamp) = rest.strip_suffix(SUFFIX)?.split_once('-')?;
        let run = is_stamp(stamp).then(|| run_of(run)).flatten()?;
        let stamp = stamp.to_owned();
        Some(Found::Finished { run, stamp })
    }
}

/// `O_NOFOLLOW` and `O_NONBLOCK`: a pipe of that name must not make us wait.
const NO_FOLLOW: i32 =
    (rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits()) as i32;

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Finished { run: String, stamp: String },
    Unfinished { run: String },
    Lock { run: String },
}

/// The time of a stamp as RFC 3339 has it.
fn time_of(stamp: &str) -> String {
    let part = |from: usize, to: usize| stamp.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}T{}:{}:{}",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(9, 11),
        part(11, 13),
        part(13, 20)
    )
}

fn is_run(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_stamp(text: &str) -> bool {
    text.len() == 20
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"TZ.".contains(&byte))
}

/// A file that was not there before, for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Renames a file to a name that nobody has yet.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot look and rename in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !to.exists() => {
            fs::rename(from, to)
        }
        outcome => Ok(outcome?),
    }
}

/// The program as a part of a file's name.
fn file_name_of(program: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_');
    let name: String = (program.chars())
        .map(|one| if plain(one) { one } else { '_' })
        .take(MAX_PROGRAM_BYTES)
        .collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() {
        "java".to_owned()
    } else {
        name.to_owned()
    }
}

/// The time as RFC 3339 has it, in UTC.
pub(super) fn rfc3339(at: SystemTime) -> String {
    // Beyond the year 9999 it cannot be written.
    let last = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(253_402_300_799);
    let at = at.clamp(SystemTime::UNIX_EPOCH, last);
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    const RUNS: [&str; 3] = ["00000000000000aa", "00000000000000bb", "00000000000000cc"];

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn finished(folder: &Path) -> Vec<String> {
        let all = names(folder).into_iter();
        all.filter(|name| !name.starts_with('.')).collect()
    }

    #[test]
    fn a_file_is_its_owners_alone_and_has_program_run_and_time_in_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path(), "com.acme.Shop/x y-1.jar", RUNS[0]);
        let path = files.write(at(0), b"abc").unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            name,
            "com.acme.Shop_x_y_1.jar-00000000000000aa-20270115T080000.000Z.json.gz"
        );
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files.close();
        assert_eq!(names(folder.path()), [name], "nothing beside it");
    }

    #[test]
    fn files_are_listed_latest_first_and_read_by_their_names_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut earlier = Files::new(folder.path(), "a", RUNS[1]);
        earlier.write(at(0), b"x").unwrap();
        earlier.close();
        let mut files = Files::new(folder.path(), "a", RUNS[0]);
        let path = files.write(at(1), b"abc").unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        let (listed, omitted) = files.list().unwrap();
        assert_eq!((listed.len(), omitted), (2, 0));
        assert_eq!(listed[0].at, "2027-01-15T08:00:01.000Z");
        assert_eq!((listed[0].bytes, listed[0].is_this_run), (3, true));
        assert!(!listed[1].is_this_run);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(files.read(name).unwrap().as_deref(), Some(&b"abc"[..]));
        let link = name.replace("080001", "080002");
        std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join(&link))
            .unwrap();
        assert!(files.read(&link).is_err(), "a link is not followed");
        for name in ["secret", "../secret", "", ".", &name.replace("a-", "b-")] {
            assert_eq!(files.read(name).unwrap(), None, "{name}");
        }
        let gone = name.replace("080001", "080003");
        assert_eq!(files.read(&gone).unwrap(), None);
    }

    #[test]
    fn no_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path(), "a", RUNS[0]);
        let path = files.write(at(0), b"first").unwrap();
        assert!(files.write(at(0), b"second").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(finished(folder.path()).len(), 1);
        files.close();
        assert_eq!(names(folder.path()).len(), 1, "nothing unfinished is left");
    }

    #[test]
    fn so_many_of_this_run_are_kept_and_nothing_of_another_that_runs() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = RUNS.map(|run| Files::new(folder.path(), "a", run));
        for seconds in 0..5 {
            for one in &mut files {
                one.write(at(seconds), b"x").unwrap();
            }
        }
        files[0].prune(2).unwrap();
        let left = finished(folder.path());
        assert_eq!(left.len(), 2 + 5 + 5, "{left:?}");
        assert!(left.iter().any(|name| name.contains("aa-20270115T080004")));
        // The second run ends as a crash ends it: its lock is given up and stays there.
        drop(files[1].lock.take());
        fs::write(
            folder
                .path()
                .join(format!(".a-{}-20270115T080000.000Z.json.gz.new", RUNS[1])),
            "x",
        )
        .unwrap();
        files[0].prune(2).unwrap();
        let left = names(folder.path());
        assert_eq!(finished(folder.path()).len(), 2 + 2 + 5, "{left:?}");
        assert!(!left.iter().any(|name| name.ends_with(".new")), "{left:?}");
        assert!(!left.contains(&format!(".a-{}.lock", RUNS[1])), "{left:?}");
        assert!(left.contains(&format!(".a-{}.lock", RUNS[2])), "{left:?}");
    }

    #[test]
    fn nothing_of_others_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = [
            "notes.txt".to_owned(),
            "a.json.gz".to_owned(),
            format!("a-b-{}-20270115T080000.000Z.json.gz", RUNS[1]),
            format!("ab-{}-20270115T080000.000Z.json.gz", RUNS[1]),
            format!("a-{}-yesterday.json.gz", RUNS[1]),
            "a-zz-20270115T080000.000Z.json.gz".to_owned(),
        ];
        for name in &foreign {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let files = Files::new(folder.path(), "a", RUNS[0]);
        files.prune(0).unwrap();
        let mut expected = foreign.to_vec();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        assert!(
            Files::new(&missing, "a", RUNS[0])
                .write(at(0), b"x")
                .is_err()
        );
        assert!(Files::new(&missing, "a", RUNS[0]).prune(1).is_err());
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(Files::new(&file, "a", RUNS[0]).write(at(0), b"x").is_err());
        assert_eq!(names(folder.path()), ["file"]);
    }
}
