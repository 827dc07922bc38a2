//! The thread that makes snapshots.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use policy_config::Snapshots;
use policy_core::cohorts::{Mark, Marks};
use policy_jvm::guard;

use crate::ground::Ground;
use crate::report::profile::Stacks;
use crate::report::{Requested, Wanted, profile};

use super::desk::{Desk, Work};
use super::document::{self, About, ThisRun};
use super::files::Files;
use super::reader::Reader;

/// The state that the agent keeps for snapshots.
#[derive(Debug)]
pub(crate) struct SnapshotMaker {
    pub(crate) desk: Desk,
    run: ThisRun,
    /// The snapshots of this run; the thread alone.
    marks: Mutex<Marks>,
}

impl SnapshotMaker {
    pub(crate) fn new() -> SnapshotMaker {
        SnapshotMaker {
            desk: Desk::default(),
            run: ThisRun {
                // Its keys are random, from the system.
                id: format!("{:016x}", RandomState::new().build_hasher().finish()),
                started: SystemTime::now(),
            },
            marks: Mutex::default(),
        }
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The sources of a snapshot.
struct Making<'a> {
    ground: &'static Ground,
    maker: &'a SnapshotMaker,
    reader: &'a Reader,
    counted: &'a dyn Fn() -> Stacks,
}

/// The files as the policy in force wants them, and when the next is due.
struct Schedule {
    settings: Option<Snapshots>,
    files: Option<Files>,
    last: Instant,
    /// The latest failed: it is told once.
    is_failing: bool,
}

impl Schedule {
    fn adopt(&mut self, making: &Making<'_>) {
        let ground = making.ground;
        let settings = ground.policy.in_force().snapshots.clone();
        if settings == self.settings {
            return;
        }
        let every = |of: &Option<Snapshots>| of.as_ref().and_then(|one| one.every);
        if every(&settings) != every(&self.settings) {
            self.last = Instant::now();
        }
        let directory = settings.as_ref().map(|one| one.directory.as_path());
        if directory != self.files.as_ref().map(Files::directory) {
            if let Some(files) = &mut self.files {
                files.close();
            }
            let run = &making.maker.run.id;
            let program = &ground.process().program;
            self.files = directory.map(|folder| Files::new(folder, program, run));
        }
        // A new policy is a new chance, so a failure is told again.
        self.is_failing = false;
        self.settings = settings;
    }

    fn due(&self) -> Option<Instant> {
        Some(self.last + self.settings.as_ref()?.every?)
    }
}

/// Runs until the JVM ends. `counted`: the stacks of contexts.
pub(crate) fn run(
    ground: &'static Ground,
    maker: &SnapshotMaker,
    reader: &Reader,
    counted: &dyn Fn() -> Stacks,
) {
    let desk = &maker.desk;
    let making = Making {
        ground,
        maker,
        reader,
        counted,
    };
    let _open = desk.open();
    let mut schedule = Schedule {
        settings: None,
        files: None,
        last: Instant::now(),
        is_failing: false,
    };
    loop {
        schedule.adopt(&making);
        match desk.wait(schedule.due()) {
            Work::Look => {}
            Work::Make(wanted) => {
                let begun = Instant::now();
                let answer = answer(&making, schedule.files.as_ref(), &wanted);
                desk.made(wanted, begun, answer);
            }
            Work::Due => {
                schedule.last = Instant::now();
                write(&making, &mut schedule, "scheduled");
            }
            Work::Exit => {
                schedule.adopt(&making);
                if schedule.settings.as_ref().is_some_and(|one| one.at_exit) {
                    write(&making, &mut schedule, "exit");
                }
                if let Some(files) = &mut schedule.files {
                    files.close();
                }
                desk.exited();
                return;
            }
        }
        ground.costs.thread_is("snapshots");
    }
}

fn answer(making: &Making<'_>, files: Option<&Files>, wanted: &Wanted) -> Requested {
    let bytes = contained(|| match wanted {
        Wanted::Document => make(making, "asked").map(Some),
        Wanted::Profile => Ok(Some(profile(making))),
        Wanted::Files => document::files(files).map(Some),
        Wanted::File(name) => files.map_or(Ok(None), |files| files.read(name)),
    });
    match bytes {
        Ok(Some(bytes)) => Requested::Made(bytes.into()),
        Ok(None) => Requested::Missing,
        Err(error) => Requested::Failed(error.to_string()),
    }
}

/// A panic, which is a bug, costs one snapshot.
fn contained<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    guard::contain(work)
        .unwrap_or_else(|| Err(io::Error::other("making it failed, which is a bug")))
}

