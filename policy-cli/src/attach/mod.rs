//! `heapwarden attach PID`: loads the agent into a running HotSpot.
//!
//! `preflight` checks the process, `library` finds a library that fits it, and the policy file is
//! checked. Only then `attach` asks the JVM to load the agent, and `report` says what came of it.
//!
//! Exit codes: 0 attached, the agent keeps accounts; 1 not attached, the JVM is unchanged, or it
//! refused; 2 the command line is wrong; 3 attached, but the agent keeps no accounts, or does not
//! answer; 4 the agent was already loaded.

mod jvm_log;
mod library;
mod options;
pub(crate) mod preflight;
mod report;
mod run_file;
mod warnings;

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use policy_config::{Listen, MAX_FILE_BYTES, Policy};

use crate::check;
use crate::process::{Process, attach_protocol, printable};
use jvm_log::JvmLog;
use options::AgentOptions;
use preflight::{Caller, CannotAttach};
use report::Attached;
use run_file::RunFilePlace;

/// Exit code: the agent is loaded, but keeps no accounts or does not answer.
const DEGRADED: u8 = 3;
/// Exit code: the agent was already loaded.
const LOADED_ALREADY: u8 = 4;

/// The arguments of `heapwarden attach`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 attached; 1 not attached (the message says why; the JVM is unchanged); 2 the command line
is wrong; 3 attached, but the agent keeps no accounts or does not answer; 4 the agent was already loaded.")]
pub(crate) struct Arguments {
    /// The JVM's process id
    pid: u32,

    /// The policy file; this command checks it first, then the agent watches it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The agent's library; the default is $HEAPWARDEN_LIBRARY, or the one found beside this
    /// command, in ../lib, /usr/lib/heapwarden, /usr/local/lib/heapwarden or /opt/heapwarden
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// An option of the agent: listen, listen-strict, run-file, log, enabled
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<String>,

    /// Do not ask before attaching
    #[arg(short, long)]
    yes: bool,
}

/// Attaches to the JVM, or says why it cannot.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let done = attach(arguments, &mut out);
    out.flush()?;
    match done {
        Ok(code) => Ok(code),
        Err(Failure::Output(error)) => Err(error),
        Err(Failure::Message(code, sentence)) => {
            writeln!(io::stderr(), "heapwarden: {sentence}")?;
            Ok(ExitCode::from(code))
        }
    }
}

