//! Looking at a process of this machine through `/proc`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fstat};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::arguments::Arguments;
use super::elf;
use super::info::{Environment, ProcessInfo};
use super::maps::MappedFiles;
use super::printable;
use super::release::Release;
use super::root::Root;
use super::sockets;
use super::status::Status;
use super::threads::Collector;

/// Longest text of `/proc` that is read, in bytes; a JVM with many mappings has a few MB.
const MAX_PROC_BYTES: u64 = 32 << 20;
/// Longest `release` file that is read, in bytes.
const MAX_RELEASE_BYTES: u64 = 64 << 10;
/// Most threads whose names are looked at.
const MAX_THREADS: usize = 4096;

/// Why a process cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InspectError {
    /// No process has this id.
    #[error("there is no process {0}")]
    Gone(u32),
    /// The id is that of a thread.
    #[error("{thread} is a thread of process {process}: give the id of the process")]
    Thread { thread: u32, process: u32 },
    /// The kernel denies access.
    #[error(
        "cannot read the {what} of process {pid} ({name}), which belongs to user {user} ({error}): \
         run this as that user, or as root (in a container also with the capability SYS_PTRACE)"
    )]
    Unreadable {
        pid: u32,
        name: String,
        user: u32,
        what: &'static str,
        error: io::Error,
    },
}

/// A process of this machine.
#[derive(Debug)]
pub(crate) struct Process {
    /// The facts that were found when it was inspected.
    pub(crate) info: ProcessInfo,
    /// Its files.
    pub(crate) root: Root,
    /// Opened before anything was read, so that it is the process that `info` is about even if
    /// another process gets the id later. `None` on kernels before 5.3.
    handle: Option<OwnedFd>,
}

impl Process {
    /// Inspects a process.
    ///
    /// # Errors
    /// If there is no such process, or the kernel denies access.
    pub(crate) fn find(pid: u32) -> Result<Process, InspectError> {
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let id = id.ok_or(InspectError::Gone(pid))?;
        let handle = pidfd_open(id, PidfdFlags::empty()).ok();
        let text = read(pid, "status").map_err(|_| InspectError::Gone(pid))?;
        let status = Status::parse(&String::from_utf8_lossy(&text));
        if status.process != pid {
            return Err(InspectError::Thread {
                thread: pid,
                process: status.process,
            });
        }
        let unreadable = |what| {
            let (name, user) = (printable(&status.name), status.user);
            move |error| InspectError::Unreadable {
                pid,
                name,
                user,
                what,
                error,
            }
        };
        let maps = read(pid, "maps").map_err(unreadable("mapped files"))?;
        let files = MappedFiles::parse(&String::from_utf8_lossy(&maps));
        let root = Root::of(pid).map_err(unreadable("root folder"))?;
        let command = read(pid, "cmdline").map_err(unreadable("command line"))?;
        let environ = read(pid, "environ").map_err(unreadable("environment"))?;
        let arguments = Arguments::parse(&command, &environ);
        let threads = thread_names(pid);
        let collector = Collector::of(&arguments, threads.iter().map(String::as_str));
        let info = ProcessInfo {
            pid,
            machine: executable_head(pid).and_then(|head| elf::machine(&head)),
            arguments,
            environment: Environment::parse(&environ),
            release: files
                .libjvm()
                .and_then(|path| release(&root, Path::new(path))),
            collector,
            shares_files: root.is_ours(),
            shares_network: same_namespace(pid, "net"),
            container: read(pid, "cgroup")
                .ok()
                .and_then(|text| container(&String::from_utf8_lossy(&text))),
            command,
            files,
            status,
        };
        Ok(Process { info, root, handle })
    }

