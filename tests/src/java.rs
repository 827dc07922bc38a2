//! Compiles the victims once per test process.

use crate::{agent, command, jdk};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// Compiled victims.
#[derive(Debug)]
pub struct Classes {
    folder: TempDir,
}

impl Classes {
    /// Class path of the victims themselves (`tests/java`).
    #[must_use]
    pub fn victims(&self) -> PathBuf {
        self.folder.path().join("victims")
    }

    /// A named module (`tests/module`).
    #[must_use]
    pub fn module(&self) -> PathBuf {
        self.folder.path().join("module")
    }

    /// Code that only services' own class loaders see (`tests/tenant`).
    #[must_use]
    pub fn tenant(&self) -> PathBuf {
        self.folder.path().join("tenant")
    }
}

/// The victims, compiled by the oldest JDK found, for Java 17, with every lint an error.
///
/// # Panics
/// With the compiler's messages if one does not compile.
pub fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Classes> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes = Classes {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        compile(&agent::repository().join("tests/java"), &classes.victims());
        compile(&agent::repository().join("tests/tenant"), &classes.tenant());
        compile(&agent::repository().join("tests/module"), &classes.module());
        classes
    })
}

fn compile(sources: &Path, into: &Path) {
    run_compiler(
        Command::new(jdk::every_jdk()[0].tool("javac"))
            .args(["-Xlint:all", "-Werror", "--release", "17", "-d"])
            .arg(into)
            // What the agent defines in the boot loader.
            .arg("-cp")
            .arg(agent::repository().join("policy-agent/java/classes"))
            .args(sources_below(sources)),
    );
}

fn run_compiler(command: &mut Command) {
    let output = command
        .output()
        .expect("javac of a JDK that was found can be started");
    assert!(
        output.status.success(),
        "victims do not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What programs that use the Java API are made of.
#[derive(Debug)]
pub struct ApiClasses {
    folder: TempDir,
    /// The API itself, as its build leaves it.
    pub api: PathBuf,
}

impl ApiClasses {
    /// Class path of the victims that name their tenants (`tests/scopes`), the API included.
    #[must_use]
    pub fn class_path(&self) -> String {
        let folders = [classes().victims(), self.folder.path().join("scopes")];
        let parts = folders.iter().chain([&self.api]);
        let parts: Vec<String> = parts.map(|part| part.display().to_string()).collect();
        parts.join(":")
    }

    /// A service's code (`tests/guest`).
    #[must_use]
    pub fn guest(&self) -> PathBuf {
        self.folder.path().join("guest")
    }

    /// The folder `tests/{sources}`, compiled against the API and a library.
    ///
    /// # Panics
    /// With the compiler's messages if it does not compile.
    #[must_use]
    pub fn compiled_with(&self, sources: &str, library: &Path) -> PathBuf {
        let into = self.folder.path().join(sources);
        run_compiler(
            Command::new(jdk::every_jdk()[0].tool("javac"))
                .args(["-Xlint:all,-classfile,-try", "-Werror", "--release", "17"])
                .arg("-d")
                .arg(&into)
                .arg("-cp")
                .arg(format!("{}:{}", self.api.display(), library.display()))
                .args(sources_below(
                    &agent::repository().join("tests").join(sources),
                )),
        );
        into
    }

    /// The same as a named module.
    #[must_use]
    pub fn guest_module(&self) -> PathBuf {
        self.folder.path().join("guest-module")
    }
}

/// The API, built by Maven, and the victims that use it.
///
/// # Panics
/// With the builder's messages if something does not build.
pub fn api_classes() -> &'static ApiClasses {
    static CLASSES: OnceLock<ApiClasses> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes = ApiClasses {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            api: api_jar(),
        };
        let sources = |folder: &str| agent::repository().join("tests").join(folder);
        let compile = |folder: &str, into: &str, module: bool| {
            let path = format!(
                "{}:{}",
                classes.api.display(),
                self::classes().victims().display()
            );
            let mut command = Command::new(jdk::every_jdk()[0].tool("javac"));
            command
                // The annotations of the API are not needed to run it, nor to compile against it.
                .args([
                    "-Xlint:all,-classfile,-try",
                    "-Werror",
                    "--release",
                    "17",
                    "-d",
                ])
                .arg(classes.folder.path().join(into))
                .arg(if module { "--module-path" } else { "-cp" })
                .arg(path);
            let wanted = |path: &PathBuf| module || !path.ends_with("module-info.java");
            command.args(sources_below(&sources(folder)).into_iter().filter(wanted));
            run_compiler(&mut command);
        };
        compile("scopes", "scopes", false);
        compile("guest", "guest", false);
        compile("guest", "guest-module", true);
        classes
    })
}

/// The API as a jar, built once by Maven.
///
/// # Panics
/// With Maven's messages if it does not build.
fn api_jar() -> PathBuf {
    let folder = agent::repository().join("java-api");
    let build = command::run(
        Command::new("mvn")
            .args(["--batch-mode", "--quiet", "-DskipTests", "package"])
            .args(["--projects", "heapwarden-api", "--also-make"])
            .current_dir(&folder),
        Duration::from_secs(600),
    );
    assert!(
        build.status.success(),
        "the Java API does not build (Maven is needed: apt-get install maven):\n{}\n{}",
        build.stdout,
        build.stderr
    );
    let target = folder.join("heapwarden-api/target");
    let jars = std::fs::read_dir(&target).expect("it was just built");
    let is_api = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jar") && !name.contains("sources") && !name.contains("javadoc")
    };
    (jars.flatten().map(|entry| entry.path()).find(is_api))
        .unwrap_or_else(|| panic!("no jar in {}", target.display()))
}

/// Every Java source below a folder.
///
/// # Panics
/// If the folder cannot be read.
#[must_use]
pub fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("sources are readable") {
        let path = entry.expect("sources are readable").path();
        if path.is_dir() {
            found.extend(sources_below(&path));
        } else if path.extension().is_some_and(|end| end == "java") {
            found.push(path);
        }
    }
    found
}
