//! The parts that Tomcat needs before it can start: the agent, the applications, the distribution.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use heapwarden_harness::repository;

use super::applications::{APPLICATIONS, LIBRARY_ARCHIVE};
use crate::process;
use crate::tools::{self, Jdk};

/// The version that `examples/demo/pom.xml` pins, and what its archive must hash to.
const TOMCAT_VERSION: &str = "11.0.18";
const TOMCAT_SHA512: &str = "e428203454e57962296e6e95705e46a1406d15569f67ea0cbd417f38fcad85e8\
                             1de6fa1be62cfa660ec746312aefb87c39127eef7348e6f78cb57e9afb862ed4";

/// The demo's own folder below `target`.
pub(crate) fn folder() -> PathBuf {
    repository::target().join("demo")
}

/// The demo's sources.
pub(crate) fn sources() -> PathBuf {
    repository::root().join("examples/demo")
}

/// The sources of what answers a refusal with 503.
fn servlet() -> PathBuf {
    repository::root().join("examples/servlet")
}

/// The programs that the demo calls.
pub(crate) struct Tools {
    /// The JDK that Tomcat runs on.
    pub(crate) java: Jdk,
    maven: PathBuf,
    maven_java: Jdk,
    tar: PathBuf,
    sha512sum: PathBuf,
}

impl Tools {
    /// Finds them all, or says what to install.
    pub(crate) fn find(java: Option<&Path>) -> Result<Tools> {
        let jdks = tools::jdks()?;
        let (tar, sha512sum) = tools::tar_and_sha512sum()?;
        let java = match java {
            Some(path) => Jdk::at(path)?,
            None => jdks.last().context("there is no JDK")?.clone(),
        };
        java.require("jcmd")?;
        Ok(Tools {
            java,
            maven: tools::maven()?,
            maven_java: tools::for_builds(&jdks)?.clone(),
            tar,
            sha512sum,
        })
    }
}

/// The parts of the demo that were built, by path.
pub(crate) struct Built {
    /// Tomcat's version.
    pub(crate) tomcat_version: &'static str,
    /// Tomcat's unpacked distribution.
    pub(crate) tomcat: PathBuf,
    /// The web applications.
    pub(crate) archives: Vec<PathBuf>,
    /// The library that goes into Tomcat.
    pub(crate) library: PathBuf,
    /// The archive with the valve, which goes there too.
    pub(crate) valve: PathBuf,
}

/// Builds everything, telling the viewer what takes time.
pub(crate) fn everything(tools: &Tools, with_agent: bool) -> Result<Built> {
    fs::create_dir_all(folder()).context("target/demo cannot be made")?;
    // The command too: the README and the demo's last lines send the viewer to it.
    let (what, packages): (_, &[&str]) = match with_agent {
        true => ("The agent and the command", &["policy-agent", "policy-cli"]),
        false => ("The command; the agent is as given", &["policy-cli"]),
    };
    step(&format!("1/3 {what} (cargo build --release)"), || {
        let packages = packages.iter().flat_map(|package| ["-p", package]);
        process::run(
            Command::new(env!("CARGO"))
                .args(["build", "--release"])
                .args(packages)
                .current_dir(repository::root()),
            None,
        )
    })?;
    step(
        "2/3 Three applications, their library, the valve and Tomcat's archive (Maven)",
        || {
            let options = [
                format!("-Dtomcat.version={TOMCAT_VERSION}"),
                format!("-Ddistribution.directory={}", folder().display()),
            ];
            maven(tools, &sources(), &options, "maven.log")?;
            maven(tools, &servlet(), &[], "maven-servlet.log")
        },
    )?;
    let tomcat = step("3/3 Tomcat, checked and unpacked", || distribution(tools))?;
    println!();

    let made = |module: &str, kind: &str| {
        let file = format!("{module}/target/{module}.{kind}");
        archive(&sources().join(file))
    };
    let archives = APPLICATIONS
        .iter()
        .map(|application| made(application.name, "war"))
        .collect::<Result<_>>()?;
    Ok(Built {
        tomcat_version: TOMCAT_VERSION,
        tomcat,
        archives,
        library: made(LIBRARY_ARCHIVE, "jar")?,
        valve: archive(&servlet().join("target/heapwarden-servlet.jar"))?,
    })
}

fn maven(tools: &Tools, project: &Path, options: &[String], log: &str) -> Result<()> {
    process::run_logged(
        Command::new(&tools.maven)
            .args(["--batch-mode", "--no-transfer-progress"])
            .args(["-DskipTests", "package"])
            .args(options)
            .current_dir(project)
            .env("JAVA_HOME", &tools.maven_java.home),
        &folder().join(log),
    )
}

fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("{what} ...");
    let begun = Instant::now();
    let result = work().with_context(|| format!("{what}: failed"))?;
    println!("    done in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(result)
}

fn archive(path: &Path) -> Result<PathBuf> {
    if !path.is_file() {
        bail!("Maven ended well and yet made no {}", path.display());
    }
    Ok(path.to_owned())
}

/// The unpacked Tomcat: taken from an earlier run, or unpacked beside its place and then moved, so
/// that a run which is interrupted leaves no half of one.
fn distribution(tools: &Tools) -> Result<PathBuf> {
    let archive = folder().join(format!("tomcat-{TOMCAT_VERSION}.tar.gz"));
    check_whole(&tools.sha512sum, &archive)?;
    let name = format!("apache-tomcat-{TOMCAT_VERSION}");
    let place = folder().join(&name);
    if place.is_dir() {
        return Ok(place);
    }
    let beside = tempfile::Builder::new()
        .prefix("unpack-")
        .tempdir_in(folder())?;
    process::run(
        Command::new(&tools.tar)
            .arg("--extract")
            .arg("--gzip")
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(beside.path()),
        None,
    )?;
    fs::rename(beside.path().join(&name), &place)
        .with_context(|| format!("the archive holds no folder {name}"))?;
    Ok(place)
}

fn check_whole(sha512sum: &Path, archive: &Path) -> Result<()> {
    let mut first = String::new();
    process::run_lines(
        Command::new(sha512sum).arg("--binary").arg(archive),
        None,
        |line| {
            line.split(' ')
                .next()
                .unwrap_or_default()
                .clone_into(&mut first);
        },
    )?;
    if first != TOMCAT_SHA512 {
        bail!(
            "{} is not the archive that was published: its SHA-512 is {first}, {TOMCAT_SHA512} is \
             expected; delete it there and in ~/.m2/repository/org/apache/tomcat, and try again",
            archive.display()
        );
    }
    Ok(())
}
