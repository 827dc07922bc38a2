//! Ctrl-C, `SIGTERM` and `SIGHUP`, as a flag that every wait looks at: so that what was started is
//! ended by the code that started it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// How often a wait looks at the flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The user asked to stop.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted: everything this command started has ended")
    }
}

impl std::error::Error for Interrupted {}

/// Takes over the signals. Once per process.
pub(crate) fn install() -> Result<()> {
    ctrlc::set_handler(|| REQUESTED.store(true, Ordering::Relaxed))
        .context("the handler of Ctrl-C cannot be set")
}

/// Whether the user asked to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// [`Interrupted`] if the user asked to stop.
pub(crate) fn check() -> Result<()> {
    if requested() {
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Sleeps, but not past a request to stop.
pub(crate) fn sleep(duration: Duration) -> Result<()> {
    let end = Instant::now() + duration;
    loop {
        check()?;
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        thread::sleep(rest.min(LOOK_EVERY));
    }
}
