//! Studying methods: the clerk asks the VM for what the rules need to know.

use crate::agent::Agent;
use crate::enforce::points::bytecode::Code;
use crate::enforce::points::facts::{Facts, class_name, is_of_jdk};
use crate::enforce::points::judge::Verdict;
use crate::enforce::points::methods::Judged;
use crate::enforce::points::{Points, Reason};

use super::java::{Jni, Local};
use super::point::OwnFrame;
use super::tools::{JvmTi, MethodId};

/// Studies the methods that due threads have met. On the clerk's thread.
pub(crate) fn study(agent: &Agent, jni: &Jni) {
    let points = &agent.points;
    points.methods.refresh(std::time::Instant::now());
    while let Some(new) = points.methods.new.pop() {
        if points.methods.table().get(new.method).is_none()
            && let Some(class) = new.class.upgrade(jni)
        {
            points
                .methods
                .publish(judged(points, &agent.tools, jni, new.method, &class));
        }
        jni.release(new.class);
    }
}

fn judged(
    points: &Points,
    tools: &JvmTi,
    jni: &Jni,
    method: MethodId,
    class: &Local<'_>,
) -> Judged {
    let exceptions = points.exceptions.load();
    let Some(facts) = facts(tools, jni, method, class) else {
        // Asked once more when the table starts over.
        return Judged {
            method,
            verdict: Verdict::Anywhere(Reason::Unresolved),
            said: exceptions.of(""),
            native: false,
            code: Code::unknown(),
        };
    };
    let code = if facts.native {
        Code::default()
    } else {
        tools
            .bytecodes(method)
            .map_or_else(Code::unknown, |bytes| Code::read(&bytes))
    };
    Judged {
        method,
        verdict: facts.verdict(&points.rules),
        said: exceptions.of(facts.package()),
        native: facts.native,
        code,
    }
}

fn facts(tools: &JvmTi, jni: &Jni, method: MethodId, class: &Local<'_>) -> Option<Facts> {
    let name = class_name(&tools.signature_of(class).ok()?);
    let loader = match tools.loader_of(jni, class).ok()? {
        Some(loader) => Some(tools.signature_of(&loader.class()).ok()?),
        None => None,
    };
    Some(Facts {
        method: tools.method_name(method)?,
        native: tools.is_native(method)?,
        of_jdk: is_of_jdk(&name, loader.as_deref()),
        of_loader: jni.boot_class("java/lang/ClassLoader")?.is_super_of(class),
        class: name,
    })
}

/// A frame as the log names it. `class` declares its method and keeps it there. Not for allocating
/// threads.
pub(crate) fn name_of(tools: &JvmTi, class: &Local<'_>, frame: OwnFrame) -> Option<String> {
    let class = class_name(&tools.signature_of(class).ok()?);
    let method = tools.method_name(frame.method)?;
    let line = frame.bci.and_then(|bci| tools.line(frame.method, bci));
    Some(match line {
        Some(line) => format!("{class}.{method}, line {line}"),
        None => format!("{class}.{method}"),
    })
}
