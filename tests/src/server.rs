//! Real servers with the agent in them: built once by Maven from `tests/servers`, each run in a
//! folder of its own on ports that were free.

use crate::fixture::up_to_date;
use crate::jdk::{Collector, Jdk};
use crate::scrape::{self, Accounts};
use crate::{artifacts, command, jvm_output, maven};
use heapwarden_harness::http;
use heapwarden_harness::ports;
use heapwarden_harness::process::Guard;
use heapwarden_harness::run_file;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// Longest that a server may take to answer its first request.
const START_LIMIT: Duration = command::PATIENCE;

/// Boot failures that WildFly prints when an agent touched logging or the MBean server too early.
const BOOT_FAILURES: [&str; 2] = ["WFLYLOG0078", "WFLYCTL0079"];

/// Folder with the unpacked servers and the built applications.
///
/// # Panics
/// If Maven is missing or the build fails.
pub fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let target = artifacts::repository().join("target/servers");
        let valve = artifacts::repository().join("examples/servlet/target/heapwarden-servlet.jar");
        let inputs = ["tests/servers", "examples/servlet"];
        up_to_date("servers", &inputs, &[&target, &valve], || {
            // The example among the modules is tested where the examples are.
            let directory = format!("-Dservers.directory={}", target.display());
            maven::package(
                "the servers do not build",
                &artifacts::repository().join("tests/servers"),
                &["-DskipTests", &directory],
            );
        });
        target
    })
}

/// Folder with the servers of `--long`, which are large.
///
/// # Panics
/// If Maven is missing or they cannot be fetched.
pub fn installed_large() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let target = artifacts::repository().join("target/large-servers");
        up_to_date(
            "large-servers",
            &["tests/large-servers"],
            &[&target],
            || {
                let directory = format!("-Dservers.directory={}", target.display());
                maven::package(
                    "the large servers cannot be fetched",
                    &artifacts::repository().join("tests/large-servers"),
                    &[&directory],
                );
            },
        );
        target
    })
}

/// A server being put together.
#[derive(Debug)]
pub struct Installation {
    folder: TempDir,
    http_port: u16,
    heap: &'static str,
    collector: Collector,
    library: Option<PathBuf>,
    checks_jni: bool,
}

impl Installation {
    /// An empty folder and a free port for HTTP.
    #[must_use]
    pub fn new() -> Self {
        Self::with_heap("512m")
    }

    /// The same, with a maximum heap as `-Xmx` takes it.
    #[must_use]
    pub fn with_heap(heap: &'static str) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            http_port: ports::free(),
            heap,
            collector: Collector::G1,
            library: None,
            checks_jni: true,
        }
    }

    /// With this collector instead of G1.
    #[must_use]
    pub fn collector(mut self, collector: Collector) -> Self {
        self.collector = collector;
        self
    }

    /// With this agent instead of the one under test.
    #[must_use]
    pub fn library(mut self, library: &Path) -> Self {
        self.library = Some(library.to_owned());
        self
    }

    /// Without `-Xcheck:jni`: as in production, for measurements.
    #[must_use]
    pub fn as_in_production(mut self) -> Self {
        self.checks_jni = false;
        self
    }

    /// The server's own folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Port for HTTP.
    #[must_use]
    pub fn http_port(&self) -> u16 {
        self.http_port
    }

    /// JVM flags every server gets: the agent, `-Xcheck:jni`, its heap, crash reports here.
    #[must_use]
    pub fn jvm_flags(&self, interval: &str) -> Vec<String> {
        self.jvm_flags_with(&format!(
            "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n"
        ))
    }

    /// As [`Self::jvm_flags`], with a policy of the caller's.
    #[must_use]
    pub fn jvm_flags_with(&self, policy: &str) -> Vec<String> {
        let folder = self.folder.path().display();
        let path = self.folder.path().join("heapwarden.toml");
        fs::write(&path, policy).expect("the folder is writable");
        let mut flags = self.jvm_flags_without_agent();
        flags.push(format!(
            "-agentpath:{}=config={},listen=127.0.0.1:0,run-file={folder}/run.json",
            (self.library.as_deref())
                .unwrap_or_else(|| artifacts::library())
                .display(),
            path.display()
        ));
        flags
    }

    /// As [`Self::jvm_flags`], but for the agent.
    #[must_use]
    pub fn jvm_flags_without_agent(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        let mut flags = vec![
            format!("-Xmx{}", self.heap),
            format!("-XX:ErrorFile={folder}/hs_err_%p.log"),
        ];
        if self.checks_jni {
            flags.push("-Xcheck:jni".to_owned());
        }
        flags.extend(self.collector.flags().iter().map(ToString::to_string));
        flags
    }

    /// Starts it and waits until `path` answers 200.
    ///
    /// # Panics
    /// With the server's log if it does not.
    #[must_use]
    pub fn start(self, mut command: Command, path: &str) -> Server {
        let log = self.folder.path().join("server.log");
        let out = File::create(&log).expect("the folder is writable");
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a file handle can be doubled"))
            .stderr(out);
        let child = Guard::start(&mut command)
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let mut server = Server {
            child,
            http: SocketAddr::from(([127, 0, 0, 1], self.http_port)),
            folder: self.folder,
        };
        let up = command::poll(START_LIMIT, || {
            let ended = server.child.ended();
            assert!(ended.is_none(), "the server ended:\n{}", server.log());
            http::get(server.http, path)
                .ok()
                .filter(|answer| answer.status == 200)
        });
        assert!(up.is_some(), "{path} does not answer:\n{}", server.log());
        server
    }
}

impl Default for Installation {
    fn default() -> Self {
        Self::new()
    }
}

