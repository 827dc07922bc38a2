//! The way of a question to the agent, and of the answer back.
//!
//! The agent's library is loaded once more, through the attach protocol, with the option `command=FOLDER`. The folder
//! is made in the JVM's `/tmp`, and only the JVM's user may use it. It has the question, and a socket to which the
//! agent connects. Once the agent has, the folder is removed. If this command ends, the socket closes, and the agent
//! ends the walk.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use policy_report::{WalkReply, WalkRequest};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat, unlinkat};

use crate::attach::preflight::{self, Caller, CannotAttach};
use crate::process::attach_protocol::{self, AttachError};
use crate::process::{Folder, InspectError, Process, printable};

/// Most folders of one JVM that earlier commands may have left.
const MAX_LEFT_OVER: u32 = 100;
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// How long the agent may take to connect: it does so before the attach protocol's answer.
const CONNECTING: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// No process.
    #[error("{0}")]
    Process(#[from] InspectError),
    /// A process that cannot be asked.
    #[error("{title} cannot be asked: {why}")]
    CannotAsk { title: String, why: CannotAttach },
    /// The agent is not there.
    #[error(
        "Heapwarden is not loaded in {title}: start it with -agentpath, or run heapwarden attach {pid}"
    )]
    NotLoaded { title: String, pid: u32 },
    /// The library cannot be loaded once more.
    #[error(
        "the agent cannot be asked: its library {library} was replaced while the JVM runs; that JVM must be started again"
    )]
    Replaced { library: String },
    /// The attach protocol.
    #[error("{title} was not asked: {why}")]
    Attach { title: String, why: AttachError },
    /// The folder.
    #[error("cannot write to the JVM's /tmp ({0})")]
    Folder(io::Error),
    /// No connection.
    #[error(
        "the agent did not answer: it is older than this command, or it does not run (see the JVM's log)"
    )]
    NotConnected,
    /// The connection broke.
    #[error(
        "the agent's answer broke off ({0}): the JVM has ended, or the agent has failed (see the JVM's log)"
    )]
    Broken(io::Error),
}

/// Asks the agent in a JVM, and waits for the answer, which may take minutes.
pub(super) fn ask(pid: u32, request: &WalkRequest<'_>) -> Result<WalkReply<'static>, AskError> {
    let process = Process::find(pid)?;
    let info = &process.info;
    if let Some(why) = preflight::check_for_commands(info, Caller::own()) {
        let title = info.title();
        return Err(AskError::CannotAsk { title, why });
    }
    let Some(library) = info.files.libheapwarden() else {
        let title = info.title();
        return Err(AskError::NotLoaded { title, pid });
    };
    // The kernel marks a mapped file that is not there any more.
    if library.ends_with(" (deleted)") {
        let library = printable(library);
        return Err(AskError::Replaced { library });
    }
    let place = Place::make(&process, request).map_err(AskError::Folder)?;
    let options = format!("command={}", place.path);
    let loaded = attach_protocol::load(&process, library, &options);
    loaded.map_err(|why| AskError::Attach {
        title: info.title(),
        why,
    })?;
    let mut stream = place.connected().ok_or(AskError::NotConnected)?;
    drop(place);
    let mut answer = Vec::new();
    let read = (&mut stream)
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer);
    read.map_err(AskError::Broken)?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Broken(error.into()))
}

/// The folder with the question and the socket; removed when it is dropped.
struct Place {
    temporary: Folder,
    folder: String,
    /// As the JVM sees it.
    path: String,
    listener: Option<UnixListener>,
}

impl Place {
    fn make(process: &Process, request: &WalkRequest<'_>) -> io::Result<Place> {
        let temporary = process.root.folder(Path::new("/tmp"))?;
        let status = &process.info.status;
        for attempt in 0..MAX_LEFT_OVER {
            let folder = format!("heapwarden-walk-{}-{attempt}", status.own_id());
            match mkdirat(&temporary, &folder, Mode::RWXU) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut place = Place {
                path: format!("/tmp/{folder}"),
                temporary,
                folder,
                listener: None,
            };
            place.fill(request)?;
            // At last, so that nobody else can put anything in it before.
            place.give_to((status.user, status.group))?;
            return Ok(place);
        }
        let message =
            "there are a hundred folders /tmp/heapwarden-walk-* of earlier commands; remove them";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    }

    fn fill(&mut self, request: &WalkRequest<'_>) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(
            &self.temporary,
            self.within("request.json"),
            flags | OFlags::NOFOLLOW,
            Mode::RUSR | Mode::WUSR,
        )?;
        std::fs::File::from(file).write_all(&serde_json::to_vec(request)?)?;
        let socket = self.temporary.path_to(&self.within("reply"));
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn within(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn give_to(&self, (user, group): (u32, u32)) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        for name in [
            self.within("request.json"),
            self.within("reply"),
            self.folder.clone(),
        ] {
            let no_link = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&self.temporary, name, Some(user), Some(group), no_link)?;
        }
        Ok(())
    }

    /// The agent's connection.
    fn connected(&self) -> Option<UnixStream> {
        let listener = self.listener.as_ref()?;
        let end = Instant::now() + CONNECTING;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).ok()?;
                    return Some(stream);
                }
                Err(_) if Instant::now() >= end => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // If this fails, a folder stays in /tmp.
        for name in ["request.json", "reply"] {
            let _ = unlinkat(&self.temporary, self.within(name), AtFlags::empty());
        }
        let _ = unlinkat(&self.temporary, &self.folder, AtFlags::REMOVEDIR);
    }
}
