//! Takes the stack of a sample for its site, and names the methods on it later.
//!
//! The allocating thread stores numbers only. Each method that is new to the sites is handed over to the
//! metadata thread, with its class held weakly: HotSpot has crashed on questions about methods of classes
//! that were being unloaded (JDK-8268364, JDK-8339725).

use policy_jvm::{FrameBuffer, HeldMethod, Jni, JvmTi};

use crate::enforce::throw_points::method_info::{class_name, is_of_jdk};
use crate::ground::Ground;
use crate::identity::classes::ClassId;
use crate::ledger::PurseId;
use crate::references::UnnamedMethod;
use crate::sites::Visit;
use crate::sites::depth::{self, DEEPEST, FRAMES};
use crate::sites::names::Found;

use super::recognizer::Recognizer;
use super::stack::class_of;

/// Takes the stack of the calling thread, if stacks of such samples are wanted and the budget allows it.
/// Out of line: most samples take none.
#[cold]
#[inline(never)]
pub(super) fn take<'a>(
    recognizer: Recognizer<'a>,
    payer: PurseId,
    class: ClassId,
) -> Option<Visit<'a>> {
    let ground = recognizer.ground;
    let second = (ground.uptime_ms() / 1000) as u32;
    let mut visit = ground.core.sites.visit(payer, class.0, second)?;
    let jvmti = recognizer.jvmti();
    let identity = &ground.core.identity;
    let mut frames: FrameBuffer<'a, DEEPEST> = FrameBuffer::new(recognizer.jni);
    let mut first = None;
    let (mut known, mut wanted) = (0, FRAMES);
    loop {
        // If the VM fails, the site has no frame.
        let looked_at = known;
        known = frames.fetch(jvmti, 0, wanted).unwrap_or(0);
        first = first.or_else(|| {
            (looked_at..known).find(|&depth| {
                frames.frame(depth).is_some_and(|frame| {
                    let class = class_of(recognizer, frame);
                    !(identity.loaders).is_of_jdk(identity.classes.loader(class))
                })
            })
        });
        let is_whole = known < wanted;
        wanted = depth::wanted(first, known);
        if is_whole || wanted <= known {
            break;
        }
    }
    let kept = depth::kept(first, known);
    for depth in kept.top.clone().chain(kept.below.clone()) {
        if depth == kept.below.start && kept.leaves_out() {
            visit.leave_out();
        }
        let Some(frame) = frames.frame(depth) else {
            break;
        };
        if let Some(number) = visit.frame(frame.method().key() as u64, frame.bci()) {
            let held = frame.hold(jvmti);
            let queue = &ground.references.site_methods;
            let handed_over =
                held.is_some_and(|method| queue.push(UnnamedMethod { number, method }).is_ok());
            if handed_over {
                ground.metadata_thread.wake();
            } else {
                visit.gives_up(number);
            }
        }
    }
    Some(visit)
}

/// Names the methods that were handed over. On the metadata thread.
pub(crate) fn name_methods(ground: &Ground, jni: &Jni) {
    while let Some(new) = ground.references.site_methods.pop() {
        let found = found(&ground.jvmti, jni, &new.method);
        let key = new.method.id().key() as u64;
        ground.core.sites.name(new.number, key, found);
    }
}

fn found(jvmti: &JvmTi, jni: &Jni, method: &HeldMethod) -> Option<Found> {
    let method = method.upgrade(jvmti, jni)?;
    let class = method.class();
    let signature = jvmti.signature_of(class).ok()?;
    let name = class_name(&signature);
    let loader = match jvmti.loader_of(jni, class).ok()? {
        Some(loader) => Some(jvmti.signature_of(&loader.class()).ok()?),
        None => None,
    };
    Some(Found {
        method: method.name()?,
        file: jvmti.source_file_of(class),
        lines: method.lines(),
        of_jdk: is_of_jdk(&name, loader.as_deref()),
        is_hidden: is_hidden(&signature),
        is_native: method.is_native()?,
        class: name,
    })
}

/// Hidden classes have a suffix: `La/B$$Lambda.0x00;`, and in some JDKs `La/B$$Lambda$1/0x00;`.
fn is_hidden(signature: &str) -> bool {
    signature.contains('.') || signature.contains("/0x")
}

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn hidden_classes_are_known_by_their_suffix() {
        assert!(is_hidden("Lcom/acme/A$$Lambda$14/0x0000000800c03000;"));
        assert!(is_hidden("Lcom/acme/A$$Lambda.0x00007f;"));
        assert!(!is_hidden("Lcom/acme/A$1Local;"));
    }
}
