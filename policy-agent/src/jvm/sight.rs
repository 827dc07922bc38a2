//! Meeting classes and loaders: known ones are read off their tag, new ones are numbered and
//! tagged on the spot and left to the resolver and the clerk to name.

use jvmti_bindings::sys::jni;

use crate::agent::Agent;
use crate::identity::bill::Claim;
use crate::identity::classes::ClassId;
use crate::identity::clerk::NewClass;
use crate::identity::loaders::{LoaderId, Verdict};
use crate::ledger::{PurseId, Tag};

use super::java::{Jni, Local, Weak};
use super::tools::JvmTi;

/// Looks at classes and loaders: known ones by their tag, new ones numbered on the spot.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) jni: &'a Jni,
}

impl Sight<'_> {
    pub(super) fn tools(&self) -> &JvmTi {
        &self.agent.tools
    }

    /// The class of a sampled object, which will be named.
    ///
    /// # Safety
    /// `class` must be a valid class reference on this thread.
    pub(super) unsafe fn sampled_class(&self, class: jni::jclass) -> ClassId {
        // SAFETY: by this function's own contract.
        let id = unsafe { self.class(class) };
        if id != ClassId::UNKNOWN && self.agent.identity.classes.ask_name(id) {
            // SAFETY: by this function's own contract.
            unsafe { self.ask_name(id, class) };
        }
        id
    }

    /// Leaves a class to the clerk; where that cannot be, the next sample tries again.
    ///
    /// # Safety
    /// `class` must be a valid class reference on this thread.
    unsafe fn ask_name(&self, id: ClassId, class: jni::jclass) {
        let identity = &self.agent.identity;
        // SAFETY: by this function's own contract.
        let asked = unsafe { Weak::to(self.jni, class) }.is_some_and(|weak| {
            match identity.new_classes.push(NewClass { id, weak }) {
                Ok(()) => true,
                Err(refused) => {
                    self.jni.release(refused.weak);
                    false
                }
            }
        });
        if asked {
            self.agent.clerk.wake();
        } else {
            identity.classes.forget_asking(id);
        }
    }

    /// The entry of a class.
    ///
    /// # Safety
    /// `class` must be a valid class reference on this thread.
    pub(crate) unsafe fn class(&self, class: jni::jclass) -> ClassId {
        // SAFETY: by this function's own contract.
        let tag = unsafe { self.tools().tag_of(class) }.unwrap_or(0);
        if let Some(Tag::Class(handle)) = Tag::decode(tag) {
            return self.agent.identity.classes.of_tag(handle);
        }
        // The claims come with its preparation, or from the clerk: a name is not looked up
        // here.
        // SAFETY: as above.
        let id = unsafe { self.new_class(class, tag, [Claim::Nobody; 2]) };
        if self.agent.identity.classifies() && self.agent.identity.classes.ask_name(id) {
            // SAFETY: as above.
            unsafe { self.ask_name(id, class) };
        }
        id
    }

    /// Numbers a class. `tag` is the one it carries now: that of a sampled object, or 0.
    ///
    /// # Safety
    /// `class` must be a valid class reference on this thread.
    pub(crate) unsafe fn new_class(
        &self,
        class: jni::jclass,
        tag: i64,
        claims: [Claim; 2],
    ) -> ClassId {
        // SAFETY: by this function's own contract.
        let loader = match unsafe { self.tools().class_loader(self.jni, class) } {
            Ok(Some(loader)) => self.loader(&loader),
            _ => LoaderId::BOOT,
        };
        let classes = &self.agent.identity.classes;
        let Some(id) = classes.open(loader, claims, tag) else {
            return ClassId::UNKNOWN;
        };
        let Some(new_tag) = classes.tag(id) else {
            return ClassId::UNKNOWN;
        };
        // SAFETY: as above.
        let tagged = unsafe {
            self.tools()
                .set_tag_of(class, new_tag)
                .and_then(|()| self.tools().tag_of(class))
        };
        let carried = match tagged.map(Tag::decode) {
            Ok(Some(Tag::Class(handle))) => classes.of_tag(handle),
            _ => ClassId::UNKNOWN,
        };
        if carried != id {
            // Not tagged, or numbered by another thread too, whose tag it carries.
            classes.discard(id);
        }
        carried
    }

    /// The entry of a loader.
    pub(crate) fn loader(&self, loader: &Local<'_>) -> LoaderId {
        let tag = self.tools().tag(loader).unwrap_or(0);
        if let Some(Tag::Loader(handle)) = Tag::decode(tag)
            && let Some(id) = self.agent.identity.loaders.of_tag(handle)
        {
            return id;
        }
        self.new_loader(loader, tag)
    }

    /// Numbers a loader; the resolver will name it.
    fn new_loader(&self, loader: &Local<'_>, tag: i64) -> LoaderId {
        let Some(id) = self.number(loader, tag) else {
            return LoaderId::BOOT;
        };
        if self.agent.identity.new_loaders.push(id).is_ok() {
            self.agent.resolver.wake();
        } else {
            // It will look for those that it has not met.
            self.agent.resolver.rescan();
        }
        id
    }

    /// Numbers a loader and gives it a purse. `tag` is the one it carries now. `None` where the
    /// VM or a table has no room: it is tried again when the loader is next met.
    fn number(&self, loader: &Local<'_>, tag: i64) -> Option<LoaderId> {
        let loaders = &self.agent.identity.loaders;
        // First of all: without it nobody might hear of the entry's end.
        let weak = loader.weak()?;
        let opened = loaders
            .open(Verdict::Nobody, tag)
            .and_then(|id| Some((id, loaders.tag(id)?)));
        let Some((id, new_tag)) = opened else {
            self.jni.release(weak);
            return None;
        };
        // With no purse left its bytes are nobody's, which is the truth as far as we know.
        let purse = (self.agent.ledger.open_purse()).unwrap_or(PurseId::UNACCOUNTED);
        self.agent.identity.set_representative(purse, purse);
        loaders.judge(id, Verdict::Pending(purse));
        let tagged = self.tools().set_tag(loader, new_tag);
        loaders.introduce(id, weak);
        if tagged.is_err() {
            loaders.discard(id);
            return None;
        }
        Some(id)
    }
}
