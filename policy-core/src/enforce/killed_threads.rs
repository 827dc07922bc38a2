//! Threads that a refusal ended: what the log says of each.
//!
//! The thread that ends writes its own line, because the JVM may end with it. A thread that dies takes a part
//! of its service with it, so these lines have a bound of their own: the many lines of ordinary refusals do
//! not displace them.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines a minute about all accounts. The next line says how many threads had none.
const MAX_PER_MINUTE: u32 = 20;

/// How many lines were written lately. Any thread that ends.
#[derive(Debug, Default)]
pub struct KilledThreads(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// When the minute began, and the lines in it.
    minute: Option<(Instant, u32)>,
    left_out: u64,
}

impl KilledThreads {
    /// `Some` if the thread may write its line now, with how many had none before it. Takes a lock for a
    /// moment.
    pub fn admit(&self, now: Instant) -> Option<u64> {
        let mut lines = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let (begun, written) = (lines.minute)
            .filter(|(begun, _)| now.duration_since(*begun) < Duration::from_secs(60))
            .unwrap_or((now, 0));
        if written >= MAX_PER_MINUTE {
            lines.left_out += 1;
            return None;
        }
        lines.minute = Some((begun, written + 1));
        Some(std::mem::take(&mut lines.left_out))
    }
}

/// A thread that a refusal ended, as the log reports it. All names are printable.
#[derive(Debug)]
pub struct KilledThread {
    /// The account in whose name it was refused; `None` if the error was made beforehand and has no name.
    pub account: Option<String>,
    /// The thread's name; empty for most virtual threads.
    pub thread: String,
    /// Where the error was thrown: the class (with dots) and the method of the topmost frame that is none of
    /// the JDK's; `None` if the error has no stack trace.
    pub place: Option<(String, String)>,
    /// How many threads had no line before this one.
    pub left_out: u64,
}

impl fmt::Display for KilledThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.account {
            Some(account) => write!(f, "account {account}: ")?,
            None => f.write_str("an account: ")?,
        }
        match self.thread.as_str() {
            "" => f.write_str("a thread without a name")?,
            name => write!(f, "thread \"{name}\"")?,
        }
        f.write_str(" ended with an uncaught refusal")?;
        if let Some((class, method)) = &self.place {
            write!(f, ", thrown in {class}.{method}")?;
            // No pattern names the unnamed package.
            if let Some((package, _)) = class.rsplit_once('.') {
                write!(f, "; to spare it: never-interrupt = [\"{package}.*\"]")?;
            }
        }
        match self.left_out {
            0 => Ok(()),
            count => write!(f, " ({count} more threads before it)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_what_is_left_out_is_told() {
        let killed = KilledThreads::default();
        let now = Instant::now();
        for _ in 0..MAX_PER_MINUTE {
            assert_eq!(killed.admit(now), Some(0));
        }
        let soon = now + Duration::from_secs(59);
        assert_eq!((killed.admit(soon), killed.admit(soon)), (None, None));
        let later = now + Duration::from_secs(61);
        assert_eq!(
            (killed.admit(later), killed.admit(later)),
            (Some(2), Some(0))
        );
    }

    #[test]
    fn the_line_says_who_where_and_what_to_do() {
        let mut killed = KilledThread {
            account: Some("shop".to_owned()),
            thread: "cleaner-1".to_owned(),
            place: Some(("com.acme.Cleaner".to_owned(), "run".to_owned())),
            left_out: 0,
        };
        assert_eq!(
            killed.to_string(),
            "account shop: thread \"cleaner-1\" ended with an uncaught refusal, thrown in com.acme.Cleaner.run; \
             to spare it: never-interrupt = [\"com.acme.*\"]"
        );
        killed.place = Some(("Main".to_owned(), "main".to_owned()));
        killed.left_out = 3;
        assert_eq!(
            killed.to_string(),
            "account shop: thread \"cleaner-1\" ended with an uncaught refusal, thrown in Main.main (3 more threads before it)"
        );
        killed = KilledThread {
            account: None,
            thread: String::new(),
            place: None,
            left_out: 0,
        };
        assert_eq!(
            killed.to_string(),
            "an account: a thread without a name ended with an uncaught refusal"
        );
    }
}
