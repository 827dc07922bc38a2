//! One JVM, with or without the agent, spoken to over standard input and output.

use crate::jdk::Vm;
use crate::scrape::{self, Accounts, Metrics};
use crate::{artifacts, command, java, jvm_output};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heapwarden_harness::process::{Guard, each_line, without_surroundings};
use heapwarden_harness::run_file;
use tempfile::TempDir;

/// Longest that a victim may take over one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);
/// Longest that anything published may take to settle after a collection.
const SETTLE_LIMIT: Duration = Duration::from_secs(15);
/// Collections that may be needed until the accounts rest.
const COLLECTIONS: u32 = 16;
/// How long nothing may move to count as settled: the agent may publish a snapshot that is a quarter
/// of a second old.
const REST: Duration = Duration::from_millis(450);
/// And how many answers at least must have agreed meanwhile, however slow the machine.
const REST_ANSWERS: u32 = 8;

/// A JVM to be started.
#[derive(Debug)]
pub struct Builder {
    vm: Vm,
    main: String,
    arguments: Vec<OsString>,
    flags: Vec<String>,
    environment: Vec<(String, OsString)>,
    heap: String,
    class_path: Option<String>,
    agent: bool,
    own_address: bool,
    policy: Option<String>,
    options: Vec<String>,
    standard_error_full: bool,
    launcher: Vec<String>,
    folder: TempDir,
}

/// Names a victim's main class to be run on `vm`.
#[must_use]
pub fn victim(vm: &Vm, main: &str) -> Builder {
    Builder {
        vm: vm.clone(),
        main: main.to_owned(),
        arguments: Vec::new(),
        flags: Vec::new(),
        environment: Vec::new(),
        heap: "256m".to_owned(),
        class_path: None,
        agent: true,
        own_address: true,
        policy: None,
        options: Vec::new(),
        standard_error_full: false,
        launcher: Vec::new(),
        folder: tempfile::tempdir().expect("a temporary folder can be made"),
    }
}

/// Names the victim that names its tenants (`tests/scopes`), to be run on `vm`.
#[must_use]
pub fn tenants_host(vm: &Vm) -> Builder {
    let classes = java::api_classes();
    victim(vm, "victim.ScopedTenants")
        .class_path(classes.class_path())
        .argument(&classes.api)
        .argument(classes.guest())
        .argument(classes.guest_module())
}

/// Names a victim of `tests/scopes` that needs the API alone, to be run on `vm`.
#[must_use]
pub fn api_user(vm: &Vm, main: &str) -> Builder {
    victim(vm, main).class_path(java::api_classes().class_path())
}

impl Builder {
    /// Adds a program argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a JVM flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Sets a variable of the JVM's environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Maximum heap, as `-Xmx` takes it; 256m unless told.
    #[must_use]
    pub fn heap(mut self, size: &str) -> Self {
        size.clone_into(&mut self.heap);
        self
    }

    /// The class path, where it is not that of the victims alone.
    #[must_use]
    pub fn class_path(mut self, path: String) -> Self {
        self.class_path = Some(path);
        self
    }

    /// Text of the policy file; without it the agent is given none.
    #[must_use]
    pub fn policy(mut self, text: &str) -> Self {
        self.policy = Some(text.to_owned());
        self
    }

    /// Leaves out the harness's own `listen=` and `run-file=`, so that the policy and the options of the
    /// case decide.
    #[must_use]
    pub fn without_own_address(mut self) -> Self {
        self.own_address = false;
        self
    }

    /// Adds an agent option, `key=value`; later ones follow the harness's own.
    #[must_use]
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Gives the JVM a full disk as its standard error: each write to it fails.
    #[must_use]
    pub fn standard_error_full(mut self) -> Self {
        self.standard_error_full = true;
        self
    }

    /// Starts the JVM by a program that is given java's command line as its last arguments.
    #[must_use]
    pub fn under(mut self, launcher: Vec<String>) -> Self {
        self.launcher = launcher;
        self
    }

    /// Starts the JVM plain.
    #[must_use]
    pub fn without_agent(mut self) -> Self {
        self.agent = false;
        self
    }

    /// The case's own folder, which lives as long as the JVM's handle.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where [`Builder::policy`] is written.
    #[must_use]
    pub fn policy_path(&self) -> PathBuf {
        self.folder.path().join("heapwarden.toml")
    }

    /// The text after `-agentpath:LIBRARY=`.
    #[must_use]
    pub fn agent_options(&self) -> String {
        let mut options = Vec::new();
        if self.own_address {
            options.push("listen=127.0.0.1:0".to_owned());
            let run_file = self.folder.path().join("run.json");
            options.push(format!("run-file={}", run_file.display()));
        }
        if self.policy.is_some() {
            options.push(format!("config={}", self.policy_path().display()));
        }
        options.extend(self.options.iter().cloned());
        options.join(",")
    }

