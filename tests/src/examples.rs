//! The examples that use the Java API, as Maven builds them.

use crate::fixture::up_to_date;
use crate::{artifacts, maven};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The folder `examples`, with `tenants` and `spring-boot` built once per test process.
///
/// # Panics
/// If Maven is missing or the build fails.
#[must_use]
pub fn built() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = artifacts::repository().join("examples");
        let made = folder.join("spring-boot/target/shop.jar");
        up_to_date("examples", &["examples", "java-api"], &[&made], || {
            // The API's own tests are run where it lies.
            maven::package(
                "the examples do not build",
                &folder,
                &["-Dmaven.test.skip=true"],
            );
        });
        folder
    })
}
