//! Recognizes classes and loaders: a known one by its tag. A new one gets a number and a tag at once; the
//! loader thread or the metadata thread names it later.

use policy_jvm::kinds::Class;
use policy_jvm::{Jni, JvmTi, Ref};

use crate::ground::Ground;
use crate::identity::attribution::Claim;
use crate::identity::classes::ClassId;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::ledger::{PurseId, Tag};
use crate::references::NewClass;

/// Recognizes classes and loaders on the calling thread. See the module.
#[derive(Clone, Copy)]
pub(crate) struct Recognizer<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) jni: &'a Jni,
}

impl<'a> Recognizer<'a> {
    pub(super) fn jvmti(&self) -> &'a JvmTi {
        &self.ground.jvmti
    }

    /// The number of a sampled object's class. The metadata thread will name the class.
    pub(super) fn sampled_class(&self, class: &Ref<'_, Class>) -> ClassId {
        let id = self.class(class);
        if id != ClassId::UNKNOWN && self.ground.core.identity.classes.ask_name(id) {
            self.ask_name(id, class);
        }
        id
    }

    /// Asks the metadata thread to name a class. If its queue is full, the next sample tries again.
    fn ask_name(&self, id: ClassId, class: &Ref<'_, Class>) {
        let identity = &self.ground.core.identity;
        let new_classes = &self.ground.references.new_classes;
        let asked =
            class
                .weak()
                .is_some_and(|weak| match new_classes.push(NewClass { id, weak }) {
                    Ok(()) => true,
                    Err(refused) => {
                        self.jni.release(refused.weak);
                        false
                    }
                });
        if asked {
            self.ground.metadata_thread.wake();
        } else {
            identity.classes.forget_asking(id);
        }
    }

    /// The number of a class.
    pub(crate) fn class(&self, class: &Ref<'_, Class>) -> ClassId {
        let tag = self.jvmti().tag(class).unwrap_or(0);
        if let Some(Tag::Class(handle)) = Tag::decode(tag) {
            return self.ground.core.identity.classes.of_tag(handle);
        }
        // Names are not looked up here: the claims come with the class's preparation, or from the
        // metadata thread.
        let id = self.new_class(class, tag, [Claim::Nobody; 2]);
        if self.ground.core.identity.classifies() && self.ground.core.identity.classes.ask_name(id)
        {
            self.ask_name(id, class);
        }
        id
    }

    /// Numbers a class. `tag`: what it carries now, the tag of a sampled object or 0.
    pub(crate) fn new_class(
        &self,
        class: &Ref<'_, Class>,
        tag: i64,
        claims: [Claim; 2],
    ) -> ClassId {
        let loader = match self.jvmti().loader_of(self.jni, class) {
            Ok(Some(loader)) => self.loader(&loader),
            _ => LoaderId::BOOT,
        };
        let classes = &self.ground.core.identity.classes;
        let Some(id) = classes.open(loader, claims, tag) else {
            return ClassId::UNKNOWN;
        };
        let Some(new_tag) = classes.tag(id) else {
            return ClassId::UNKNOWN;
        };
        let tagged = (self.jvmti().set_tag(class, new_tag)).and_then(|()| self.jvmti().tag(class));
        let carried = match tagged.map(Tag::decode) {
            Ok(Some(Tag::Class(handle))) => classes.of_tag(handle),
            _ => ClassId::UNKNOWN,
        };
        if carried != id {
            // It has no tag, or the tag of another thread that numbered it at the same time.
            classes.discard(id);
        }
        carried
    }

    /// The number of a loader.
    pub(crate) fn loader(&self, loader: &Ref<'_>) -> LoaderId {
        let tag = self.jvmti().tag(loader).unwrap_or(0);
        if let Some(Tag::Loader(handle)) = Tag::decode(tag)
            && let Some(id) = self.ground.core.identity.loaders.of_tag(handle)
        {
            return id;
        }
        self.new_loader(loader, tag)
    }

    /// Numbers a loader; the loader thread will name it.
    fn new_loader(&self, loader: &Ref<'_>, tag: i64) -> LoaderId {
        let Some(id) = self.number(loader, tag) else {
            return LoaderId::BOOT;
        };
        if self.ground.core.identity.new_loaders.push(id).is_ok() {
            self.ground.loader_thread.wake();
        } else {
            // The queue is full: the loader thread then looks through the table of references.
            self.ground.loader_thread.rescan();
        }
        id
    }

    /// Numbers a loader and gives it a purse. `tag`: what it carries now. `None` if the VM or a table has
    /// no room: the next thread that meets the loader tries again.
    fn number(&self, loader: &Ref<'_>, tag: i64) -> Option<LoaderId> {
        let loaders = &self.ground.core.identity.loaders;
        // First, because without the reference nobody would see that the loader is gone.
        let weak = loader.weak()?;
        let opened = loaders
            .open(LoaderOwner::Nobody, tag)
            .and_then(|id| Some((id, loaders.tag(id)?)));
        let Some((id, new_tag)) = opened else {
            self.jni.release(weak);
            return None;
        };
        // If no purse is left, the loader's bytes go to `_unaccounted`.
        let purse = (self.ground.core.ledger.open_purse()).unwrap_or(PurseId::UNACCOUNTED);
        self.ground.core.identity.set_representative(purse, purse);
        loaders.set_owner(id, LoaderOwner::Pending(purse));
        let tagged = self.jvmti().set_tag(loader, new_tag);
        let introduced = self.ground.references.loaders.introduce(id, weak);
        let is_introduced = introduced.is_ok();
        if let Err(weak) = introduced {
            self.jni.release(weak);
        }
        if tagged.is_err() || !is_introduced {
            loaders.discard(id);
            return None;
        }
        Some(id)
    }
}
