//! Programs that a command needs and Cargo does not bring. Looked for before any work is done; one
//! that is missing is named with the line that installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

pub(crate) use heapwarden_harness::jdk::{Jdk, every as jdks, for_builds};

/// A program with the Debian package that has it.
struct Tool {
    name: &'static str,
    package: &'static str,
}

const MAVEN: Tool = Tool {
    name: "mvn",
    package: "maven",
};
const TAR: Tool = Tool {
    name: "tar",
    package: "tar",
};
const SHA512SUM: Tool = Tool {
    name: "sha512sum",
    package: "coreutils",
};
const OBJCOPY: Tool = Tool {
    name: "objcopy",
    package: "binutils",
};
const PROMTOOL: Tool = Tool {
    name: "promtool",
    package: "prometheus",
};
const DEBOOTSTRAP: Tool = Tool {
    name: "debootstrap",
    package: "debootstrap",
};
const BUILDAH: Tool = Tool {
    name: "buildah",
    package: "buildah",
};
const TMUX: Tool = Tool {
    name: "tmux",
    package: "tmux",
};

const CHROMIUM: Tool = Tool {
    name: "chromium",
    package: "chromium",
};
const CHROMEDRIVER: Tool = Tool {
    name: "chromedriver",
    package: "chromium-driver",
};
const GO: Tool = Tool {
    name: "go",
    package: "golang-go",
};
const NPM: Tool = Tool {
    name: "npm",
    package: "npm",
};

/// Maven.
pub(crate) fn maven() -> Result<PathBuf> {
    find(&MAVEN)
}

/// Finds the programs that unpack and check the Tomcat distribution.
pub(crate) fn tar_and_sha512sum() -> Result<(PathBuf, PathBuf)> {
    Ok((find(&TAR)?, find(&SHA512SUM)?))
}

/// Finds the program that takes debug information out of a file.
pub(crate) fn objcopy() -> Result<PathBuf> {
    find(&OBJCOPY)
}

/// Prometheus' `promtool`, which the tests hold the metrics against.
pub(crate) fn promtool() -> Result<PathBuf> {
    find_or_install(&PROMTOOL)
}

/// The terminal that the tests run `heapwarden top` in.
pub(crate) fn tmux() -> Result<PathBuf> {
    find_or_install(&TMUX)
}

/// Finds or installs the programs by which long tests of packages make an old Debian and an image.
pub(crate) fn debootstrap_and_buildah() -> Result<(PathBuf, PathBuf)> {
    Ok((find_or_install(&DEBOOTSTRAP)?, find_or_install(&BUILDAH)?))
}

/// The browser that the page is tested in, and its driver.
pub(crate) fn chromium() -> Result<PathBuf> {
    find_or_install(&CHROMEDRIVER)?;
    find_or_install(&CHROMIUM)
}

/// Finds or installs Go: it brings `go tool pprof`, which the profiles are held against.
pub(crate) fn go() -> Result<PathBuf> {
    find_or_install(&GO)
}

/// Finds or installs npm: it brings axe-core, which the page is held against.
pub(crate) fn npm() -> Result<PathBuf> {
    find_or_install(&NPM)
}

/// Installs it where that is possible without asking: on Debian, as root.
fn find_or_install(tool: &Tool) -> Result<PathBuf> {
    if let Some(path) = on_path(tool.name) {
        return Ok(path);
    }
    if may_install() {
        println!(
            "{} is missing: installing Debian's package {}",
            tool.name, tool.package
        );
        process::run(Command::new("apt-get").args(["-q", "update"]), None)?;
        process::run(
            Command::new("apt-get")
                .args(["-q", "install", "-y", "--no-install-recommends"])
                .arg(tool.package)
                .env("DEBIAN_FRONTEND", "noninteractive"),
            None,
        )?;
    }
    find(tool)
}

fn may_install() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/etc/debian_version").exists()
}

fn find(tool: &Tool) -> Result<PathBuf> {
    match on_path(tool.name) {
        Some(path) => Ok(path),
        None => bail!("{} is missing; {}", tool.name, how_to_install(tool.package)),
    }
}

/// The line to type, for Debian and its kin.
fn how_to_install(package: &str) -> String {
    let sudo = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "sudo "
    };
    format!("on Debian and Ubuntu: {sudo}apt-get update && {sudo}apt-get install -y {package}")
}

/// A program in the folders of `PATH`.
fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_line_that_installs_it() {
        let tool = Tool {
            name: "no-such-program",
            package: "no-such-package",
        };
        let error = find(&tool).unwrap_err().to_string();
        assert!(error.contains("no-such-program is missing"), "{error}");
        assert!(
            error.contains("apt-get install -y no-such-package"),
            "{error}"
        );
    }

    #[test]
    fn a_program_is_found_on_the_path() {
        assert!(on_path("sh").unwrap().ends_with("sh"));
    }
}
