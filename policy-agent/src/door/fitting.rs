//! The common work of both fitters: they change loaded classes, and report it once. On the loader thread.

use std::collections::BTreeSet;

use policy_jvm::kinds::Class;
use policy_jvm::{Jni, Ref};

use crate::capabilities;
use crate::ground::Ground;

/// Why no class gets a door in this JVM, if that is so.
pub(super) fn is_possible(ground: &Ground) -> Result<(), &'static str> {
    if !(ground.published_capabilities()).contains(&(capabilities::REWRITING, true)) {
        return Err("the JVM does not let the agent rewrite classes");
    }
    if ground.bridge().is_none() {
        return Err("the agent's Java half could not be defined");
    }
    Ok(())
}

/// Makes an edit in a class, and makes it again whenever the JVM loads the code of the class anew while the agent sees
/// that. `edit` returns the new file, if there is anything to change, and what it found out.
///
/// # Errors
/// Why the class is as it was.
pub(super) fn rewrite<T>(
    ground: &Ground,
    jni: &Jni,
    class: &Ref<'_, Class>,
    edit: impl Fn(&[u8]) -> Result<(Option<Vec<u8>>, T), String> + Clone + Send + Sync + 'static,
) -> Result<T, String> {
    let kept = edit.clone();
    (ground.kept_edits).keep(jni, class, move |file| kept(file).ok()?.0);
    let mut outcome = Err("the JVM does not show its class file".to_owned());
    let rewritten = ground.jvmti.rewrite(jni, class, &mut |file| {
        let (file, found) = match edit(file) {
            Ok((file, found)) => (file, Ok(found)),
            Err(why) => (None, Err(why)),
        };
        outcome = found;
        file
    });
    if !matches!((&rewritten, &outcome), (Ok(true), Ok(_))) {
        ground.kept_edits.forget(jni, class);
    }
    match rewritten {
        Ok(_) => outcome,
        Err(failure) => Err(format!("the JVM does not accept the new class ({failure})")),
    }
}

/// Lines that were told to the log, each once and no more than so many.
pub(super) struct Told<const MOST: usize>(BTreeSet<String>);

impl<const MOST: usize> Told<MOST> {
    /// None yet.
    pub(super) fn none() -> Told<MOST> {
        Told(BTreeSet::new())
    }

    /// Whether the line is to be told now.
    fn is_new(&mut self, line: &str) -> bool {
        self.0.len() < MOST && self.0.insert(line.to_owned())
    }

    /// Warns, once.
    pub(super) fn warn(&mut self, line: &str) {
        if self.is_new(line) {
            tracing::warn!("{line}");
        }
    }

    /// Informs, once.
    pub(super) fn info(&mut self, line: &str) {
        if self.is_new(line) {
            tracing::info!("{line}");
        }
    }
}
