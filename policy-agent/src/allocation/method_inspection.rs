//! Inspects methods: the metadata thread asks the VM for what the rules of throw points need.

use policy_jvm::{HeldMethod, Jni, JvmTi, LiveMethod};

use crate::enforce::place_name::{MethodName, PlaceName};
use crate::enforce::throw_points::bytecode::Code;
use crate::enforce::throw_points::judge::MethodRule;
use crate::enforce::throw_points::method_info::{MethodInfo, class_name, is_of_jdk};
use crate::enforce::throw_points::methods::{Judged, Meant, MethodKey};
use crate::enforce::throw_points::units::Begun;
use crate::enforce::throw_points::{Reason, ThrowPoints};
use crate::ground::Ground;

use crate::identity::names::printable;
use crate::references::{OwnFrame, UnnamedPlace};

/// Inspects the methods that due threads have met. On the metadata thread.
pub(crate) fn inspect_methods(ground: &Ground, jni: &Jni) {
    let throw_points = &ground.core.throw_points;
    let errors = ground.errors();
    if let Some(errors) = errors {
        errors.prepare_copies(jni);
    }
    throw_points.methods.refresh(std::time::Instant::now());
    while let Some(new) = ground.references.new_methods.pop() {
        let key = MethodKey(new.id().key());
        if throw_points.methods.table().get(key).is_none()
            && let Some(method) = new.upgrade(&ground.jvmti, jni)
        {
            let meant = errors.map(|errors| errors.meant_by(jni, &ground.jvmti, method.class()));
            throw_points.methods.publish(Judged {
                meant: meant.unwrap_or_default(),
                ..judged(throw_points, &ground.jvmti, jni, &method)
            });
        }
    }
}

fn judged(throw_points: &ThrowPoints, jvmti: &JvmTi, jni: &Jni, method: &LiveMethod<'_>) -> Judged {
    let exceptions = throw_points.exceptions.load();
    let Some(method_info) = method_info(jvmti, jni, method) else {
        // It is inspected again when the table starts over.
        return Judged {
            method: MethodKey(method.id().key()),
            rule: MethodRule::Anywhere(Reason::Unresolved),
            begun: Begun::default(),
            is_event_loop: false,
            passes_on: false,
            said: exceptions.of("", ""),
            native: false,
            code: Code::unknown(),
            meant: Meant::default(),
        };
    };
    let code = if method_info.native {
        Code::default()
    } else {
        method
            .bytecodes()
            .map_or_else(Code::unknown, |bytes| Code::read(&bytes))
    };
    let code = if method_info.makes_instances() {
        code.with_calls_for_instances()
    } else {
        code
    };
    let units = throw_points.units;
    let (class, name) = (&method_info.class, &method_info.method);
    Judged {
        method: MethodKey(method.id().key()),
        rule: method_info.rule(throw_points.rules),
        begun: units.of(class, name),
        is_event_loop: units.is_event_loop(class, name),
        passes_on: units.passes_on(class, name),
        said: exceptions.of(&method_info.class, &method_info.method),
        native: method_info.native,
        code,
        meant: Meant::default(),
    }
}

fn method_info(jvmti: &JvmTi, jni: &Jni, method: &LiveMethod<'_>) -> Option<MethodInfo> {
    let class = method.class();
    let name = class_name(&jvmti.signature_of(class).ok()?);
    let loader = match jvmti.loader_of(jni, class).ok()? {
        Some(loader) => Some(jvmti.signature_of(&loader.class()).ok()?),
        None => None,
    };
    Some(MethodInfo {
        method: method.name()?,
        native: method.is_native()?,
        of_jdk: is_of_jdk(&name, loader.as_deref()),
        of_loader: jni.boot_class("java/lang/ClassLoader")?.is_super_of(class),
        class: name,
    })
}

/// A frame as the log names it, while its class is loaded. Not for allocating threads.
pub(crate) fn name_of(jvmti: &JvmTi, jni: &Jni, frame: &OwnFrame) -> Option<String> {
    let method = frame.method.upgrade(jvmti, jni)?;
    let class = class_name(&jvmti.signature_of(method.class()).ok()?);
    let name = method.name()?;
    let line = frame.bci.and_then(|bci| method.line(bci));
    Some(match line {
        Some(line) => format!("{class}.{name}, line {line}"),
        None => format!("{class}.{name}"),
    })
}

/// The name of a place, while its classes are loaded. Not for allocating threads.
pub(crate) fn place_name(jvmti: &JvmTi, jni: &Jni, place: &UnnamedPlace) -> Option<PlaceName> {
    let name = |method| method_name(jvmti, jni, method);
    Some(PlaceName {
        frame: name(&place.frame)?,
        entry: name(&place.entry)?,
        unit: match &place.unit {
            Some(unit) => Some(name(unit)?),
            None => None,
        },
        work: place.work,
        passes_on: place.passes_on,
        is_named_by_policy: place.is_named_by_policy,
    })
}

fn method_name(jvmti: &JvmTi, jni: &Jni, method: &HeldMethod) -> Option<MethodName> {
    let method = method.upgrade(jvmti, jni)?;
    let class = class_name(&jvmti.signature_of(method.class()).ok()?);
    Some(MethodName {
        class: printable(&class).into(),
        method: printable(&method.name()?).into(),
    })
}
