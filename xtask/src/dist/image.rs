//! The context of a container image: the recipe, and the package that it installs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use heapwarden_harness::repository;

use super::release::VERSION;

/// Writes the folder; the package must be there.
pub(super) fn write(output: &Path) -> Result<()> {
    let folder = output.join("image");
    fs::create_dir_all(&folder)?;
    let package = format!("heapwarden_{VERSION}_amd64.deb");
    fs::copy(output.join(&package), folder.join(&package))
        .with_context(|| format!("{package} cannot be copied"))?;
    let recipe = repository::root().join("deploy/image/Containerfile");
    fs::copy(&recipe, folder.join("Containerfile"))
        .with_context(|| format!("{} cannot be copied", recipe.display()))?;
    Ok(())
}
