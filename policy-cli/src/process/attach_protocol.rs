//! A client of HotSpot's attach protocol.
//!
//! `jcmd` speaks the same protocol, but is not used: runtimes made by `jlink` and slim images lack it,
//! one of another JDK may refuse, its timeout cannot be set, and it splits its arguments at blanks.
//! The protocol is old and small (JDK 6 to 25 speak version 1 of it):
//!
//! 1. A file `.attach_pidN` in `/tmp`, or in the JVM's working folder, owned by its user.
//! 2. SIGQUIT. HotSpot sees the file, and instead of dumping its threads it starts to listen on
//!    `/tmp/.java_pidN`. (N is the id that the JVM itself sees, `/tmp` its own.)
//! 3. Version, command and three arguments, each ended by a zero byte. HotSpot answers with a number
//!    on its own line (0: the command was understood), and with text.
//!
//! SIGQUIT ends a process that does not catch it. So it is sent only to a process that has mapped
//! `libjvm.so`, whose kernel entry says that it catches the signal, and that cannot have been
//! replaced by another one meanwhile ([`Process::quit`]); only once, and never if the socket
//! exists already.

use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::inspect::Process;
use super::printable;
use super::root::Folder;

/// Longest argument that HotSpot reads before JDK 25, in bytes.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 1024;
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// How long a JVM may take to open its socket: it must reach a safepoint first.
const OPENING: Duration = Duration::from_secs(30);
/// How long the agent may take to load: it classifies all loaded classes.
const ANSWERING: Duration = Duration::from_secs(120);

/// Why the agent was not loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// HotSpot would cut the argument, or refuse it.
    #[error(
        "{what} is {bytes} bytes long, but HotSpot accepts {MAX_ARGUMENT_BYTES} at most: choose a shorter path"
    )]
    TooLong { what: &'static str, bytes: usize },
    /// A zero byte ends an argument.
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
    /// The JVM's `/tmp`.
    #[error("cannot open the JVM's /tmp ({0}), where HotSpot puts its socket; make it readable")]
    NoTemporaryFolder(io::Error),
    /// Another file has the name of the socket.
    #[error(
        "/tmp/.java_pid{id} is not a socket of the JVM's user {user} (it is {found}), so it was not used; \
         remove it if no process needs it"
    )]
    NotTheSocket { id: u32, user: u32, found: String },
    /// The attach file cannot be created.
    #[error(
        "cannot create the file .attach_pid{id} in the JVM's /tmp or in its working folder ({error}); make one of them writable"
    )]
    NoAttachFile { id: u32, error: io::Error },
    /// SIGQUIT would end the process.
    #[error(
        "the JVM does not catch SIGQUIT (-Xrs, -XX:+ReduceSignalUsage, or it is still starting), \
         so it cannot be asked to listen; nothing was sent to it"
    )]
    QuitNotCaught,
    /// `kill`
    #[error("cannot send SIGQUIT ({0}): run this as the JVM's user, or as root")]
    NoSignal(io::Error),
    /// No socket after the signal.
    #[error(
        "the JVM has not opened its socket within {OPENING:?} of SIGQUIT: it was started with \
         -XX:+DisableAttachMechanism (then it has printed its threads), or it hangs"
    )]
    NoSocket,
    /// `connect`, `write`, `read`
    #[error("the JVM's socket failed: {0}")]
    Socket(io::Error),
    /// Connected, but no answer came.
    #[error("the JVM has not answered within {ANSWERING:?}; it may still load the agent")]
    NoAnswer,
    /// The JVM closed the connection without an answer.
    #[error(
        "the JVM closed its socket without an answer, because it accepts no commands from this user; \
         run this as the JVM's user and group, in its container"
    )]
    ClosedAtOnce,
    /// Not an answer of the protocol.
    #[error("cannot understand the JVM's answer: {0}")]
    NotUnderstood(String),
    /// The JVM understood the command, but did not load the agent.
    #[error("the JVM refused: {0}")]
    Refused(String),
}

/// Loads a native agent into a running HotSpot, and waits until its `Agent_OnAttach` has returned.
///
/// # Errors
/// See [`AttachError`]. Except after [`AttachError::NoAnswer`], nothing was loaded.
pub(crate) fn load(process: &Process, library: &str, options: &str) -> Result<(), AttachError> {
    let message = message(library, options)?;
    let id = process.info.status.own_id();
    let temporary = process
        .root
        .folder(Path::new("/tmp"))
        .map_err(AttachError::NoTemporaryFolder)?;
    let socket = Socket {
        name: format!(".java_pid{id}"),
        folder: &temporary,
        user: process.info.status.user,
        id,
    };
    if !socket.is_there()? {
        open_socket(process, &socket)?;
    }
    let answer = exchange(temporary.path_to(&socket.name), message, ANSWERING)?;
    check_answer(&answer)
}

