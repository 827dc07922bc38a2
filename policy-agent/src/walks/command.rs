//! A question that comes through the attach protocol, and the way back of its answer.
//!
//! The command makes a folder in the JVM's `/tmp` to which only the JVM's user may write, with the question as
//! `request.json` and a socket `reply`. The agent connects to the socket, and sends one line of JSON. If the command
//! goes away, the walk is cancelled.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy_report::{WalkReply, WalkRequest};

use crate::ground::Ground;

use super::answering::{Walks, answer};
use super::outcome::refused;

/// Longest question that is read, in bytes.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// How long the command may take to receive the answer.
const SENDING: Duration = Duration::from_secs(10);

/// Begins to answer the question in a folder. On the thread that handles attach commands, which it keeps for a
/// moment only.
pub(crate) fn command(ground: &'static Ground, walks: &'static Walks, folder: PathBuf) {
    // First, because the command removes the folder once the agent is connected.
    let request = read(&folder.join("request.json"));
    let stream = match UnixStream::connect(folder.join("reply")) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(
                "a command cannot be answered: its socket in {} cannot be connected to ({error})",
                folder.display()
            );
            return;
        }
    };
    let back = stream.try_clone();
    let spawned = ground.vm().spawn("heapwarden-walk", move |jni| {
        let reply = match request {
            Ok(request) => {
                let is_gone = || is_closed(&stream) || ground.stopping();
                answer(ground, walks, jni, &request, &is_gone)
            }
            Err(error) => refused(&format!("the question cannot be read ({error})")),
        };
        ground.costs.thread_was("walk");
        if let Some(why) = &reply.error {
            tracing::info!("a walk of the heap gave no answer: {why}");
        }
        // A command that is gone needs no answer.
        let _ = send(&stream, &reply);
    });
    if let Err(error) = spawned {
        tracing::warn!("a command cannot be answered: no thread can be started ({error})");
        if let Ok(stream) = back {
            let why = format!("the JVM cannot start a thread for the walk ({error})");
            let _ = send(&stream, &refused(&why));
        }
    }
}

fn read(path: &Path) -> io::Result<WalkRequest<'static>> {
    let mut text = Vec::new();
    File::open(path)?
        .take(MAX_REQUEST_BYTES)
        .read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &UnixStream) -> bool {
    let mut byte = [0];
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let mut reader = stream;
    match reader.read(&mut byte) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

fn send(mut stream: &UnixStream, reply: &WalkReply<'_>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(SENDING))?;
    let mut line = serde_json::to_vec(reply).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)
}
