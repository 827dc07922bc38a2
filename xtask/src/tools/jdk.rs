//! The JDKs on this machine.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{how_to_install, is_executable};

/// The oldest Java that Heapwarden and Tomcat 11 run on.
const OLDEST: u32 = 17;
const PACKAGE: &str = "openjdk-17-jdk-headless";
const INSTALLED: &str = "/usr/lib/jvm";

/// One JDK. Ordered by version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Jdk {
    feature: u32,
    version: String,
    home: PathBuf,
}

impl fmt::Display for Jdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} in {}", self.version, self.home.display())
    }
}

impl Jdk {
    /// Its folder, symbolic links resolved.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// One of its programs.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.home.join("bin").join(name);
        if !is_executable(&path) {
            bail!(
                "{self} has no {name}: a JDK is needed, not a runtime alone; {}",
                how_to_install(PACKAGE)
            );
        }
        Ok(path)
    }

    /// The JDK that a path names: its home, or its `java`.
    pub(crate) fn at(path: &Path) -> Result<Jdk> {
        let real = path
            .canonicalize()
            .with_context(|| format!("{} is not there", path.display()))?;
        let home = if real.is_dir() {
            real
        } else {
            real.parent()
                .and_then(Path::parent)
                .map(Path::to_owned)
                .unwrap_or(real)
        };
        if !is_executable(&home.join("bin/java")) {
            bail!("{} is no JDK: it has no bin/java", path.display());
        }
        let release = std::fs::read_to_string(home.join("release")).with_context(|| {
            format!(
                "{} is no JDK: its file `release` cannot be read",
                home.display()
            )
        })?;
        let version = version(&release)
            .with_context(|| format!("{}/release names no version", home.display()))?;
        let feature = feature(version)
            .with_context(|| format!("{}/release names no version", home.display()))?;
        if feature < OLDEST {
            bail!(
                "{} is Java {version}; {OLDEST} or later is needed",
                home.display()
            );
        }
        Ok(Jdk {
            feature,
            version: version.to_owned(),
            home,
        })
    }
}

/// Every usable JDK in `JAVA_HOME` and `/usr/lib/jvm`, oldest first, each real path once.
pub(crate) fn found() -> Result<Vec<Jdk>> {
    let installed = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let jdks: BTreeSet<Jdk> = java_home()
        .into_iter()
        .chain(installed.map(|entry| entry.path()))
        .filter_map(|home| Jdk::at(&home).ok())
        .collect();
    if jdks.is_empty() {
        bail!(
            "no JDK of version {OLDEST} or later in JAVA_HOME or {INSTALLED}; {}",
            how_to_install(PACKAGE)
        );
    }
    Ok(jdks.into_iter().collect())
}

/// The JDK that Maven runs on: the user's choice, else the oldest, since old build plugins know
/// old JDKs and what is built is for Java 17 in any case.
pub(crate) fn for_maven(jdks: &[Jdk]) -> Result<&Jdk> {
    let chosen = java_home().and_then(|home| home.canonicalize().ok());
    let jdk = jdks
        .iter()
        .find(|jdk| Some(&jdk.home) == chosen.as_ref())
        .or(jdks.first())
        .context("there is no JDK")?;
    jdk.program("javac")?;
    Ok(jdk)
}

fn java_home() -> Option<PathBuf> {
    std::env::var_os("JAVA_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

fn version(release: &str) -> Option<&str> {
    release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))
        .map(|value| value.trim().trim_matches('"'))
}

fn feature(version: &str) -> Option<u32> {
    // Java 8 called itself 1.8: its feature number reads 1, which is too old as well.
    version.split(['.', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fake(folder: &Path, version: &str) -> PathBuf {
        let home = folder.join(version);
        fs::create_dir_all(home.join("bin")).unwrap();
        let java = home.join("bin/java");
        fs::write(&java, "").unwrap();
        fs::set_permissions(&java, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            home.join("release"),
            format!("A=\"b\"\nJAVA_VERSION=\"{version}\"\n"),
        )
        .unwrap();
        home
    }

    #[test]
    fn a_jdk_is_known_by_its_release_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = fake(folder.path(), "21.0.4");
        let jdk = Jdk::at(&home).unwrap();
        assert_eq!((jdk.feature, jdk.version.as_str()), (21, "21.0.4"));
        assert_eq!(Jdk::at(&home.join("bin/java")).unwrap(), jdk);
        assert!(
            jdk.program("jcmd")
                .unwrap_err()
                .to_string()
                .contains("has no jcmd")
        );
    }

    #[test]
    fn links_to_one_jdk_are_one_jdk() {
        let folder = tempfile::tempdir().unwrap();
        let home = fake(folder.path(), "17");
        let link = folder.path().join("default");
        symlink(&home, &link).unwrap();
        assert_eq!(Jdk::at(&link).unwrap(), Jdk::at(&home).unwrap());
    }

    #[test]
    fn what_is_too_old_or_no_jdk_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for old in ["1.8.0_402", "11.0.22", "16"] {
            assert!(Jdk::at(&fake(folder.path(), old)).is_err(), "{old}");
        }
        assert!(Jdk::at(folder.path()).is_err());
        assert!(Jdk::at(&folder.path().join("nowhere")).is_err());
    }

    #[test]
    fn an_early_access_version_has_a_feature_number() {
        assert_eq!(feature("26-ea"), Some(26));
        assert_eq!(feature("25"), Some(25));
        assert_eq!(feature("?"), None);
    }
}