/// The bytes of the command.
fn message(library: &str, options: &str) -> Result<Vec<u8>, AttachError> {
    for (what, text) in [
        ("the library's path", library),
        ("the agent's options", options),
    ] {
        if text.len() > MAX_ARGUMENT_BYTES {
            let bytes = text.len();
            return Err(AttachError::TooLong { what, bytes });
        }
        if text.contains('\0') {
            return Err(AttachError::ZeroByte(what));
        }
    }
    // `true`: the library is named by an absolute path.
    Ok(["1", "load", library, "true", options, ""]
        .join("\0")
        .into_bytes())
}

/// The socket that HotSpot listens on.
struct Socket<'a> {
    name: String,
    folder: &'a Folder,
    user: u32,
    id: u32,
}

impl Socket<'_> {
    /// Whether the socket exists and belongs to the JVM.
    fn is_there(&self) -> Result<bool, AttachError> {
        let found = match statat(self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(AttachError::Socket(error.into())),
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind == FileType::Socket && found.st_uid == self.user {
            return Ok(true);
        }
        Err(AttachError::NotTheSocket {
            id: self.id,
            user: self.user,
            found: format!("{kind:?} of user {}", found.st_uid),
        })
    }
}

/// Makes the JVM open its socket.
fn open_socket(process: &Process, socket: &Socket<'_>) -> Result<(), AttachError> {
    let info = &process.info;
    let name = format!(".attach_pid{}", socket.id);
    let owner = (info.status.user, info.status.group);
    // HotSpot looks in its working folder first, but the application may watch that folder.
    let in_temporary = AttachFile::make(socket.folder, &name, owner);
    let working_folder;
    let _attach_file = match in_temporary {
        Ok(attach_file) => attach_file,
        Err(_) => {
            let failed = |error| AttachError::NoAttachFile {
                id: socket.id,
                error,
            };
            let path = format!("/proc/{}/cwd", info.pid);
            working_folder = Folder::open(Path::new(&path)).map_err(failed)?;
            AttachFile::make(&working_folder, &name, owner).map_err(failed)?
        }
    };
    if !process.quit().map_err(AttachError::NoSignal)? {
        return Err(AttachError::QuitNotCaught);
    }
    let end = Instant::now() + OPENING;
    let mut pause = Duration::from_millis(10);
    while Instant::now() < end {
        if socket.is_there()? {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    Err(AttachError::NoSocket)
}

/// The file that tells HotSpot to open its socket on SIGQUIT; removed when dropped.
struct AttachFile<'a> {
    folder: &'a Folder,
    name: String,
}

impl<'a> AttachFile<'a> {
    fn make(folder: &'a Folder, name: &str, owner: (u32, u32)) -> io::Result<AttachFile<'a>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(
            folder,
            name,
            flags | OFlags::NOFOLLOW,
            Mode::RUSR | Mode::WUSR,
        ) {
            Ok(_) => {}
            // A tool that was killed has left it, or another tool attaches at this moment.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let attach_file = AttachFile {
            folder,
            name: name.to_owned(),
        };
        if rustix::process::geteuid().is_root() {
            let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            let no_link = AtFlags::SYMLINK_NOFOLLOW;
            chownat(folder, name, Some(user), Some(group), no_link)?;
        }
        Ok(attach_file)
    }
}

impl Drop for AttachFile<'_> {
    fn drop(&mut self) {
        // HotSpot may have removed it itself.
        let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

/// Sends a message and reads the answer to its end, all within `limit`: in a thread, because
/// connecting to a socket whose queue is full has no time limit of its own.
fn exchange(socket: PathBuf, message: Vec<u8>, limit: Duration) -> Result<Vec<u8>, AttachError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let answer = || -> io::Result<Vec<u8>> {
            let mut stream = UnixStream::connect(socket)?;
            stream.write_all(&message)?;
            let mut answer = Vec::new();
            match stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer) {
                // ClosedAtOnce away before it had read everything.
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
                _ => Ok(answer),
            }
        };
        // After the limit nobody receives it.
        let _ = sender.send(answer());
    });
    match receiver.recv_timeout(limit) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(AttachError::ClosedAtOnce)
        }
        Ok(Err(error)) => Err(AttachError::Socket(error)),
        Err(_) => Err(AttachError::NoAnswer),
    }
}

/// Whether the answer says that the agent was loaded. From JDK 9 on the text says so itself
/// (`return code: 0`); the number in front only says that the command was understood.
fn check_answer(answer: &[u8]) -> Result<(), AttachError> {
    if answer.is_empty() {
        return Err(AttachError::ClosedAtOnce);
    }
    let answer = String::from_utf8_lossy(answer);
    let (number, text) = answer.split_once('\n').unwrap_or((&answer, ""));
    let text = text.trim();
    match number.trim().parse::<i32>() {
        Ok(0) if text == "return code: 0" => Ok(()),
        Ok(number) if text.is_empty() => Err(AttachError::Refused(format!("error {number}"))),
        Ok(_) => Err(AttachError::Refused(printable(text))),
        Err(_) => Err(AttachError::NotUnderstood(printable(&answer))),
    }
}

#[cfg(test)]
mod tests;
