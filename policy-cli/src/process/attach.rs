//! HotSpot's attach protocol, spoken directly.
//!
//! `jcmd` speaks the same protocol, and is not used: a runtime made by `jlink` or of a slim image
//! has none, one of another JDK may refuse, it cannot be told to wait less long, and it splits its
//! arguments at blanks. The protocol is old and small (JDK 6 to 25 speak version 1 of it):
//!
//! 1. A file `.attach_pidN` in `/tmp`, or in the JVM's working folder, owned by its user.
//! 2. SIGQUIT. HotSpot sees the file, and instead of dumping its threads it starts to listen on
//!    `/tmp/.java_pidN`. (N is the id that the JVM itself sees, `/tmp` its own.)
//! 3. Version, command and three arguments, each ended by a zero byte. It answers with a number
//!    on a line of its own, 0 for a command that was understood, and with text.
//!
//! SIGQUIT ends a process that does not catch it. So it is sent only to a process that has mapped
//! `libjvm.so`, whose kernel entry says that it catches the signal, and that cannot have been
//! replaced by another one meanwhile ([`Process::quit`]); once, and never where the socket is
//! there already.

use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::facts::Process;
use super::printable;
use super::root::Folder;

/// Longest argument that HotSpot reads before JDK 25, in bytes.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 1024;
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// How long a JVM may take to open its socket: it has to reach a safepoint first.
const OPENING: Duration = Duration::from_secs(30);
/// How long the agent may take to load: it classifies the classes that are there.
const ANSWERING: Duration = Duration::from_secs(120);

/// Why the JVM could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// HotSpot would cut it, or refuse.
    #[error(
        "{what} is {bytes} bytes long, and HotSpot takes {MAX_ARGUMENT_BYTES} at most: choose a shorter path"
    )]
    TooLong { what: &'static str, bytes: usize },
    /// A zero byte ends an argument.
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
    /// The JVM's `/tmp`.
    #[error("the JVM's /tmp cannot be opened ({0}): it is where HotSpot puts its socket")]
    NoTemporaryFolder(io::Error),
    /// Something else has the socket's name.
    #[error(
        "/tmp/.java_pid{id} is not a socket of the JVM's user {user} (it is {found}): \
         it is not the JVM's, and was not used; remove it if it is a left-over"
    )]
    NotTheSocket { id: u32, user: u32, found: String },
    /// No place for the file.
    #[error(
        "the file .attach_pid{id} can be made neither in the JVM's /tmp nor in its working folder ({error})"
    )]
    NoTrigger { id: u32, error: io::Error },
    /// It would end the process.
    #[error(
        "the JVM does not catch SIGQUIT (-Xrs, -XX:+ReduceSignalUsage, or it has only begun to start), \
         so it cannot be asked to listen, and was left alone"
    )]
    QuitNotCaught,
    /// `kill`
    #[error("SIGQUIT cannot be sent ({0}): run this as the JVM's user, or as root")]
    NoSignal(io::Error),
    /// No socket after the signal.
    #[error(
        "the JVM has not opened its socket {OPENING:?} after SIGQUIT: it was started with \
         -XX:+DisableAttachMechanism (then it has printed its threads), or it does not get on"
    )]
    NoSocket,
    /// `connect`, `write`, `read`
    #[error("the JVM's socket failed: {0}")]
    Socket(io::Error),
    /// Connected, and nothing came back.
    #[error("the JVM has not answered within {ANSWERING:?}; it may still load the agent")]
    NoAnswer,
    /// Closed at once.
    #[error(
        "the JVM closed its socket without an answer: it does not take orders of this user; \
         run this as the JVM's own user and group, in its own container"
    )]
    Turned,
    /// Not the protocol.
    #[error("the JVM's answer was not understood: {0}")]
    Garbled(String),
    /// The JVM understood, and did not load.
    #[error("the JVM refused: {0}")]
    Refused(String),
}

