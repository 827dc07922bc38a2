//! The victims, compiled.

use crate::fixture::built_once;
use crate::{artifacts, jdk, maven};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Compiled victims.
#[derive(Debug)]
pub struct Classes {
    folder: PathBuf,
}

impl Classes {
    /// Class path of the victims themselves (`tests/java`).
    #[must_use]
    pub fn victims(&self) -> PathBuf {
        self.folder.join("victims")
    }

    /// A named module (`tests/module`).
    #[must_use]
    pub fn module(&self) -> PathBuf {
        self.folder.join("module")
    }

    /// Code that only services' own class loaders see (`tests/tenant`).
    #[must_use]
    pub fn tenant(&self) -> PathBuf {
        self.folder.join("tenant")
    }
}

/// The compiled classes that the agent defines in the boot loader.
const BOOT_CLASSES: &str = "policy-agent/java/classes";

/// The victims, compiled by the oldest JDK found, for Java 17, with every lint an error.
///
/// # Panics
/// With the compiler's messages if one does not compile.
pub fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Classes> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let sources = [
            ("tests/java", "victims"),
            ("tests/tenant", "tenant"),
            ("tests/module", "module"),
        ];
        let mut inputs = vec![BOOT_CLASSES];
        inputs.extend(sources.map(|(folder, _)| folder));
        let folder = built_once("victims", &inputs, |into| {
            for (from, to) in sources {
                compile(&artifacts::repository().join(from), &into.join(to));
            }
        });
        Classes { folder }
    })
}

fn compile(sources: &Path, into: &Path) {
    run_compiler(
        Command::new(jdk::compiler().program("javac"))
            .args(["-Xlint:all", "-Werror", "--release", "17", "-d"])
            .arg(into)
            .arg("-cp")
            .arg(artifacts::repository().join(BOOT_CLASSES))
            .args(sources_below(sources)),
    );
}

pub(crate) fn run_compiler(command: &mut Command) {
    let output = command
        .output()
        .expect("javac of a JDK that was found can be started");
    assert!(
        output.status.success(),
        "victims do not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The Java API, and the compiled programs that use it.
#[derive(Debug)]
pub struct ApiClasses {
    folder: PathBuf,
    /// The API itself, as its build leaves it.
    pub api: PathBuf,
}

impl ApiClasses {
    /// Class path of the victims that name their tenants (`tests/scopes`), the API included.
    #[must_use]
    pub fn class_path(&self) -> String {
        let folders = [classes().victims(), self.folder.join("scopes")];
        let parts = folders.iter().chain([&self.api]);
        let parts: Vec<String> = parts.map(|part| part.display().to_string()).collect();
        parts.join(":")
    }

    /// A service's code (`tests/guest`).
    #[must_use]
    pub fn guest(&self) -> PathBuf {
        self.folder.join("guest")
    }

    /// The folder `tests/{sources}`, compiled against the API and a library.
    ///
    /// # Panics
    /// With the compiler's messages if it does not compile.
    #[must_use]
    pub fn compiled_with(&self, sources: &str, library: &Path) -> PathBuf {
        let folder = artifacts::repository().join("tests").join(sources);
        let name = format!("with-api-{sources}");
        built_once(&name, &[API, &format!("tests/{sources}")], |into| {
            run_compiler(
                Command::new(jdk::compiler().program("javac"))
                    .args(["-Xlint:all,-classfile,-try", "-Werror", "--release", "17"])
                    .arg("-d")
                    .arg(into)
                    .arg("-cp")
                    .arg(format!("{}:{}", self.api.display(), library.display()))
                    .args(sources_below(&folder)),
            );
        })
    }

    /// The same as a named module.
    #[must_use]
    pub fn guest_module(&self) -> PathBuf {
        self.folder.join("guest-module")
    }
}

/// The sources of the Java API.
const API: &str = "java-api";

/// The API, built by Maven, and the victims that use it.
///
/// # Panics
/// With the builder's messages if something does not build.
pub fn api_classes() -> &'static ApiClasses {
    static CLASSES: OnceLock<ApiClasses> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let api = built_once("api", &[API], |into| {
            fs::copy(api_jar(), into.join(API_JAR)).expect("the target folder is writable");
        })
        .join(API_JAR);
        let victims = classes().victims();
        let inputs = [
            API,
            BOOT_CLASSES,
            "tests/java",
            "tests/scopes",
            "tests/guest",
        ];
        let folder = built_once("api-victims", &inputs, |into| {
            let path = format!("{}:{}", api.display(), victims.display());
            let compile = |from: &str, to: &str, module: bool| {
                let sources = sources_below(&artifacts::repository().join("tests").join(from));
                let wanted = |path: &PathBuf| module || !path.ends_with("module-info.java");
                run_compiler(
                    Command::new(jdk::compiler().program("javac"))
                        // The annotations of the API are needed neither to run it nor to compile
                        // against it.
                        .args(["-Xlint:all,-classfile,-try", "-Werror", "--release", "17"])
                        .arg("-d")
                        .arg(into.join(to))
                        .arg(if module { "--module-path" } else { "-cp" })
                        .arg(&path)
                        .args(sources.into_iter().filter(wanted)),
                );
            };
            compile("scopes", "scopes", false);
            compile("guest", "guest", false);
            compile("guest", "guest-module", true);
        });
        ApiClasses { folder, api }
    })
}

/// The API's jar among the fixtures.
const API_JAR: &str = "heapwarden-api.jar";

/// The API as a jar, built by Maven.
///
/// # Panics
/// With Maven's messages if it does not build.
fn api_jar() -> PathBuf {
    let folder = artifacts::repository().join(API);
    let only = ["-DskipTests", "--projects", "heapwarden-api", "--also-make"];
    maven::package("the Java API does not build", &folder, &only);
    let target = folder.join("heapwarden-api/target");
    let jars = fs::read_dir(&target).expect("it was just built");
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
    for entry in fs::read_dir(folder).expect("sources are readable") {
        let path = entry.expect("sources are readable").path();
        if path.is_dir() {
            found.extend(sources_below(&path));
        } else if path.extension().is_some_and(|end| end == "java") {
            found.push(path);
        }
    }
    found
}
