//! A Tomcat with the agent: its folder, its process, and where it answers.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::applications::APPLICATIONS;
use super::build::{Built, sources};
use crate::process::{self, Running};
use crate::tools::Jdk;
use crate::{interrupt, process::last_lines};
use heapwarden_harness::http;
use heapwarden_harness::process::without_surroundings;
use heapwarden_harness::run_file;

/// How long it may take until every application and the agent answer.
const START_MAXIMUM: Duration = Duration::from_secs(40);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Enough for three times what the applications hold at the end.
const HEAP: &str = "-Xmx512m";

/// The packages that Tomcat's own start script opens for its search for class loader leaks.
const OPENED: [&str; 6] = [
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.rmi/sun.rmi.transport",
];

/// A running Tomcat; ended by its process id when dropped.
pub(crate) struct Tomcat {
    running: Running,
    jcmd: PathBuf,
    log: PathBuf,
    policy: PathBuf,
    applications: SocketAddr,
    agent: SocketAddr,
}

impl Tomcat {
    /// Lays out `base`, starts Tomcat there and waits until all of it answers.
    pub(crate) fn start(
        java: &Jdk,
        agent: &Path,
        built: &Built,
        base: &Path,
        begun: Instant,
    ) -> Result<Tomcat> {
        lay_out(built, base)?;
        let log = base.join("logs/tomcat.log");
        let policy = base.join("heapwarden.toml");
        let run_file = base.join("run.json");
        let output = fs::File::create(&log).context("Tomcat's log cannot be written")?;
        let mut command = Command::new(java.program("java"));
        command
            .arg(agent_option(agent, &policy, &run_file)?)
            .args([HEAP, "-XX:+UseG1GC"])
            .args(OPENED.map(|package| format!("--add-opens={package}=ALL-UNNAMED")))
            .args(properties(built, base))
            .arg("-classpath")
            .arg(format!(
                "{0}/bin/bootstrap.jar:{0}/bin/tomcat-juli.jar",
                built.tomcat.display()
            ))
            .args(["org.apache.catalina.startup.Bootstrap", "start"])
            .current_dir(base)
            .stdout(
                output
                    .try_clone()
                    .context("a file handle cannot be copied")?,
            )
            .stderr(output);
        without_surroundings(&mut command);
        let mut running = Running::start(&mut command)?;
        let (applications, agent) =
            wait_ready(&mut running, &log, &run_file, begun + START_MAXIMUM).with_context(
                || {
                    format!(
                        "Tomcat does not start; its log ends with:\n{}",
                        last_lines(&log, 25)
                    )
                },
            )?;
        Ok(Tomcat {
            running,
            jcmd: java.require("jcmd")?,
            log,
            policy,
            applications,
            agent,
        })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Where its output goes.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The policy file that the agent watches.
    pub(crate) fn policy(&self) -> &Path {
        &self.policy
    }

    /// Where the applications answer.
    pub(crate) fn applications(&self) -> SocketAddr {
        self.applications
    }

    /// Where the agent answers.
    pub(crate) fn agent(&self) -> SocketAddr {
        self.agent
    }

    /// An error if it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.running.ended()? {
            bail!("Tomcat ended by itself ({status})");
        }
        Ok(())
    }

    /// Has the JVM collect all of its heap, and returns when it has.
    pub(crate) fn collect(&self) -> Result<()> {
        let mut command = Command::new(&self.jcmd);
        command.args([&self.id().to_string(), "GC.run"]);
        without_surroundings(&mut command);
        process::run_lines(&mut command, None, |_| ())
    }
}

/// `CATALINA_BASE`: the distribution's own settings but for the server's and the contexts', and
/// what was built.
fn lay_out(built: &Built, base: &Path) -> Result<()> {
    for folder in ["conf", "lib", "logs", "temp", "webapps", "work"] {
        fs::create_dir(base.join(folder)).with_context(|| format!("{folder} cannot be made"))?;
    }
    for settings in ["catalina.properties", "logging.properties", "web.xml"] {
        copy(
            &built.tomcat.join("conf").join(settings),
            &base.join("conf"),
        )?;
    }
    for settings in ["server.xml", "context.xml"] {
        copy(
            &sources().join("tomcat/conf").join(settings),
            &base.join("conf"),
        )?;
    }
    copy(&sources().join("heapwarden.toml"), base)?;
    for library in [&built.library, &built.valve] {
        copy(library, &base.join("lib"))?;
    }
    for archive in &built.archives {
        copy(archive, &base.join("webapps"))?;
    }
    Ok(())
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let name = file.file_name().context("a path without a file name")?;
    fs::copy(file, folder.join(name))
        .with_context(|| format!("{} cannot be copied", file.display()))?;
    Ok(())
}

