//! `heapwarden check FILE...`: prints diagnostics to standard error and a summary of the policy to
//! standard output. Exit code 0 if every file is accepted, else 1.

mod report;
mod summary;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use policy_config::{MAX_FILE_BYTES, Policy};

use report::Look;

/// The arguments of `heapwarden check`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Policy files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print nothing about files that are accepted without a warning
    #[arg(short, long)]
    quiet: bool,
}

/// Checks every file, even if some are rejected.
///
/// # Errors
/// Only if the output cannot be written; a file that cannot be read counts as rejected.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    let look = Look::of(io::stderr().is_terminal());
    let mut accepted = true;
    for path in &arguments.files {
        accepted &= check(path, arguments.quiet, look, &mut out, &mut err)?;
    }
    out.flush()?;
    Ok(if accepted {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// True if the file is accepted.
fn check(
    path: &Path,
    quiet: bool,
    look: Look,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<bool> {
    let name = path.display().to_string();
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            writeln!(err, "{name}: cannot be read: {error}")?;
            return Ok(false);
        }
    };
    let (source, parsed) = policy_config::parse_bytes(&bytes);
    report::write(&name, &source, &parsed.diagnostics, look, err)?;
    let errors = parsed
        .diagnostics
        .iter()
        .filter(|one| one.is_error())
        .count();
    let warnings = parsed.diagnostics.len() - errors;
    match &parsed.policy {
        Some(_) if quiet => {}
        Some(policy) => {
            write!(out, "{name}: ok")?;
            if warnings > 0 {
                write!(out, ", {}", count(warnings, "warning"))?;
            }
            writeln!(out)?;
            summary::write(policy, out)?;
        }
        None => writeln!(err, "{name}: rejected, {}", count(errors, "error"))?,
    }
    Ok(parsed.policy.is_some())
}

/// Writes the diagnostics of a policy file to standard error. `None` if the file is rejected.
///
/// # Errors
/// Only if the output cannot be written.
pub(crate) fn diagnose(name: &str, bytes: &[u8]) -> io::Result<Option<Policy>> {
    let (source, parsed) = policy_config::parse_bytes(bytes);
    let look = Look::of(io::stderr().is_terminal());
    let mut err = io::stderr().lock();
    report::write(name, &source, &parsed.diagnostics, look, &mut err)?;
    Ok(parsed.policy)
}

/// The file's bytes, at most one more than a policy may have: a wrong path may name an endless
/// device.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
