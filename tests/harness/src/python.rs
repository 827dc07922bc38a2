//! Programs that PyPI has and Debian has not: each set in a virtual environment of its own below
//! `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{process, repository};

/// Packages of PyPI at pinned versions.
#[derive(Debug)]
pub struct Environment {
    /// The folder that it is installed in, below the one of all tools.
    pub name: &'static str,
    /// As `pip` takes them: `package==version`.
    pub packages: &'static [&'static str],
}

impl Environment {
    /// Installs them, and returns the environment's folder. Does nothing if these versions are there.
    ///
    /// # Errors
    /// A sentence with the line to type, if Python, its `venv` module or a package is missing.
    pub fn install(&self) -> Result<PathBuf> {
        let folder = repository::tools().join(self.name);
        let marker = folder.join("installed");
        let wanted = self.packages.join("\n");
        if fs::read_to_string(&marker).is_ok_and(|there| there == wanted) {
            return Ok(folder);
        }
        println!(
            "installing {} into {}",
            self.packages.join(", "),
            folder.display()
        );
        let _ = fs::remove_dir_all(&folder);
        // At its own place: the programs of an environment have its path written into them.
        process::run(
            Command::new("python3").args(["-m", "venv"]).arg(&folder),
            "apt-get install -y python3-venv",
        )?;
        process::run(
            pip(&folder).args(self.packages),
            &format!("python3 -m pip install {}", self.packages.join(" ")),
        )?;
        fs::write(&marker, wanted)
            .with_context(|| format!("{} cannot be written", marker.display()))?;
        Ok(folder)
    }

    /// A program of the environment, installed if need be.
    ///
    /// # Errors
    /// As [`Environment::install`] has them.
    pub fn program(&self, name: &str) -> Result<Command> {
        Ok(Command::new(self.install()?.join("bin").join(name)))
    }
}

fn pip(folder: &Path) -> Command {
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]);
    pip.arg("--only-binary=:all:");
    pip
}
