//! The summary lines of test runners, recognised and counted.

/// The last line of one runner, and its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    line: String,
    /// Tests that passed.
    pub(super) passed: u64,
    /// Tests that failed or could not run.
    pub(super) failed: u64,
    /// Tests that were marked not to run.
    pub(super) ignored: u64,
}

impl Summary {
    /// The runner's own words.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Recognises the line that ends a test binary of Rust's or a module of Maven Surefire's.
    pub(super) fn parse(line: &str) -> Option<Summary> {
        rust(line).or_else(|| surefire(line))
    }
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s`
fn rust(line: &str) -> Option<Summary> {
    let line = line.trim();
    let rest = line.strip_prefix("test result: ")?;
    let (_, counts) = rest.split_once(". ")?;
    let count = |what: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
    };
    Some(Summary {
        line: line.to_owned(),
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
    })
}

/// `[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0`, and not the line of a single class,
/// which goes on with the time.
fn surefire(line: &str) -> Option<Summary> {
    let start = line.find("Tests run: ")?;
    let counts = line[start..].trim_end();
    let mut numbers = counts
        .split(", ")
        .zip(["Tests run", "Failures", "Errors", "Skipped"]);
    let mut next = || -> Option<u64> {
        let (part, name) = numbers.next()?;
        part.strip_prefix(name)?.strip_prefix(": ")?.parse().ok()
    };
    let (run, failures, errors, skipped) = (next()?, next()?, next()?, next()?);
    if counts.split(", ").count() != 4 {
        return None;
    }
    let failed = failures + errors;
    Some(Summary {
        line: counts.to_owned(),
        passed: run.checked_sub(failed + skipped)?,
        failed,
        ignored: skipped,
    })
}

/// The name of the test that one of Rust's lines says has failed.
pub(super) fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(line: &str) -> Option<(u64, u64, u64)> {
        Summary::parse(line).map(|summary| (summary.passed, summary.failed, summary.ignored))
    }

    #[test]
    fn rust_s_lines_are_counted() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; \
                  finished in 0.52s";
        assert_eq!(counts(ok), Some((12, 0, 1)));
        assert_eq!(Summary::parse(ok).unwrap().line(), ok);
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(counts(bad), Some((1, 2, 0)));
    }

    #[test]
    fn surefire_s_sums_are_counted_and_its_classes_are_not() {
        assert_eq!(
            counts("[INFO] Tests run: 31, Failures: 0, Errors: 0, Skipped: 2"),
            Some((29, 0, 2))
        );
        assert_eq!(
            counts("[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 0"),
            Some((3, 2, 0))
        );
        assert_eq!(
            counts(
                "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s -- in A"
            ),
            None
        );
    }

    #[test]
    fn a_failed_test_is_named() {
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
        assert_eq!(failed_test("test result: FAILED. 1 passed; 2 failed"), None);
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "test a ... ok",
            "running 3 tests",
            "test result: unknown",
            "Tests run: x",
        ] {
            assert_eq!(counts(line), None, "{line}");
        }
    }
}