/// `JAVA_HOME` and nothing of the caller's environment that servers' scripts read.
pub fn script(path: &Path, jdk: &Jdk) -> Command {
    let mut command = Command::new(path);
    command
        .env("JAVA_HOME", &jdk.home)
        .env_remove("JRE_HOME")
        .env_remove("JAVA_OPTS")
        .env_remove("CATALINA_OPTS");
    command
}

/// A running server; killed by its own id when dropped unfinished.
#[derive(Debug)]
pub struct Server {
    child: Guard,
    http: SocketAddr,
    folder: TempDir,
}

impl Server {
    /// Everything the server printed.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    /// The JVM's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the application.
    ///
    /// # Errors
    /// Where the server closes the connection without an answer.
    pub fn get(&self, path: &str) -> std::io::Result<http::Answer> {
        self.send("GET", path, &[])
    }

    /// Asks the application, with header lines.
    ///
    /// # Errors
    /// Where the server closes the connection without an answer.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> std::io::Result<http::Answer> {
        self.send_body(method, path, headers, &[])
    }

    /// Asks the application, with header lines and a body.
    ///
    /// # Errors
    /// Where the server closes the connection without an answer.
    pub fn send_body(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<http::Answer> {
        http::send_body(self.http, method, path, headers, body)
    }

    /// Asks the application and expects it to say `done`.
    ///
    /// # Panics
    /// With the answer and the log if it does not.
    pub fn ask(&self, path: &str) {
        let answer = self
            .get(path)
            .unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()));
        assert!(
            answer.status == 200 && answer.body.contains("done"),
            "{path}: {answer:?}\n{}",
            self.log()
        );
    }

    /// The policy file that the agent was started with.
    #[must_use]
    pub fn policy(&self) -> PathBuf {
        self.folder.path().join("heapwarden.toml")
    }

    /// The accounts as they are now.
    ///
    /// # Panics
    /// If the agent has no listener.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        scrape::accounts(self.agent())
    }

    /// The metrics as they are now.
    ///
    /// # Panics
    /// If the agent has no listener.
    #[must_use]
    pub fn metrics(&self) -> scrape::Metrics {
        scrape::metrics(self.agent())
    }

    /// Where the agent listens.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn agent(&self) -> SocketAddr {
        let path = self.folder.path().join("run.json");
        let address = command::poll(command::PATIENCE, || run_file::listener(&path));
        address.unwrap_or_else(|| panic!("no run-file:\n{}", self.log()))
    }

    /// Has garbage collected by asking `path`, and reads the account once the collection is taken in
    /// (nearly all that is charged is live) and the account rests: a server's own threads always do
    /// something, so five equal answers, 50 ms apart, are enough. After ten seconds a collection is
    /// asked for again, and after six of them the last answer is taken.
    pub fn settled(&self, path: &str, account: &str) -> scrape::Holding {
        self.settled_by(|| self.ask(path), account)
    }

    /// As [`Self::settled`], with a collection that the caller has another way to.
    pub fn settled_by(&self, collect: impl Fn(), account: &str) -> scrape::Holding {
        const COLLECTIONS: u32 = 6;
        /// A small account always has garbage that two samples stand for.
        const FEW_SAMPLES_BYTES: f64 = 32.0 * 1024.0;
        let mut last = scrape::Holding::default();
        for _ in 0..COLLECTIONS {
            collect();
            // A snapshot may be a quarter of a second old, from before the collection.
            std::thread::sleep(Duration::from_millis(500));
            last = self.accounts().holding(account);
            let mut equal = 0;
            let rested = command::poll(Duration::from_secs(10), || {
                std::thread::sleep(Duration::from_millis(30));
                let now = self.accounts().holding(account);
                let garbage = now.charged_bytes - now.live_bytes;
                let taken_in = garbage <= (0.01 * now.charged_bytes).max(FEW_SAMPLES_BYTES);
                equal = if now == last && taken_in {
                    equal + 1
                } else {
                    0
                };
                last = now;
                (equal >= 5).then_some(())
            });
            if rested.is_some() {
                break;
            }
            eprintln!("{account} does not rest: {last:?}");
        }
        last
    }

    /// Ends the server as an operator does (SIGTERM) and checks what it leaves: no crash report,
    /// no complaint, none of the boot failures that agents are known for. Returns everything printed.
    ///
    /// # Panics
    /// If one of these is found, or it takes longer than [`command::PATIENCE`].
    pub fn finish(self) -> String {
        let (log, wrong) = self.end();
        assert!(wrong.is_none(), "{}\n{log}", wrong.unwrap_or_default());
        log
    }

    /// The same for a server that may have been harmed: everything printed, and what is wrong. One that
    /// does not end is killed.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn end(mut self) -> (String, Option<String>) {
        let id = i32::try_from(self.child.id()).expect("process ids are small");
        kill_process(Pid::from_raw(id).expect("not 0"), Signal::TERM).expect("it runs");
        let status = self.child.wait(command::PATIENCE);
        let log = self.log();
        let crashed = fs::read_dir(self.folder.path())
            .expect("the folder is readable")
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("hs_err"));
        let complaints = jvm_output::complaints(&log);
        let failure = BOOT_FAILURES.iter().find(|failure| log.contains(**failure));
        let wrong = match (status, failure) {
            (None, _) => Some("still running after SIGTERM".to_owned()),
            _ if crashed => Some("the server crashed".to_owned()),
            (_, Some(failure)) => Some((*failure).to_owned()),
            _ if !complaints.is_empty() => Some(format!("{complaints:#?}")),
            _ => None,
        };
        (log, wrong)
    }
}