fn agent_option(agent: &Path, policy: &Path, run_file: &Path) -> Result<String> {
    let option = format!(
        "config={},listen=127.0.0.1:0,run-file={}",
        policy.display(),
        run_file.display()
    );
    if option.matches(',').count() > 2 {
        bail!(
            "the path {} has a comma, which separates agent options",
            policy.display()
        );
    }
    Ok(format!("-agentpath:{}={option}", agent.display()))
}

fn properties(built: &Built, base: &Path) -> [String; 5] {
    let (home, base) = (built.tomcat.display(), base.display());
    [
        format!("-Dcatalina.home={home}"),
        format!("-Dcatalina.base={base}"),
        format!("-Djava.io.tmpdir={base}/temp"),
        format!("-Djava.util.logging.config.file={base}/conf/logging.properties"),
        "-Djava.util.logging.manager=org.apache.juli.ClassLoaderLogManager".to_owned(),
    ]
}

/// Waits until the applications and the agent answer, and says where.
fn wait_ready(
    running: &mut Running,
    log: &Path,
    run_file: &Path,
    deadline: Instant,
) -> Result<(SocketAddr, SocketAddr)> {
    let mut missing = "the agent's run file";
    loop {
        if let Some(status) = running.ended()? {
            bail!("it ended ({status}) before it was ready");
        }
        if let Some(agent) = run_file::listener(run_file) {
            missing = "200 from the agent's /-/ready";
            if answers(agent, "/-/ready") {
                missing = "Tomcat's port in its log";
                if let Some(tomcat) = fs::read_to_string(log)
                    .ok()
                    .as_deref()
                    .and_then(http_address)
                {
                    missing = "200 from every application";
                    if APPLICATIONS
                        .iter()
                        .all(|each| answers(tomcat, &each.truth()))
                    {
                        return Ok((tomcat, agent));
                    }
                }
            }
        }
        if Instant::now() > deadline {
            bail!(
                "still missing after {} s: {missing}",
                START_MAXIMUM.as_secs()
            );
        }
        interrupt::sleep(LOOK_EVERY)?;
    }
}

fn answers(address: SocketAddr, path: &str) -> bool {
    matches!(http::get(address, path), Ok(answer) if answer.status == 200)
}

/// Tomcat's address in its log: it names a connector on port 0 `…-auto-<index>-<port>` once it is
/// bound and started.
fn http_address(log: &str) -> Option<SocketAddr> {
    let line = log
        .lines()
        .find(|line| line.contains("AbstractProtocol.start "))?;
    let (_, name) = line.split_once("-auto-")?;
    let port = name.trim_end_matches(['"', ']']).split('-').nth(1)?;
    format!("127.0.0.1:{port}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tomcats_address_is_read() {
        let log = "\
x INFO [main] org.apache.coyote.AbstractProtocol.init Initializing ProtocolHandler [\"http-nio-127.0.0.1-auto-1\"]
x INFO [main] org.apache.coyote.AbstractProtocol.start Starting ProtocolHandler [\"http-nio-127.0.0.1-auto-1-37635\"]
";
        assert_eq!(http_address(log), Some("127.0.0.1:37635".parse().unwrap()));
        assert_eq!(http_address(log.lines().next().unwrap()), None);
    }

    #[test]
    fn a_comma_in_the_path_is_refused() {
        let agent = Path::new("/a/libheapwarden.so");
        let option = agent_option(agent, Path::new("/b/p.toml"), Path::new("/b/r.json")).unwrap();
        assert_eq!(
            option,
            "-agentpath:/a/libheapwarden.so=config=/b/p.toml,listen=127.0.0.1:0,run-file=/b/r.json"
        );
        assert!(agent_option(agent, Path::new("/b,c/p.toml"), Path::new("/b,c/r.json")).is_err());
    }
}