/// Why the agent was not attached.
enum Failure {
    /// The exit code and the message.
    Message(u8, String),
    /// Our own output failed.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

fn not_attached(sentence: impl std::fmt::Display) -> Failure {
    Failure::Message(1, sentence.to_string())
}

fn attach(arguments: &Arguments, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let usage = |error: options::OptionError| Failure::Message(2, error.to_string());
    let mut options =
        AgentOptions::parse(arguments.options.iter().map(String::as_str)).map_err(usage)?;
    let process = Process::find(arguments.pid).map_err(not_attached)?;
    let info = &process.info;
    writeln!(out, "{}: {}", info.title(), info.summary())?;
    writeln!(out, "  {}", info.command_line())?;
    let enabled = options.get("enabled") == Some("true");
    if let Some(reason) = preflight::check(info, Caller::own(), enabled) {
        let code = match reason {
            CannotAttach::Loaded { .. } => {
                report::where_it_listens(&process, out)?;
                LOADED_ALREADY
            }
            _ => 1,
        };
        let sentence = format!("{} cannot be attached to: {reason}", info.title());
        return Err(Failure::Message(code, sentence));
    }
    let library = library::find(arguments.library.as_deref(), &process)
        .map_err(|error| not_attached(format!("not attached: {error}")))?;
    if let Some(path) = &arguments.config {
        let path = match info.shares_files {
            true => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            false => path.clone(),
        };
        options.set_path("config", &path).map_err(usage)?;
    }
    let config = options.get("config").or(info.environment.config.as_deref());
    let policy = match config {
        Some(path) => Some(accepted_policy(Path::new(path), &process)?),
        None => None,
    };
    let listen = listen(&options, policy.as_ref(), &process);
    writeln!(out, "  library  {}", printable(&library.to_string_lossy()))?;
    let policy_shown = config.unwrap_or("none: the agent observes, without limits");
    writeln!(out, "  policy   {}", printable(policy_shown))?;
    writeln!(out, "  listens  {listen}")?;
    let plan = warnings::Plan {
        listen: &listen,
        has_policy: config.is_some(),
        taken: &process.taken_addresses(),
    };
    writeln!(out, "\nCompared with the start-up flag:")?;
    for warning in warnings::warnings(info, &plan) {
        writeln!(out, "  - {warning}")?;
    }
    writeln!(out)?;
    out.flush()?;
    if !arguments.yes {
        confirmed(out)?;
    }
    let run_file =
        RunFilePlace::prepare(&process, &options, listen == Listen::Off).map_err(|error| {
            not_attached(format!(
                "not attached: cannot write to the JVM's /tmp ({error}); make it writable, or give --option run-file=PATH"
            ))
        })?;
    if let Some(path) = run_file.to_be_given() {
        options.set_path("run-file", path).map_err(usage)?;
    }
    let log = JvmLog::of(&process, options.get("log"));
    let library = library.to_str().ok_or_else(|| {
        not_attached(
            "not attached: the library's path is not UTF-8; copy the library to another path",
        )
    })?;
    let done = attach_protocol::load(&process, library, &options.text());
    if let Err(error) = done {
        run_file.discard();
        return Err(not_attached(format!(
            "{} was not attached to: {error}",
            info.title()
        )));
    }
    writeln!(out, "Attached to {}.", info.title())?;
    let attached = Attached {
        process: &process,
        listen: &listen,
        run_file,
        log,
    };
    let keeps_accounts = attached.report(out)?;
    Ok(match keeps_accounts {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DEGRADED),
    })
}

/// Reads and checks the policy file, as the JVM sees it.
fn accepted_policy(path: &Path, process: &Process) -> Result<Policy, Failure> {
    let name = printable(&path.to_string_lossy());
    let bytes = match process.root.read(path, MAX_FILE_BYTES as u64 + 1) {
        Ok(bytes) => bytes,
        Err(_) if !process.info.shares_files && path.exists() => {
            return Err(not_attached(format!(
                "not attached: {name} exists here, but not in the JVM's own file system (a container); \
                 copy or mount it there, and give its path there"
            )));
        }
        Err(error) => {
            return Err(not_attached(format!(
                "not attached: the policy file {name} cannot be read: {error}"
            )));
        }
    };
    if !process.may_read(path) {
        let user = process.info.status.user;
        return Err(not_attached(format!(
            "not attached: the JVM's user {user} may not read the policy file {name}; run chmod a+r {name}"
        )));
    }
    check::diagnose(&name, &bytes)?.ok_or_else(|| {
        not_attached(format!(
            "not attached: the policy file {name} has errors; correct it first (heapwarden check {name})"
        ))
    })
}

/// Where the agent will listen: option, environment, policy, default.
fn listen(options: &AgentOptions, policy: Option<&Policy>, process: &Process) -> Listen {
    let environment = process.info.environment.listen.as_deref();
    let told = options.get("listen").or(environment);
    let told = told.and_then(|text| text.parse().ok());
    let of_policy = || policy.map(|policy| policy.agent.listen.clone());
    told.or_else(of_policy).unwrap_or_default()
}

/// Asks the user; anything but yes is no.
fn confirmed(out: &mut dyn Write) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(not_attached(
            "not attached: standard input is not a terminal, so nobody can confirm; give --yes to attach without a question",
        ));
    }
    write!(out, "Attach? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(not_attached("not attached")),
    }
}
