//! The answer to a question: one at a time, from a walk of the heap, forked or in place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use policy_jvm::Jni;
use policy_jvm::forked_walk::{
    Answer, Fault, KnownClass, Limits, Question, Request, Targets, WalkError,
};
use policy_report::{Holders, Paths, WalkReply, WalkRequest, Walks as Document};

use crate::ground::Ground;
use crate::instances;
use crate::ledger::Tag;

use super::in_place::{Asked, Plan};
use super::outcome::{CannotWalk, How, Walked, described, refused};
use super::survey::Survey;
use super::targets::Wanted;
use super::tries::Tries;
use super::{chains, holders, survey};

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
    pub(super) tries: Tries,
    /// How many walks have had a fault, where a test wants one after the other.
    faults: AtomicUsize,
    /// Answers about single objects.
    pub(crate) instances: instances::Answers,
}

impl Walks {
    pub(super) fn is_under_way(&self) -> bool {
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

fn take_turn(walks: &Walks) -> Option<Turn<'_>> {
    let flag = &walks.under_way;
    (!flag.swap(true, Ordering::AcqRel)).then_some(Turn(flag))
}

/// Answers a question. On an attached thread of the agent; may take minutes.
pub(super) fn answer(
    ground: &Ground,
    walks: &Walks,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> WalkReply<'static> {
    let Some(_turn) = take_turn(walks) else {
        return refused(&WalkError::Busy);
    };
    // An object that was allocated a moment ago is found by its class's name, too.
    ground.wait_for_class_names(MAX_WAIT_FOR_NAMES, is_cancelled);
    let answered = match &*request.question {
        "paths" => paths(ground, walks, jni, request, is_cancelled).map(|paths| WalkReply {
            paths: Some(paths),
            ..WalkReply::default()
        }),
        "holders" => held(ground, walks, jni, request, is_cancelled).map(|holders| WalkReply {
            holders: Some(holders),
            ..WalkReply::default()
        }),
        "instances" => instances::answer(ground, jni, request, is_cancelled)
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
                Some(instances) => walks.instances.keep(instances),
                None => walks.keep(&reply),
            }
            reply
        }
        Err(why) => refused(&why),
    }
}

fn paths(
    ground: &Ground,
    walks: &Walks,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Paths<'static>, CannotWalk> {
    let wanted = Wanted::find(ground, request).map_err(CannotWalk::Question)?;
    let survey = Survey::make(
        ground,
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
    let walked = walk(ground, walks, jni, request, sought, is_cancelled)?;
    let Answer::Paths(found) = walked.answer else {
        return Err(WalkError::NoAnswer.into());
    };
    let names = survey.names(ground, jni, &found);
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
    ground: &Ground,
    walks: &Walks,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Holders<'static>, CannotWalk> {
    let records = holders::Records::read(ground);
    let survey = Survey::make(
        ground,
        jni,
        &survey::Asks::of_holders(records.largest(ground)),
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
    let walked = walk(ground, walks, jni, request, sought, is_cancelled)?;
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

/// Walks forked, or in place where that is not possible and the pause is accepted.
fn walk(
    ground: &Ground,
    walks: &Walks,
    jni: &Jni,
    request: &WalkRequest<'_>,
    sought: Sought<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Walked, CannotWalk> {
    let fault = match ground.options().test_walk_faults {
        true => {
            let number = walks.faults.fetch_add(1, Ordering::Relaxed);
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
            marks_in_heap: ground.release() < FIRST_WITH_MARKS_OUTSIDE,
        },
    };
    let why = match ground.jvmti.walk_in_child(of.clone(), is_cancelled) {
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
    let plan = Plan::make(ground, &sought.asked, why == WalkError::SharedHeap);
    let Some(accepted) = request.in_place_ms.map(Duration::from_millis) else {
        return Err(CannotWalk::NotForked {
            why,
            cost: plan.cost(),
            pid: std::process::id(),
        });
    };
    of.limits.max_pause = accepted;
    plan.walk(ground, jni, &of, &why, is_cancelled)
}
