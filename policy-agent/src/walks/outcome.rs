//! The outcome of a walk: how it was made, or why there is no answer.

use std::time::{Duration, SystemTime};

use policy_jvm::forked_walk::{Answer, Walk, WalkError};
use policy_report::{WalkMade, WalkReply};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotWalk {
    /// A walk failed.
    #[error("{0}")]
    Walk(#[from] WalkError),
    /// A fork is not possible, and nobody has accepted the pause of a walk in place.
    #[error(
        "{why}. A walk in place would stop the JVM for {cost}: accept it with --in-place SECONDS, or take a heap dump (jcmd {pid} GC.heap_dump FILE), which stops it as well"
    )]
    NotForked {
        why: WalkError,
        cost: String,
        pid: u32,
    },
    /// The question.
    #[error("{0}")]
    Question(String),
}

/// How a walk was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Forked,
    InPlace,
}

impl How {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            How::Forked => "forked",
            How::InPlace => "in-place",
        }
    }
}

/// A walk that was made, whichever way.
pub(super) struct Walked {
    pub(super) answer: Answer,
    pub(super) made: WalkMade<'static>,
    /// All of the heap was walked, or all was found that was looked for.
    pub(super) is_complete: bool,
}

pub(super) fn refused(why: &dyn std::fmt::Display) -> WalkReply<'static> {
    WalkReply {
        error: Some(why.to_string().into()),
        ..WalkReply::default()
    }
}

pub(super) fn described(walk: Walk, how: How) -> (Answer, WalkMade<'static>) {
    let made = WalkMade {
        at: humantime::format_rfc3339_seconds(SystemTime::now())
            .to_string()
            .into(),
        how: how.as_str().into(),
        pause_ms: milliseconds(walk.pause),
        fork_ms: milliseconds(walk.fork),
        predicted_pause_ms: milliseconds(walk.predicted_pause),
        most_predicted_pause_ms: milliseconds(walk.most_predicted_pause),
        processor_share: (walk.processor_share).map(|share| (share * 1e4).round() / 1e4),
        references: walk.references,
        ..WalkMade::default()
    };
    (walk.answer, made)
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
