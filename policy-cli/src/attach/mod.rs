//! `heapwarden attach PID`: loads the agent into a running HotSpot.
//!
//! Everything that can be known before is looked at before: what the process is, whether the
//! library fits it, whether the policy file is accepted. Only then is the JVM touched.
//!
//! Exit codes: 0 attached, accounts are kept; 1 not attached, nothing was done to the JVM, or it
//! refused; 2 the command line is wrong; 3 attached, but accounts are not kept, or not seen; 4 the
//! agent was there already.

mod aftermath;
mod library;
mod notices;
mod obstacle;
mod options;

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use policy_config::{Listen, MAX_FILE_BYTES, Policy};

use crate::check;
use crate::process::{Process, attach as protocol, printable};
use aftermath::{Aftermath, RunFile};
use obstacle::{Caller, Obstacle};
use options::AgentOptions;

/// Exit code: the agent is in, but keeps no accounts or is not seen to.
const DEGRADED: u8 = 3;
/// Exit code: the agent is in already.
const LOADED_ALREADY: u8 = 4;

/// The arguments of `heapwarden attach`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 attached; 1 not attached (it is said why, and the JVM runs on as before); 2 the command
line is wrong; 3 attached, but no accounts are seen to be kept; 4 the agent was loaded already.")]
pub(crate) struct Arguments {
    /// The JVM's process id
    pid: u32,

    /// The policy file; checked first, and watched by the agent from then on
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The agent's library; otherwise $HEAPWARDEN_LIBRARY, or what lies beside this command, in
    /// ../lib, /usr/lib/heapwarden, /usr/local/lib/heapwarden or /opt/heapwarden
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// An option of the agent: listen, run-file, log, enabled
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<String>,

    /// Do not ask before attaching
    #[arg(short, long)]
    yes: bool,
}

/// Attaches, or says why not.
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
        Err(Failure::Said(code, sentence)) => {
            writeln!(io::stderr(), "heapwarden: {sentence}")?;
            Ok(ExitCode::from(code))
        }
    }
}

/// Why it was not done.
enum Failure {
    /// The exit code, and what to say.
    Said(u8, String),
    /// Our own output failed.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

fn said(sentence: impl std::fmt::Display) -> Failure {
    Failure::Said(1, sentence.to_string())
}

fn attach(arguments: &Arguments, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let usage = |error: options::OptionError| Failure::Said(2, error.to_string());
    let mut options =
        AgentOptions::parse(arguments.options.iter().map(String::as_str)).map_err(usage)?;
    let process = Process::find(arguments.pid).map_err(said)?;
    let facts = &process.facts;
    writeln!(out, "{}: {}", facts.title(), facts.summary())?;
    writeln!(out, "  {}", facts.command_line())?;
    let enabled = options.get("enabled") == Some("true");
    if let Some(obstacle) = obstacle::obstacle(facts, Caller::own(), enabled) {
        let code = match obstacle {
            Obstacle::Loaded { .. } => {
                aftermath::where_it_listens(&process, out)?;
                LOADED_ALREADY
            }
            _ => 1,
        };
        let sentence = format!("{} cannot be attached to: {obstacle}", facts.title());
        return Err(Failure::Said(code, sentence));
    }
    let library = library::find(arguments.library.as_deref(), &process)
        .map_err(|error| said(format!("not attached: {error}")))?;
    if let Some(path) = &arguments.config {
        let path = match facts.shares_files {
            true => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            false => path.clone(),
        };
        options.set_path("config", &path).map_err(usage)?;
    }
    let config = options
        .get("config")
        .or(facts.environment.config.as_deref());
    let policy = match config {
        Some(path) => Some(accepted_policy(Path::new(path), &process)?),
        None => None,
    };
    let listen = listen(&options, policy.as_ref(), &process);
    writeln!(out, "  library  {}", printable(&library.to_string_lossy()))?;
    let policy_shown = config.unwrap_or("none: observes, without limits");
    writeln!(out, "  policy   {}", printable(policy_shown))?;
    writeln!(out, "  listens  {listen}")?;
    let plan = notices::Plan {
        listen: &listen,
        has_policy: config.is_some(),
        taken: &process.taken_addresses(),
    };
    writeln!(out, "\nCompared with the start-up flag:")?;
    for notice in notices::notices(facts, &plan) {
        writeln!(out, "  - {notice}")?;
    }
    writeln!(out)?;
    out.flush()?;
    if !arguments.yes {
        confirmed(out)?;
    }
    let run_file =
        RunFile::prepare(&process, &options, listen == Listen::Off).map_err(|error| {
            said(format!(
                "not attached: the JVM's /tmp cannot be written to ({error})"
            ))
        })?;
    if let Some(path) = run_file.to_be_given() {
        options.set_path("run-file", path).map_err(usage)?;
    }
    let log = aftermath::Log::of(&process, options.get("log"));
    let library = library.to_str().ok_or_else(|| {
        said("not attached: the library's path is not UTF-8; copy it to a plain one")
    })?;
    let done = protocol::load(&process, library, &options.text());
    if let Err(error) = done {
        run_file.discard();
        return Err(said(format!(
            "{} was not attached to: {error}",
            facts.title()
        )));
    }
    writeln!(out, "Attached to {}.", facts.title())?;
    let aftermath = Aftermath {
        process: &process,
        listen: &listen,
        run_file,
        log,
    };
    let keeps_accounts = aftermath.tell(out)?;
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
        Err(_) if !process.facts.shares_files && path.exists() => {
            return Err(said(format!(
                "not attached: {name} is here, but the JVM has files of its own (a container) and it is not there; \
                 copy or mount it there and name it by its path there"
            )));
        }
        Err(error) => {
            return Err(said(format!(
                "not attached: the policy file {name} cannot be read: {error}"
            )));
        }
    };
    if !process.may_read(path) {
        let user = process.facts.status.user;
        return Err(said(format!(
            "not attached: the policy file {name} may not be read by the JVM's user {user}: chmod a+r it"
        )));
    }
    check::diagnose(&name, &bytes)?.ok_or_else(|| {
        said(format!(
            "not attached: the policy file {name} is rejected; mend it first (heapwarden check {name})"
        ))
    })
}

/// Where the agent will listen: option, environment, policy, default.
fn listen(options: &AgentOptions, policy: Option<&Policy>, process: &Process) -> Listen {
    let environment = process.facts.environment.listen.as_deref();
    let told = options.get("listen").or(environment);
    let told = told.and_then(|text| text.parse().ok());
    let of_policy = || policy.map(|policy| policy.agent.listen.clone());
    told.or_else(of_policy).unwrap_or_default()
}

/// Asks; anything but yes is no.
fn confirmed(out: &mut dyn Write) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(said(
            "not attached: nobody is there to be asked; --yes attaches without asking",
        ));
    }
    write!(out, "Attach? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(said("not attached")),
    }
}
