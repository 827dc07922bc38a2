//! One version for all of it.

use std::fs;

use anyhow::{Context, Result, ensure};
use heapwarden_harness::repository;

use super::release::VERSION;

/// The files that name the version, with the text around it.
const PLACES: [(&str, &str); 4] = [
    ("java-api/pom.xml", "<version>VERSION</version>"),
    (
        "deploy/maven/heapwarden-agent.pom",
        "<version>VERSION</version>",
    ),
    (
        "deploy/kubernetes/tomcat.yaml",
        "image: heapwarden:VERSION\n",
    ),
    ("deploy/image/Containerfile", "ARG VERSION=VERSION\n"),
];

/// That each file has the version of the workspace.
///
/// # Errors
/// The file that has another.
pub(super) fn check() -> Result<()> {
    for (file, text) in PLACES {
        let path = repository::root().join(file);
        let found = fs::read_to_string(&path).with_context(|| format!("{file} cannot be read"))?;
        let wanted = match text.rsplit_once("VERSION") {
            Some((before, after)) => format!("{before}{VERSION}{after}"),
            None => text.to_owned(),
        };
        ensure!(
            found.contains(&wanted),
            "{file} is not of version {VERSION}: it has no {:?}",
            wanted.trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_files_have_the_version_of_the_workspace() {
        super::check().unwrap();
    }
}
