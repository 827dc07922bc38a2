//! The parent of a child that walks: it waits for the answer, looks after memory and time, and reaps.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::error::WalkError;
use super::machine::FreeMemory;
use super::system::{self, Child, Pid};

/// How often the parent looks at its child's memory and time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a child may take to end after it was asked to.
pub(super) const ENDING: Duration = Duration::from_secs(2);

/// The parent's side of a forked walk.
pub(super) struct Parent {
    pub(super) child: Pid,
    /// Where the answer comes from.
    pub(super) pipe: RawFd,
    /// The bytes that an answer may have at the most.
    pub(super) most_bytes: usize,
    pub(super) began: Instant,
    pub(super) max_time: Duration,
    pub(super) memory: FreeMemory,
}

impl Parent {
    /// Reads the answer to its end and reaps the child, or ends it.
    pub(super) fn wait(&self, is_cancelled: &impl Fn() -> bool) -> Result<Vec<u8>, WalkError> {
        let mut answer = Vec::new();
        let mut piece = vec![0; 64 << 10];
        let failed = loop {
            match system::receive(self.pipe, &mut piece, LOOK_EVERY) {
                Some(0) => break None,
                Some(count) => answer.extend_from_slice(&piece[..count]),
                None => {}
            }
            if answer.len() > self.most_bytes {
                break Some(WalkError::NoAnswer);
            }
            if self.began.elapsed() > self.max_time {
                break Some(WalkError::TooSlow(self.max_time));
            }
            if self.memory.bytes() == 0 {
                break Some(WalkError::MemoryRanShort);
            }
            if is_cancelled() {
                break Some(WalkError::Cancelled);
            }
        };
        // The child sees that its reader is gone, ends the walker, and exits.
        system::close(self.pipe);
        let status = self.reap();
        self.reap_walker(&answer);
        match (failed, status) {
            (Some(why), _) => Err(why),
            (None, Child::Ended(status)) if system::signal_of(status) != 0 => {
                Err(WalkError::Killed(system::signal_of(status)))
            }
            _ => Ok(answer),
        }
    }

    /// Waits until the child has ended, and kills it if that takes too long.
    fn reap(&self) -> Child {
        let end = Instant::now() + ENDING;
        loop {
            match system::look_at(self.child) {
                Child::Runs if Instant::now() < end => system::sleep(Duration::from_millis(1)),
                Child::Runs => system::end(self.child),
                ended => return ended,
            }
        }
    }

    /// Where this process adopts orphans, as the first one of a container does, it also has to reap the walker of
    /// a watcher that was killed.
    fn reap_walker(&self, answer: &[u8]) {
        let Some(id) = answer.first_chunk::<8>().map(|id| u64::from_le_bytes(*id)) else {
            return;
        };
        let Some(walker) = Pid::try_from(id).ok().filter(|&id| id > 0) else {
            return;
        };
        let end = Instant::now() + ENDING;
        while system::look_at(walker) == Child::Runs && Instant::now() < end {
            system::sleep(Duration::from_millis(1));
        }
    }
}
