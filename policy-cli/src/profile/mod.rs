//! `heapwarden profile ADDRESS|PID`: writes the profile of a JVM, for pprof or as collapsed stacks, and sends it to a
//! Pyroscope if it is told to.
//!
//! Exit codes: 0 done; 1 there is no profile, or it was not taken; 2 the command line is wrong.

mod push;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use policy_profile::{Profile, SampleType};

use crate::process::target;
use heapwarden_client::live::Client;
use heapwarden_terminal::printable;
use push::Push;

/// Most accounts named in a message.
const MAX_NAMED: usize = 10;

/// The arguments of `heapwarden profile`.
#[derive(Args)]
#[command(after_help = "\
Without -o and --push, the profile goes to standard output. go tool pprof and other tools read it; a file that is
there is replaced once the new one is complete. --push is not tested against a real Pyroscope.

Exit codes: 0 done; 1 there is no profile, or it was not taken; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where the agent listens: host:port, a port, http://host:port/ or its run file; or the process id of
    /// a JVM on this machine
    #[arg(value_name = "ADDRESS|PID")]
    target: String,

    /// The file to write, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only what this account holds and has allocated
    #[arg(long, value_name = "NAME")]
    account: Option<String>,

    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Pprof)]
    format: Format,

    /// The values of collapsed stacks, and what pprof shows first: alloc_objects, alloc_space,
    /// inuse_objects or inuse_space
    #[arg(long = "type", value_name = "TYPE", default_value_t = SampleType::InuseSpace)]
    first: SampleType,

    /// Send the profile to the Pyroscope at this address, as pprof
    #[arg(long, value_name = "URL")]
    push: Option<String>,

    /// The application's name for --push, with labels if wanted: shop{env=prod} [default: the JVM's program]
    #[arg(long, value_name = "NAME", requires = "push")]
    name: Option<String>,

    /// The tenant for --push, if there are several (header X-Scope-OrgID)
    #[arg(long, value_name = "ID", requires = "push")]
    org_id: Option<String>,
}

/// The ways to write a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The pprof format, gzip: go tool pprof, Grafana, speedscope
    Pprof,
    /// A line for each stack: flame graphs
    Collapsed,
}

/// Takes a profile.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let (text, code) = match take(arguments) {
        Ok(()) => return Ok(ExitCode::SUCCESS),
        Err(Failure::Output(error)) => return Err(error),
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::Told(text)) => (text, 1),
    };
    writeln!(io::stderr(), "heapwarden: {text}")?;
    Ok(ExitCode::from(code))
}

enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// There is no profile, or it was not taken.
    Told(String),
    Output(io::Error),
}

fn take(arguments: &Arguments) -> Result<(), Failure> {
    let output = match (&arguments.output, &arguments.push) {
        (None, Some(_)) => None,
        (None, None) => Some(Path::new("-")),
        (Some(file), _) => Some(file.as_path()),
    };
    let is_standard = output == Some(Path::new("-"));
    if is_standard && arguments.format == Format::Pprof && io::stdout().is_terminal() {
        let text = "a profile is no text for a terminal; give -o FILE, or --format collapsed";
        return Err(Failure::Usage(text.to_owned()));
    }
    let push = (arguments.push.as_deref())
        .map(|address| Push::new(address, arguments.name.clone(), arguments.org_id.as_deref()))
        .transpose()
        .map_err(Failure::Usage)?;
    let profile = profile(arguments).map_err(Failure::Told)?;
    if let Some(output) = output {
        let bytes = match arguments.format {
            Format::Pprof => profile.to_gzip(),
            Format::Collapsed => {
                let mut text = Vec::new();
                (profile.write_collapsed(arguments.first, &mut text)).map_err(Failure::Output)?;
                if text.is_empty() {
                    return Err(Failure::Told(nothing(arguments.first)));
                }
                text
            }
        };
        write(output, &bytes)?;
    }
    match push {
        Some(push) => push.send(&profile).map_err(Failure::Told),
        None => Ok(()),
    }
}

fn profile(arguments: &Arguments) -> Result<Profile, String> {
    let address = target(&arguments.target)?;
    let gzip = Client::new()
        .profile(&address)
        .map_err(|error| error.to_string())?;
    let mut profile = Profile::from_gzip(&gzip)
        .map_err(|error| format!("the answer of {address} is not a profile: {error}"))?;
    if profile.is_empty() {
        return Err(format!(
            "the profile of {address} is empty: nothing was sampled yet; heapwarden doctor says why if that stays so"
        ));
    }
    if let Some(account) = &arguments.account {
        let one = profile.of_account(account);
        if one.is_empty() {
            return Err(without(account, &profile));
        }
        profile = one;
    }
    profile.show_first(arguments.first);
    Ok(profile)
}

/// Says that no stack has a value of this type.
fn nothing(of: SampleType) -> String {
    match of {
        SampleType::InuseObjects | SampleType::InuseSpace => {
            format!(
                "the profile has no {of}: no sampled object has survived a complete collection yet"
            )
        }
        SampleType::AllocObjects | SampleType::AllocSpace => format!("the profile has no {of}"),
    }
}

/// Says that an account is not there, and which are.
fn without(account: &str, profile: &Profile) -> String {
    let shown = |name: &str| printable::fitted(name, 60).into_owned();
    let accounts = profile.accounts();
    let more = accounts.len().saturating_sub(MAX_NAMED);
    let mut names: Vec<String> = accounts
        .keys()
        .take(MAX_NAMED)
        .map(|&name| shown(name))
        .collect();
    if more > 0 {
        names.push(format!("and {more} others"));
    }
    format!(
        "the profile has nothing of an account {}; it has {}",
        shown(account),
        names.join(", ")
    )
}

fn write(output: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if output == Path::new("-") {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.map_err(Failure::Output);
    }
    heapwarden_terminal::output::replace(output, bytes)
        .map_err(|error| Failure::Told(format!("{} cannot be written: {error}", output.display())))
}