    /// The whole command line, the policy file written.
    pub fn command(&self) -> Command {
        if let Some(text) = &self.policy {
            std::fs::write(self.policy_path(), &*as_on_a_slow_machine(text))
                .expect("the case's folder is writable");
        }
        let java = self.vm.jdk.program("java");
        let mut command = match self.launcher.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(java);
                command
            }
            None => Command::new(java),
        };
        without_surroundings(&mut command)
            .args(self.vm.collector.flags())
            .arg(format!("-Xmx{}", self.heap))
            .arg("-Xcheck:jni")
            // The JDK caches reflection and serialization data softly. Refilled, such a cache would
            // be charged, rightly, to whoever happened to refill it, and no truth would be exact.
            .arg("-XX:SoftRefLRUPolicyMSPerMB=1000000")
            // No core of a crash in the working folder, and its report where the harness looks.
            .arg(format!(
                "-XX:ErrorFile={}/hs_err_%p.log",
                self.folder.path().display()
            ))
            .args(&self.flags)
            .current_dir(self.folder.path());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        if self.agent {
            command.arg(format!(
                "-agentpath:{}={}",
                artifacts::library().display(),
                self.agent_options()
            ));
        }
        command
            .arg("-cp")
            .arg(match &self.class_path {
                Some(path) => OsString::from(path),
                None => java::classes().victims().into(),
            })
            .arg(&self.main)
            .args(&self.arguments);
        command
    }

    /// Runs a program that ends by itself.
    ///
    /// # Panics
    /// If it has not ended after `limit`, crashed, or complained.
    pub fn run(&self, limit: Duration) -> command::Finished {
        let finished = command::run(&mut self.command(), limit);
        let log = format!("{}\n{}", finished.stdout, finished.stderr);
        assert_unharmed(self.folder.path(), &log);
        finished
    }

    /// Starts the victim and waits until it takes commands.
    #[must_use]
    pub fn start(self) -> Jvm {
        let standard_error = if self.standard_error_full {
            let full = OpenOptions::new().write(true).open("/dev/full");
            full.expect("Linux has it").into()
        } else {
            Stdio::piped()
        };
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(standard_error);
        let mut guard = Guard::start(&mut command).expect("a JDK that was found has java");
        let child = guard.child();
        let log = Arc::new(Mutex::new(String::new()));
        let (answers_in, answers) = channel();
        let stdout = child.stdout.take().expect("piped above");
        let stderr: Box<dyn Read + Send> = match child.stderr.take() {
            Some(pipe) => Box::new(pipe),
            None => Box::new(std::io::empty()),
        };
        let readers = [
            collect(stdout, Arc::clone(&log), Some(answers_in)),
            collect(stderr, Arc::clone(&log), None),
        ];
        let mut jvm = Jvm {
            orders: child.stdin.take(),
            child: guard,
            answers,
            readers,
            log,
            folder: self.folder,
        };
        jvm.answer("its start");
        jvm
    }
}

/// A running JVM; killed by its own id when dropped unfinished.
#[derive(Debug)]
pub struct Jvm {
    child: Guard,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    readers: [JoinHandle<()>; 2],
    log: Arc<Mutex<String>>,
    folder: TempDir,
}

impl Jvm {
    /// Gives the victim a command and returns its answer lines, without marker and final `ok`.
    ///
    /// # Panics
    /// If the victim says `failed`, ends, or takes longer than ten minutes.
    pub fn ask(&mut self, order: &str) -> Vec<String> {
        self.tell(order);
        self.answer(order)
    }

    /// Gives the victim a line and does not wait.
    pub fn tell(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("not yet told to exit");
        let sent = writeln!(orders, "{order}").and_then(|()| orders.flush());
        assert!(
            sent.is_ok(),
            "the victim is gone before {order}:\n{}",
            self.log()
        );
    }

