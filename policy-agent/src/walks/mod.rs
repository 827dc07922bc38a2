//! Who keeps memory alive: walks of the heap that a command asks for, or the policy for a suspect.
//!
//! `heapwarden paths` and `holders` load the library once more through HotSpot's attach protocol, with the option
//! `command=FOLDER`. [`command`] reads the question from the folder, and answers through a socket in it. A thread of
//! its own does the work, one at a time; the walk itself is [`policy_jvm::forked_walk`]. Here is what it has to
//! know: which classes and threads there are ([`survey`]), what is looked for ([`targets`]), and what the answer is
//! called ([`chains`], [`holders`]). Where it cannot fork, [`in_place`] decides for what the world is stopped.

mod automatic;
mod chains;
mod command;
mod holders;
mod in_place;
mod survey;
mod targets;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use policy_jvm::Jni;
use policy_jvm::forked_walk::{
    Answer, Fault, KnownClass, Limits, Question, Request, Targets, Walk, WalkError,
};
use policy_report::{Holders, Paths, WalkMade, WalkReply, WalkRequest, Walks as Document};

use crate::agent::Agent;
use crate::instances;
use crate::ledger::Tag;
use in_place::{Asked, Plan};
use survey::Survey;
use targets::Wanted;

pub(crate) use automatic::{Automatic, consider};
pub(crate) use command::command;
pub(crate) use targets::accounts_of_purses;

/// How many answers are kept.
const KEPT: usize = 5;
/// The longest pause for a fork, where nobody says otherwise.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// The longest life of a child.
const MAX_TIME: Duration = Duration::from_secs(600);
/// How long an answer waits for the names of classes, where no processor is left to name them.
const MAX_WAIT_FOR_NAMES: Duration = Duration::from_secs(30);
/// The first JDK whose walks mark what they visit beside the heap, not in it.
const FIRST_WITH_MARKS_OUTSIDE: u32 = 21;

/// The state of walks.
#[derive(Default)]
pub(crate) struct Walks {
    under_way: AtomicBool,
    kept: Mutex<VecDeque<WalkReply<'static>>>,
    pub(crate) automatic: Automatic,
    /// How many walks have had a fault, where a test wants one after the other.
    faults: AtomicUsize,
    /// Answers about single objects.
    pub(crate) instances: instances::Answers,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum CannotWalk {
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
enum How {
    Forked,
    InPlace,
}

impl How {
    fn as_str(self) -> &'static str {
        match self {
            How::Forked => "forked",
            How::InPlace => "in-place",
        }
    }
}

impl Walks {
    fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<WalkReply<'static>>> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn keep(&self, reply: &WalkReply<'static>) {
        let mut kept = self.kept();
        kept.push_front(reply.clone());
        kept.truncate(KEPT);
    }

    /// The last answers, as JSON with a line feed. On the listener's thread.
    pub(crate) fn document(&self) -> Vec<u8> {
        let document = Document {
            walks: self.kept().iter().cloned().collect(),
        };
        let mut json = serde_json::to_vec(&document).unwrap_or_default();
        json.push(b'\n');
        json
    }
}

/// Gives the turn back.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn take_turn(agent: &Agent) -> Option<Turn<'_>> {
    let flag = &agent.walks.under_way;
    (!flag.swap(true, Ordering::AcqRel)).then_some(Turn(flag))
}

/// Answers a question. On an attached thread of the agent; may take minutes.
fn answer(
    agent: &Agent,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> WalkReply<'static> {
    let Some(_turn) = take_turn(agent) else {
        return refused(&WalkError::Busy);
    };
    // An object that was allocated a moment ago is found by its class's name, too.
    agent.wait_for_class_names(MAX_WAIT_FOR_NAMES, is_cancelled);
    let answered = match &*request.question {
        "paths" => paths(agent, jni, request, is_cancelled).map(|paths| WalkReply {
            paths: Some(paths),
            ..WalkReply::default()
        }),
        "holders" => held(agent, jni, request, is_cancelled).map(|holders| WalkReply {
            holders: Some(holders),
            ..WalkReply::default()
        }),
        "instances" => instances::answer(agent, jni, request, is_cancelled)
            .map(|instances| WalkReply {
                instances: Some(instances),
                ..WalkReply::default()
            })
            .map_err(CannotWalk::Question),
        other => Err(CannotWalk::Question(format!(
            "the question {other:?} is not known to this version of the agent"
        ))),
    };
    match answered {
        Ok(reply) => {
            match &reply.instances {
                Some(instances) => agent.walks.instances.keep(instances),
                None => agent.walks.keep(&reply),
            }
            reply
        }
        Err(why) => refused(&why),
    }
}

fn refused(why: &dyn std::fmt::Display) -> WalkReply<'static> {
    WalkReply {
        error: Some(why.to_string().into()),
        ..WalkReply::default()
    }
}

