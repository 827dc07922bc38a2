//! Classes and loaders that were there before the agent, or before a policy that classifies them.

use policy_jvm::kinds::Class;
use policy_jvm::{Jni, JvmTi, Local, Ref};

use policy_core::Core;

use crate::ground::Ground;
use crate::identity::attribution::Claim;
use crate::identity::loaders::LoaderOwner;
use crate::ledger::Tag;

use super::recognizer::Recognizer;

/// Enters the loaders of all loaded classes and, where `classify` says so, gives every class
/// its claims. On an attached agent thread, or at the start.
pub(crate) fn scan(ground: &Ground, jni: &Jni, classify: bool) {
    ground.jvmti.each_loaded_class(jni, |jni, class| {
        enter(Recognizer { ground, jni }, class, classify);
    });
}

fn enter(recognizer: Recognizer<'_>, class: &Ref<'_, Class>, classify: bool) {
    let (ground, jni) = (recognizer.ground, recognizer.jni);
    if !classify {
        if let Ok(Some(loader)) = ground.jvmti.loader_of(jni, class) {
            recognizer.loader(&loader);
        }
        return;
    }
    let Ok(signature) = ground.jvmti.signature_of(class) else {
        return;
    };
    let claims = ground.core.identity.claims_of(&signature);
    let tag = ground.jvmti.tag(class).unwrap_or(0);
    match Tag::decode(tag) {
        Some(Tag::Class(handle)) => {
            let classes = &ground.core.identity.classes;
            classes.set_claims(classes.of_tag(handle), claims);
        }
        // A class that nobody claims is entered when it is first met; its loader now.
        _ if claims == [Claim::Nobody; 2] => {
            if let Ok(Some(loader)) = ground.jvmti.loader_of(jni, class) {
                recognizer.loader(&loader);
            }
        }
        _ => {
            let id = recognizer.new_class(class, tag, claims);
            // It may be the entry of a thread that met the class at the same time.
            ground.core.identity.classes.set_claims(id, claims);
        }
    }
}

/// Enters the loaders that the JDK itself makes, at the start: the platform's belongs to no account, and the
/// application's is the program's. The loader thread finds out what program that is, if any.
pub(crate) fn enter_builtin_loaders(ground: &Ground, jni: &Jni) {
    let Some(class) = jni.boot_class("java/lang/ClassLoader") else {
        return;
    };
    let loader = |getter| jni.static_object(&class, getter, "()Ljava/lang/ClassLoader;");
    if let Some(platform) = loader("getPlatformClassLoader") {
        enter_platform(&ground.core, &ground.jvmti, &platform);
    }
    if let Some(system) = loader("getSystemClassLoader") {
        let id = Recognizer { ground, jni }.loader(&system);
        ground.core.identity.loaders.presume_program(id);
    }
}

fn enter_platform(core: &Core, jvmti: &JvmTi, loader: &Local<'_>) {
    let loaders = &core.identity.loaders;
    let tag = jvmti.tag(loader).unwrap_or(0);
    if let Some(id) = loaders.open(LoaderOwner::Nobody, tag)
        && let Some(tag) = loaders.tag(id)
    {
        let _ = jvmti.set_tag(loader, tag);
        loaders.set_platform(id);
    }
}