    /// Reads the mapped files again.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn mapped_files(&self) -> io::Result<MappedFiles> {
        mapped(self.info.pid)
    }

    /// Whether the permissions of a file let the process read it, as far as the file's own bits
    /// tell. Its path is the process's.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        let Ok(file) = self.root.open(path, OFlags::PATH) else {
            return false;
        };
        let Ok(found) = fstat(&file) else {
            return false;
        };
        let status = &self.info.status;
        let in_group = status.group == found.st_gid || status.groups.contains(&found.st_gid);
        let bit = if status.user == found.st_uid {
            0o400
        } else if in_group {
            0o040
        } else {
            0o004
        };
        status.user == 0 || found.st_mode & bit != 0
    }

    /// Sends SIGQUIT, but only to a running process that catches it: the signal ends any other. False
    /// if nothing was sent.
    ///
    /// # Errors
    /// Permission, or the process has ended.
    pub(crate) fn quit(&self) -> io::Result<bool> {
        let pid = self.info.pid;
        let status = Status::parse(&String::from_utf8_lossy(&read(pid, "status")?));
        let is_still_jvm = self.mapped_files()?.libjvm().is_some();
        if !is_still_jvm || !status.catches_quit() || !status.can_run() {
            return Ok(false);
        }
        match (
            &self.handle,
            i32::try_from(pid).ok().and_then(Pid::from_raw),
        ) {
            (Some(handle), _) => pidfd_send_signal(handle, Signal::QUIT)?,
            (None, Some(id)) => kill_process(id, Signal::QUIT)?,
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    /// The TCP addresses on which it listens, as seen in its own network.
    ///
    /// # Errors
    /// If its open files cannot be read.
    pub(crate) fn listening(&self) -> io::Result<Vec<SocketAddr>> {
        let pid = self.info.pid;
        let inodes = socket_inodes(pid)?;
        let mut found = BTreeSet::new();
        for table in ["net/tcp", "net/tcp6"] {
            // There is no tcp6 without IPv6.
            let text = read(pid, table).unwrap_or_default();
            found.extend(sockets::owned(&String::from_utf8_lossy(&text), &inodes));
        }
        Ok(found.into_iter().collect())
    }

    /// Every TCP address in its network on which any process listens.
    pub(crate) fn taken_addresses(&self) -> Vec<SocketAddr> {
        let tables = ["net/tcp", "net/tcp6"].map(|table| {
            let text = read(self.info.pid, table).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        });
        let all = tables.iter().flat_map(|text| sockets::listening(text));
        all.map(|(address, _)| address).collect()
    }
}

/// The files that a process has mapped.
///
/// # Errors
/// The process has ended, or the kernel denies access.
pub(super) fn mapped(pid: u32) -> io::Result<MappedFiles> {
    let maps = read(pid, "maps")?;
    Ok(MappedFiles::parse(&String::from_utf8_lossy(&maps)))
}

/// A text of `/proc/PID`, within bounds.
///
/// # Errors
/// The process has ended, or the kernel denies access.
pub(super) fn read(pid: u32, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/{name}"))?
        .take(MAX_PROC_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The sockets that a process has open.
///
/// # Errors
/// The process has ended, or the kernel denies access.
pub(super) fn socket_inodes(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let link = entry.and_then(|entry| std::fs::read_link(entry.path()));
        // A file that was closed meanwhile.
        let Ok(link) = link else { continue };
        inodes.extend(sockets::socket_inode(&link.to_string_lossy()));
    }
    Ok(inodes)
}

/// The first bytes of the executable.
fn executable_head(pid: u32) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(format!("/proc/{pid}/exe")).ok()?;
    file.take(64).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The file `release` in the home of `lib/server/libjvm.so`.
fn release(root: &Root, libjvm: &Path) -> Option<Release> {
    // JDK 8 has `jre/lib/amd64/server/libjvm.so`, one or two folders deeper.
    libjvm.ancestors().skip(3).take(3).find_map(|home| {
        let text = root.read(&home.join("release"), MAX_RELEASE_BYTES).ok()?;
        Some(Release::parse(&String::from_utf8_lossy(&text)))
    })
}

fn thread_names(pid: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten().take(MAX_THREADS);
    let names = threads.filter_map(|thread| std::fs::read(thread.path().join("comm")).ok());
    names
        .map(|name| String::from_utf8_lossy(&name).into_owned())
        .collect()
}

fn same_namespace(pid: u32, kind: &str) -> bool {
    let of = |who: &str| -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{who}/ns/{kind}")).ok()
    };
    let ours = of("self");
    ours.is_some() && ours == of(&pid.to_string())
}

/// The container in the names of the control groups: Docker, containerd, CRI-O and Podman call
/// theirs by 64 hexadecimal digits. The first twelve are what people use.
fn container(cgroup: &str) -> Option<String> {
    let mut runs = cgroup.split(|c: char| !c.is_ascii_hexdigit());
    runs.find(|run| run.len() == 64)
        .map(|run| run[..12].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_named_by_their_control_groups() {
        let id = "4f5a8c0d".repeat(8);
        for text in [
            format!("12:cpu:/docker/{id}\n0::/\n"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n"),
            format!("0::/machine.slice/libpod-{id}.scope/container\n"),
        ] {
            assert_eq!(container(&text).as_deref(), Some("4f5a8c0d4f5a"), "{text}");
        }
        assert_eq!(
            container("0::/user.slice/user-1000.slice/session-2.scope\n"),
            None
        );
        assert_eq!(container(""), None);
    }

    #[test]
    fn this_very_process_is_no_jvm_and_listens_where_it_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let process = Process::find(std::process::id()).unwrap();
        assert!(!process.info.is_jvm() && process.info.shares_files && process.info.shares_network);
        assert_eq!(process.info.machine.unwrap().name(), std::env::consts::ARCH);
        let address = listener.local_addr().unwrap();
        assert!(process.listening().unwrap().contains(&address));
        assert!(process.taken_addresses().contains(&address));
        assert!(!process.quit().unwrap(), "no signal to what is no JVM");
    }

    #[test]
    fn nobody_is_told_from_somebody() {
        assert!(matches!(Process::find(0), Err(InspectError::Gone(0))));
        assert!(matches!(
            Process::find(u32::MAX),
            Err(InspectError::Gone(_))
        ));
    }

    #[test]
    fn a_summary_shows_no_control_characters() {
        let info = ProcessInfo {
            command: b"java\0-Dx=\x1b[2J\0Main\0".to_vec(),
            release: Some(Release::parse(
                "JAVA_VERSION=\"17\u{1b}c\"\nIMPLEMENTOR=\"a\u{7}\"",
            )),
            ..ProcessInfo::default()
        };
        assert!(
            !info.summary().chars().any(char::is_control),
            "{:?}",
            info.summary()
        );
        assert_eq!(info.command_line(), "java -Dx=\\u{1b}[2J Main");
    }
}