fn paths(
    agent: &Agent,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Paths<'static>, CannotWalk> {
    let wanted = Wanted::find(agent, request).map_err(CannotWalk::Question)?;
    let survey = Survey::make(
        agent,
        jni,
        &survey::Asks::of_paths(request.retired, &wanted),
    );
    let tags = wanted.tags();
    let accounts = wanted.accounts();
    let asked = match request.retired {
        true => Asked::Retired,
        false => Asked::Paths {
            survey: &survey,
            accounts: &accounts,
        },
    };
    let sought = Sought {
        classes: survey.classes(),
        targets: Targets::Tags(&tags),
        question: Question::Paths,
        asked,
    };
    let walked = walk(agent, jni, request, sought, is_cancelled)?;
    let Answer::Paths(found) = walked.answer else {
        return Err(WalkError::NoAnswer.into());
    };
    let names = survey.names(agent, jni, &found);
    drop(survey);
    let missing = (tags.len() as u64).saturating_sub(found.len() as u64);
    Ok(Paths {
        walk: walked.made,
        looked_for: tags.len() as u64,
        unreached: if walked.is_complete { missing } else { 0 },
        undecided: if walked.is_complete { 0 } else { missing },
        paths: chains::merged(&found, &wanted, &names),
    })
}

fn held(
    agent: &Agent,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Holders<'static>, CannotWalk> {
    let records = holders::Records::read(agent);
    let survey = Survey::make(
        agent,
        jni,
        &survey::Asks::of_holders(records.largest(agent)),
    );
    let (mask, value) = Tag::OF_OBJECTS;
    let owned = survey.owned();
    let question = Question::Holders {
        holders: survey.holder_count(),
        owned: &owned,
    };
    let targets = Targets::Masked {
        mask,
        value,
        // Some more may come between the reading and the walk.
        most: 2 * records.count() + 100_000,
    };
    let sought = Sought {
        classes: survey.classes(),
        targets,
        question,
        asked: Asked::Holders,
    };
    let walked = walk(agent, jni, request, sought, is_cancelled)?;
    let Answer::Held(found) = walked.answer else {
        return Err(WalkError::NoAnswer.into());
    };
    let (rows, made) = records.divided(&found, survey.holders());
    drop(survey);
    Ok(Holders {
        walk: walked.made,
        holders: rows,
        made,
    })
}

/// The targets of a walk, the classes that it knows, and the question.
struct Sought<'a> {
    classes: Vec<KnownClass>,
    targets: Targets<'a>,
    question: Question<'a>,
    asked: Asked<'a>,
}

/// A walk that was made, whichever way.
struct Walked {
    answer: Answer,
    made: WalkMade<'static>,
    /// All of the heap was walked, or all was found that was looked for.
    is_complete: bool,
}

/// Walks forked, or in place where that is not possible and the pause is accepted.
fn walk(
    agent: &Agent,
    jni: &Jni,
    request: &WalkRequest<'_>,
    sought: Sought<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Walked, CannotWalk> {
    let fault = match agent.options().test_walk_faults {
        true => {
            let number = agent.walks.faults.fetch_add(1, Ordering::Relaxed);
            Fault::ALL.get(number).copied()
        }
        false => None,
    };
    let mut of = Request {
        classes: sought.classes,
        targets: sought.targets,
        question: sought.question,
        limits: Limits {
            max_pause: request
                .max_pause_ms
                .map_or(MAX_PAUSE, Duration::from_millis),
            max_time: match fault {
                Some(Fault::Late) => Duration::from_millis(10),
                _ => MAX_TIME,
            },
            fault,
            marks_in_heap: agent.release() < FIRST_WITH_MARKS_OUTSIDE,
        },
    };
    let why = match agent.jvmti.walk_in_child(of.clone(), is_cancelled) {
        Ok(walk) => {
            let (answer, made) = described(walk, How::Forked);
            return Ok(Walked {
                answer,
                made,
                is_complete: true,
            });
        }
        Err(
            why @ (WalkError::SharedHeap
            | WalkError::PauseTooLong { .. }
            | WalkError::TooLittleMemory { .. }
            | WalkError::ForkRefused(_)),
        ) => why,
        Err(why) => return Err(why.into()),
    };
    let plan = Plan::make(agent, &sought.asked, why == WalkError::SharedHeap);
    let Some(accepted) = request.in_place_ms.map(Duration::from_millis) else {
        return Err(CannotWalk::NotForked {
            why,
            cost: plan.cost(),
            pid: std::process::id(),
        });
    };
    of.limits.max_pause = accepted;
    plan.walk(agent, jni, &of, &why, is_cancelled)
}

fn described(walk: Walk, how: How) -> (Answer, WalkMade<'static>) {
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

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