    fn answer(&mut self, order: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.answers.recv_timeout(COMMAND_LIMIT) {
                Ok(line) if line == "ok" => return lines,
                Ok(line) if line.starts_with("failed") => {
                    panic!("victim {line} at {order}:\n{}", self.log())
                }
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no answer to {order} in {COMMAND_LIMIT:?}:\n{}", self.log())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the victim ended at {order}:\n{}", self.log())
                }
            }
        }
    }

    /// Everything printed so far, both streams.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().expect("never held over a panic").clone()
    }

    /// The case's own folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The JVM's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where the agent says it listens.
    ///
    /// # Panics
    /// If no run-file with an address appears within [`command::PATIENCE`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let path = self.run_file();
        let address = command::poll(command::PATIENCE, || run_file::listener(&path));
        address.unwrap_or_else(|| panic!("no address in {}:\n{}", path.display(), self.log()))
    }

    /// Path of the run-file.
    #[must_use]
    pub fn run_file(&self) -> PathBuf {
        self.folder.path().join("run.json")
    }

    /// `/api/v1/accounts`, as it is now.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        scrape::accounts(self.address())
    }

    /// `/metrics`, as it is now.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        scrape::metrics(self.address())
    }

    /// Collects garbage and reads the accounts once the refunds have come to rest: nothing moves
    /// any more, and what is charged is live.
    ///
    /// `_unaccounted` and the program's own account are not waited for: the JVM's own threads always move
    /// them a little. Where
    /// nothing sampled dies and the machine is too busy for the enforcer to plant its canary
    /// before the collection, that collection proves nothing and the next one does, as in any
    /// server: so it is asked for, at most sixteen times in all.
    pub fn settled(&mut self) -> Accounts {
        let mut last = self.accounts();
        for _ in 0..COLLECTIONS {
            match self.settled_by_one_collection() {
                Ok(accounts) => return accounts,
                Err(accounts) => last = accounts,
            }
        }
        panic!("the accounts do not come to rest: {}", last.brief())
    }

    fn settled_by_one_collection(&mut self) -> Result<Accounts, Accounts> {
        let address = self.address();
        let mut last = scrape::accounts(address);
        let epoch = last.gc_epoch();
        self.ask("gc");
        let mut moved = Instant::now();
        let mut equal = 0;
        let settled = command::poll(SETTLE_LIMIT, || {
            let now = scrape::accounts(address);
            let rests = now.gc_epoch() > epoch && now.taken_in() && now.same_holdings(&last);
            equal += 1;
            if !rests {
                moved = Instant::now();
                equal = 0;
            }
            last = now;
            (equal >= REST_ANSWERS && moved.elapsed() >= REST).then(|| last.clone())
        });
        settled.ok_or(last)
    }

    /// Polls until `holds` is true of the accounts, at most `limit`.
    ///
    /// # Panics
    /// With the last answer and the log if it never is.
    pub fn until(
        &self,
        limit: Duration,
        what: &str,
        holds: impl Fn(&Accounts) -> bool,
    ) -> Accounts {
        let address = self.address();
        let met = command::poll(limit, || {
            Some(scrape::accounts(address)).filter(|accounts| holds(accounts))
        });
        met.unwrap_or_else(|| {
            panic!(
                "not within {limit:?}: {what}\n{}\n{}",
                scrape::accounts(address).brief(),
                self.log()
            )
        })
    }

    /// Waits until the JVM has printed `text`: what it prints comes by another pipe than its answers.
    ///
    /// # Panics
    /// If it does not within [`command::PATIENCE`].
    pub fn until_logged(&self, text: &str) {
        let logged = command::poll(command::PATIENCE, || {
            self.log().contains(text).then_some(())
        });
        assert!(
            logged.is_some(),
            "{text} is not in the log:\n{}",
            self.log()
        );
    }

    /// Waits for an end that the victim comes to by itself.
    pub fn end_within(&mut self, limit: Duration) -> ExitStatus {
        let Some(status) = self.child.wait(limit) else {
            panic!("still running after {limit:?}:\n{}", self.log());
        };
        // The readers see the pipes' end a moment after the process's.
        let read = command::poll(command::PATIENCE, || {
            self.readers
                .iter()
                .all(JoinHandle::is_finished)
                .then_some(())
        });
        assert!(
            read.is_some(),
            "somebody holds the JVM's pipes:\n{}",
            self.log()
        );
        assert_unharmed(self.folder.path(), &self.log());
        status
    }

    /// Tells the victim to exit, and checks an orderly end: code 0, no complaint, no crash report,
    /// no run-file left. Returns everything printed.
    pub fn finish(mut self) -> String {
        self.tell("exit");
        self.orders = None;
        let status = self.end_within(command::PATIENCE);
        assert!(status.success(), "ended with {status}:\n{}", self.log());
        assert!(
            !self.run_file().exists(),
            "the run-file is still there after an orderly end"
        );
        self.log()
    }
}

/// Panics if a run left a crash report or its output holds a complaint.
fn assert_unharmed(folder: &Path, log: &str) {
    let crashes: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the case's folder is readable")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("hs_err") || name.starts_with("core")
        })
        .collect();
    assert!(crashes.is_empty(), "the JVM crashed: {crashes:?}\n{log}");
    let complaints = jvm_output::complaints(log);
    assert!(complaints.is_empty(), "complaints: {complaints:#?}\n{log}");
}

/// Collects lines in the log; those that begin with `@ ` are answers, where somebody asks.
fn collect(
    from: impl Read + Send + 'static,
    log: Arc<Mutex<String>>,
    answers: Option<Sender<String>>,
) -> JoinHandle<()> {
    each_line(from, move |line| {
        match (&answers, line.strip_prefix("@ ")) {
            (Some(answers), Some(answer)) => {
                // The test may have stopped listening; the log still wants the rest.
                let _ = answers.send(answer.to_owned());
            }
            _ => {
                let mut log = log.lock().expect("never held over a panic");
                log.push_str(&line);
                log.push('\n');
            }
        }
    })
}

/// The policy with the budget for samples that the environment gives, if it names none itself: with a small one the
/// interval widens as it does where samples take long.
fn as_on_a_slow_machine(policy: &str) -> Cow<'_, str> {
    let Ok(budget) = std::env::var("HEAPWARDEN_TEST_CPU_BUDGET") else {
        return policy.into();
    };
    let line = format!("[sampling]\ncpu-budget = \"{budget}\"\n");
    match policy {
        _ if policy.contains("cpu-budget") => policy.into(),
        _ if policy.contains("[sampling]\n") => policy.replacen("[sampling]\n", &line, 1).into(),
        _ => format!("{line}\n{policy}").into(),
    }
}
