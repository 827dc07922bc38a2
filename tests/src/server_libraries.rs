//! Programs that serve requests with a library (`tests/server-libraries`).

use std::iter;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::fixture::built_once;
use crate::java::{classes, run_compiler, sources_below};
use crate::{artifacts, fetched, jdk};

/// Their folder below `tests`.
const LIBRARIES: &str = "server-libraries";

/// The class path of the programs. Those in `helidon` are for Java 21: none are there if no JDK compiles for it.
///
/// # Panics
/// If the libraries cannot be fetched, or with the compiler's messages.
#[must_use]
pub fn class_path() -> String {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    let jars = fetched::jars(LIBRARIES);
    let compiled = COMPILED.get_or_init(|| {
        let sources = artifacts::repository().join("tests").join(LIBRARIES);
        built_once(
            LIBRARIES,
            &["tests/server-libraries", "tests/java"],
            |into| {
                let mut path = jars.clone();
                path.push(classes().victims());
                let of_21 = jdk::compiler_for(21).map(|jdk| ("helidon", 21, jdk));
                let all = iter::once(("shelves", 17, jdk::compiler())).chain(of_21);
                for (part, release, jdk) in all {
                    run_compiler(
                        fetched::compiler(jdk, &into.join(part), release)
                            .arg("-cp")
                            .arg(fetched::joined(&path))
                            .args(sources_below(&sources.join(part))),
                    );
                    path.push(into.join(part));
                }
            },
        )
    });
    let mut parts = vec![
        classes().victims(),
        compiled.join("shelves"),
        compiled.join("helidon"),
    ];
    parts.extend(jars);
    fetched::joined(&parts)
}