/// Loads a native agent into a running HotSpot, and waits until its `Agent_OnAttach` is through.
///
/// # Errors
/// See [`AttachError`]. Except after [`AttachError::NoAnswer`], nothing was loaded.
pub(crate) fn load(process: &Process, library: &str, options: &str) -> Result<(), AttachError> {
    let message = message(library, options)?;
    let id = process.facts.status.own_id();
    let temporary = process
        .root
        .folder(Path::new("/tmp"))
        .map_err(AttachError::NoTemporaryFolder)?;
    let socket = Socket {
        name: format!(".java_pid{id}"),
        folder: &temporary,
        user: process.facts.status.user,
        id,
    };
    if !socket.is_there()? {
        summon(process, &socket)?;
    }
    let answer = exchange(temporary.path_to(&socket.name), message, ANSWERING)?;
    judge(&answer)
}

/// The command as it is sent.
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
    /// Whether it is there, and the JVM's own.
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
fn summon(process: &Process, socket: &Socket<'_>) -> Result<(), AttachError> {
    let facts = &process.facts;
    let name = format!(".attach_pid{}", socket.id);
    let owner = (facts.status.user, facts.status.group);
    // HotSpot looks in its working folder first, but that is the application's, which may watch it.
    let in_temporary = Trigger::make(socket.folder, &name, owner);
    let working_folder;
    let _trigger = match in_temporary {
        Ok(trigger) => trigger,
        Err(_) => {
            let failed = |error| AttachError::NoTrigger {
                id: socket.id,
                error,
            };
            let path = format!("/proc/{}/cwd", facts.pid);
            working_folder = Folder::open(Path::new(&path)).map_err(failed)?;
            Trigger::make(&working_folder, &name, owner).map_err(failed)?
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

/// The file that tells HotSpot what a SIGQUIT is for; removed when dropped.
struct Trigger<'a> {
    folder: &'a Folder,
    name: String,
}

impl<'a> Trigger<'a> {
    fn make(folder: &'a Folder, name: &str, owner: (u32, u32)) -> io::Result<Trigger<'a>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(
            folder,
            name,
            flags | OFlags::NOFOLLOW,
            Mode::RUSR | Mode::WUSR,
        ) {
            Ok(_) => {}
            // Left over from a tool that was killed, or of one that does the same just now.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let trigger = Trigger {
            folder,
            name: name.to_owned(),
        };
        if rustix::process::geteuid().is_root() {
            let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            let no_link = AtFlags::SYMLINK_NOFOLLOW;
            chownat(folder, name, Some(user), Some(group), no_link)?;
        }
        Ok(trigger)
    }
}

impl Drop for Trigger<'_> {
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
                // Turned away before it had read everything.
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
                _ => Ok(answer),
            }
        };
        // Nobody waits any more after the limit.
        let _ = sender.send(answer());
    });
    match receiver.recv_timeout(limit) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Err(AttachError::Turned),
        Ok(Err(error)) => Err(AttachError::Socket(error)),
        Err(_) => Err(AttachError::NoAnswer),
    }
}

