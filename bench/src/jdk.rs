//! The JDK that a benchmark runs on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

const INSTALLED: &str = "/usr/lib/jvm";
const OLDEST: u32 = 17;
const ADVICE: &str =
    "on Debian and Ubuntu: apt-get install -y openjdk-17-jdk-headless, or name one with --java";

/// One JDK.
#[derive(Debug, Clone)]
pub(crate) struct Jdk {
    /// Feature release: 17, 21, 25.
    pub(crate) feature: u32,
    home: PathBuf,
    /// Its version with its vendor, such as `25.0.3 (Eclipse Adoptium)`.
    pub(crate) name: String,
}

impl Jdk {
    /// The JDK that the user names by its home or its `java`, else the newest found in
    /// `JAVA_HOME` and `/usr/lib/jvm`.
    pub(crate) fn choose(named: Option<&Path>) -> Result<Jdk> {
        Ok(Jdk::every(named)?.pop().expect("there is one or an error"))
    }

    /// The JDK that the user names, else every one found, each once, the oldest first.
    pub(crate) fn every(named: Option<&Path>) -> Result<Vec<Jdk>> {
        if let Some(path) = named {
            return Ok(vec![Jdk::at(path)?]);
        }
        let installed = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
        let mut found: Vec<Jdk> = std::env::var_os("JAVA_HOME")
            .map(PathBuf::from)
            .into_iter()
            .chain(installed.map(|entry| entry.path()))
            .filter_map(|home| Jdk::at(&home).ok())
            .collect();
        found.sort_by(|a, b| (a.feature, &a.home).cmp(&(b.feature, &b.home)));
        found.dedup_by(|a, b| a.home == b.home);
        ensure!(
            !found.is_empty(),
            "there is no JDK {OLDEST} or later in JAVA_HOME or {INSTALLED}; {ADVICE}"
        );
        Ok(found)
    }

    fn at(path: &Path) -> Result<Jdk> {
        let real = path
            .canonicalize()
            .with_context(|| format!("{} is not there", path.display()))?;
        let home = match real.parent().and_then(Path::parent) {
            Some(home) if real.is_file() => home.to_owned(),
            _ => real,
        };
        for needed in ["bin/java", "bin/javac", "include/jvmti.h"] {
            if !home.join(needed).exists() {
                bail!("{} is no JDK: it has no {needed}; {ADVICE}", home.display());
            }
        }
        let release = std::fs::read_to_string(home.join("release"))
            .with_context(|| format!("{} is no JDK: it has no file `release`", home.display()))?;
        let version = value(&release, "JAVA_VERSION").unwrap_or_default();
        let feature = version
            .split(['.', '-', '+'])
            .next()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0);
        if feature < OLDEST {
            bail!(
                "{} is Java {version}, and {OLDEST} or later is needed; {ADVICE}",
                home.display()
            );
        }
        let vendor = value(&release, "IMPLEMENTOR").unwrap_or("unknown vendor");
        Ok(Jdk {
            feature,
            name: format!("{version} ({vendor})"),
            home,
        })
    }

    /// Path of one of its programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// The folders of its C headers.
    pub(crate) fn includes(&self) -> [PathBuf; 2] {
        let include = self.home.join("include");
        [include.clone(), include.join("linux")]
    }
}

fn value<'a>(release: &'a str, key: &str) -> Option<&'a str> {
    release
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .map(|value| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_file_is_read_by_whole_keys() {
        let release = "JAVA_VERSION_DATE=\"2025\"\nJAVA_VERSION=\"25.0.3\"\n";
        assert_eq!(value(release, "JAVA_VERSION"), Some("25.0.3"));
        assert_eq!(value(release, "IMPLEMENTOR"), None);
    }

    #[test]
    fn what_is_no_jdk_says_what_to_install() {
        let error = Jdk::at(Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("apt-get install"), "{error}");
    }
}
