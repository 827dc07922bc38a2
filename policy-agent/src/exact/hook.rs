//! Gives counters to each class that is loaded, while they are wanted. On the thread that loads it.
//!
//! It also makes what else the agent has inserted into a class again ([`crate::inserted::KeptEdits`]), so that no
//! switch of exact accounts takes it out for a moment.

use policy_core::exact::Skip;
use policy_exact::{Contexts, Left, Outcome, Plan};
use policy_jvm::kinds::Class;
use policy_jvm::{ClassFiles, Jni, JvmTi, Ref};
use policy_rewrite::{ClassFile, RewriteError};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::loaders::LoaderId;

use super::contexts::Contexts as Counted;
use super::numbers::{Loader, Numbers};
use super::setting::Setting;

/// See the module.
pub(super) struct Hook;

impl ClassFiles for Hook {
    fn rewritten(
        &self,
        jni: &Jni,
        tools: &JvmTi,
        class: Option<&Ref<'_, Class>>,
        loader: Option<&Ref<'_>>,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let ground = Ground::get()?;
        let counting = match Setting::get().is_inserting() {
            true => counting(ground, jni, tools, loader, bytes),
            false => None,
        };
        let file = counting.as_deref().unwrap_or(bytes);
        let kept = class.and_then(|class| ground.kept_edits.make(jni, class, file));
        kept.or(counting)
    }
}

/// The class file with counters; `None` if there is nothing to count in it.
fn counting(
    ground: &Ground,
    jni: &Jni,
    tools: &JvmTi,
    loader: Option<&Ref<'_>>,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let numbers = Numbers::get();
    let counting = &ground.core.exact;
    let Some(loader) = loader_of(ground, jni, tools, loader) else {
        // No number is left for the loader: its classes could be taken for others.
        counting.skipped(Skip::TooManyClasses);
        return None;
    };
    let name = ClassFile::parse(bytes).ok()?.name();
    let wanted = Setting::get().wanted();
    let text = String::from_utf8_lossy(name);
    let package = text.rsplit_once('/').map_or("", |(package, _)| package);
    let has_contexts = wanted.has_contexts_of(package);
    if !wanted.accounts && !has_contexts && !policy_exact::follows_threads(name) {
        return None;
    }
    let code = numbers.code(&ground.core.identity, loader, &format!("L{text};"));
    let account = code.filter(|_| wanted.accounts);
    let contexts = Counted::get();
    let mut method =
        |method: &[u8], descriptor: &[u8]| contexts.method(code, (name, method, descriptor));
    let mut class = |class: &[u8]| contexts.class(class);
    let mut plan = Plan {
        account,
        number: &mut |class| numbers.class(loader, class),
        accounts: wanted.accounts,
        contexts: has_contexts.then_some(Contexts {
            method: &mut method,
            class: &mut class,
            bytecodes: wanted.bytecodes,
        }),
    };
    let Outcome { bytes, left } = policy_exact::rewrite(bytes, &mut plan);
    if bytes.is_some() {
        counting.rewritten();
    }
    let mut told: Vec<Skip> = Vec::new();
    for why in left.iter().map(skip) {
        if !told.contains(&why) {
            told.push(why);
            counting.skipped(why);
        }
    }
    bytes
}

/// The loader as the numbers know it; `None` if it has no number.
pub(super) fn loader_of(
    ground: &Ground,
    jni: &Jni,
    tools: &JvmTi,
    loader: Option<&Ref<'_>>,
) -> Option<Loader> {
    let Some(loader) = loader else {
        return Some(Loader::Boot);
    };
    let id = Recognizer { ground, jni }.loader(loader);
    match (id, tools.tag(loader)) {
        (LoaderId::BOOT, _) | (_, Err(_) | Ok(0)) => None,
        (_, Ok(tag)) => Some(Loader::Numbered(tag)),
    }
}

fn skip(left: &Left) -> Skip {
    match left {
        Left::Old => Skip::Old,
        Left::ThreadMachinery => Skip::ThreadMachinery,
        Left::NoNumber => Skip::TooManyClasses,
        Left::Refused(RewriteError::MethodTooLong | RewriteError::Full(_)) => Skip::TooLong,
        Left::Refused(_) => Skip::NotUnderstood,
    }
}