/// Whether the answer says that the agent was loaded. From JDK 9 on the text says so itself
/// (`return code: 0`); the number in front only says that the command was understood.
fn judge(answer: &[u8]) -> Result<(), AttachError> {
    if answer.is_empty() {
        return Err(AttachError::Turned);
    }
    let answer = String::from_utf8_lossy(answer);
    let (number, text) = answer.split_once('\n').unwrap_or((&answer, ""));
    let text = text.trim();
    match number.trim().parse::<i32>() {
        Ok(0) if text == "return code: 0" => Ok(()),
        Ok(number) if text.is_empty() => Err(AttachError::Refused(format!("error {number}"))),
        Ok(_) => Err(AttachError::Refused(printable(text))),
        Err(_) => Err(AttachError::Garbled(printable(&answer))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_command_is_five_texts_with_a_zero_byte_behind_each() {
        let sent = message("/opt/a b/lib.so", "config=/c,listen=off").unwrap();
        assert_eq!(
            sent,
            b"1\0load\0/opt/a b/lib.so\0true\0config=/c,listen=off\0"
        );
        assert!(matches!(
            message("/l", &"x".repeat(1025)),
            Err(AttachError::TooLong { bytes: 1025, .. })
        ));
        assert!(matches!(message("/l\0", ""), Err(AttachError::ZeroByte(_))));
    }

    #[test]
    fn answers_are_judged() {
        assert!(judge(b"0\nreturn code: 0\n").is_ok());
        let refused = |answer: &[u8]| match judge(answer) {
            Err(AttachError::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        let disabled = b"0\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.\n";
        assert!(refused(disabled).contains("EnableDynamicAgentLoading"));
        assert_eq!(
            refused(b"0\n/l.so: cannot open\x1b shared object\n"),
            "/l.so: cannot open\\u{1b} shared object"
        );
        assert_eq!(refused(b"101\n"), "error 101");
        assert_eq!(
            refused(b"0\nreturn code: 4294967295\n"),
            "return code: 4294967295"
        );
        assert!(matches!(judge(b""), Err(AttachError::Turned)));
        assert!(matches!(
            judge(b"\xff\xfe\x00"),
            Err(AttachError::Garbled(_))
        ));
    }

    /// A socket whose peer does `act` with the first connection.
    fn peer(act: impl FnOnce(UnixStream) + Send + 'static) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || act(listener.accept().unwrap().0));
        (folder, path)
    }

    #[test]
    fn a_message_is_exchanged() {
        let (_folder, path) = peer(|mut stream| {
            let mut heard = [0; 4];
            stream.read_exact(&mut heard).unwrap();
            stream.write_all(b"0\n").unwrap();
            stream.write_all(&heard).unwrap();
        });
        let answer = exchange(path, b"ping".to_vec(), Duration::from_secs(60)).unwrap();
        assert_eq!(answer, b"0\nping");
    }

    #[test]
    fn a_peer_that_turns_us_away_or_never_ends_is_told_from_an_answer() {
        let (_folder, path) = peer(drop);
        let turned = exchange(path, vec![b'x'; 1 << 20], Duration::from_secs(60));
        assert!(
            matches!(turned, Err(AttachError::Turned))
                || turned.is_ok_and(|answer| answer.is_empty())
        );
        let (_folder, path) = peer(|mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
        let endless = exchange(path, b"x".to_vec(), Duration::from_secs(60)).unwrap();
        assert_eq!(endless.len() as u64, MAX_ANSWER_BYTES);
        let (_folder, path) = peer(|stream| {
            std::thread::park();
            drop(stream);
        });
        let silent = exchange(path, b"x".to_vec(), Duration::from_millis(50));
        assert!(matches!(silent, Err(AttachError::NoAnswer)));
    }

    #[test]
    fn only_a_socket_of_the_jvms_user_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let socket = |user| Socket {
            name: ".java_pid7".to_owned(),
            folder: &folder,
            user,
            id: 7,
        };
        let path = directory.path().join(".java_pid7");
        assert!(!socket(own).is_there().unwrap());
        std::os::unix::fs::symlink("/tmp", &path).unwrap();
        assert!(matches!(
            socket(own).is_there(),
            Err(AttachError::NotTheSocket { .. })
        ));
        std::fs::remove_file(&path).unwrap();
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(socket(own).is_there().unwrap());
        assert!(matches!(
            socket(own + 1).is_there(),
            Err(AttachError::NotTheSocket { .. })
        ));
    }

    #[test]
    fn the_trigger_goes_when_it_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let own = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let path = directory.path().join(".attach_pid7");
        let trigger = Trigger::make(&folder, ".attach_pid7", own).unwrap();
        assert!(path.exists());
        drop(trigger);
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        drop(Trigger::make(&folder, ".attach_pid7", own).unwrap());
        assert!(!path.exists(), "a left-over goes as well");
    }
}