/// The document of now, as gzip.
fn make(making: &Making<'_>, why: &'static str) -> io::Result<Vec<u8>> {
    let Making {
        ground,
        maker,
        reader,
        ..
    } = making;
    let at = SystemTime::now();
    let boundary = ground.core.ledger.epochs().boundary();
    let mark = boundary.map(|epoch| Mark { epoch, at });
    let cuts = mark.map_or_else(Vec::new, |mark| maker.marks().cuts(mark));
    let (taken, cohorts) = reader.read_with_cohorts(cuts);
    let about = About {
        run: &maker.run,
        at,
        why,
    };
    let sites = crate::sites::reading::read_by_birth(&ground.core, cohorts.cuts());
    let bytes = document::render(&about, &taken.snapshot, &cohorts, &sites)?;
    if let Some(mark) = mark {
        maker.marks().add(mark, why != "asked");
    }
    Ok(bytes)
}

/// The profile of now, as gzip. Its accounts and classes are of one reading; stacks are read right after it.
fn profile(making: &Making<'_>) -> Vec<u8> {
    let ground = making.ground;
    let at = SystemTime::now();
    let taken = making.reader.read();
    let mut stacks = (making.counted)();
    // Samples know what is alive: where both are there, theirs are taken.
    stacks.extend(crate::sites::reading::read_stacks(&ground.core));
    profile::profile(&taken.snapshot, &stacks, at).to_gzip()
}

fn write(making: &Making<'_>, schedule: &mut Schedule, why: &'static str) {
    let (Some(settings), Some(files)) = (&schedule.settings, &mut schedule.files) else {
        return;
    };
    let keep = settings.keep as usize;
    let written = contained(|| {
        let bytes = make(making, why)?;
        files.write(SystemTime::now(), &bytes)
    });
    crate::events::snapshot_file(written.is_ok());
    // Surplus files are removed even if nothing could be added: the disk may be full.
    let pruned = contained(|| files.prune(keep));
    let directory = files.directory().display();
    match (&written, &pruned) {
        (Ok(_), Ok(())) if schedule.is_failing => {
            tracing::info!("snapshots are written to {directory} again");
        }
        (Ok(_), Err(error)) if !schedule.is_failing => {
            tracing::warn!("old snapshots cannot be removed from {directory} ({error})");
        }
        (Err(error), _) if !schedule.is_failing => {
            let next = match settings.every {
                Some(every) if why != "exit" => {
                    format!(
                        "; the next is tried in {}",
                        policy_config::format_duration(every)
                    )
                }
                _ => String::new(),
            };
            tracing::warn!(
                "a snapshot cannot be written to {directory} and is lost ({error}){next}"
            );
        }
        _ => {}
    }
    schedule.is_failing = written.is_err() || pruned.is_err();
}

/// The longest time for which the end of the JVM waits; `None` if the policy wants no snapshots.
pub(crate) fn longest_exit(ground: &Ground) -> Option<Duration> {
    /// Enough to give up the lock on the folder.
    const SHORT: Duration = Duration::from_millis(200);
    let policy = ground.policy.in_force();
    let settings = policy.snapshots.as_ref()?;
    Some(if settings.at_exit {
        super::LONGEST_EXIT
    } else {
        SHORT
    })
}
