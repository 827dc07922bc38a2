//! Where the question is inserted: one method for each container.

use policy_rewrite::{ClassFile, Guard, Leave, MethodEdit, RewriteError, Rewriter, Snippet};

use crate::identity::names::Server;

/// The internal name of the class that is asked.
pub(super) const GUARD: &str = "dev/heapwarden/door/Guard";

/// The flag of a static method, §4.6.
const ACC_STATIC: u16 = 0x0008;

/// A method through which every request for a service comes, before any of the service's code runs.
#[derive(Debug)]
pub(super) struct Point {
    /// The server that it belongs to.
    pub(super) server: Server,
    /// The server's name in the log.
    pub(super) name: &'static str,
    /// The server's number for `dev.heapwarden.agent.Doors`.
    pub(super) number: i32,
    /// The signature of its class.
    pub(super) class: &'static str,
    pub(super) method: &'static str,
    /// The descriptors that releases of the server have given it. All its parameters are references.
    pub(super) descriptors: &'static [&'static str],
    /// How many references it is called with, `this` included.
    pub(super) loads: u8,
    leave: Leave,
}

/// All of them.
pub(super) static POINTS: [Point; 3] = [
    // Of Tomcat 8.5 to 11. The host's valve has set the context class loader; the wrapper's comes next,
    // which makes the filters and the servlet run.
    Point {
        server: Server::Tomcat,
        name: "Tomcat",
        number: 0,
        class: "Lorg/apache/catalina/core/StandardContextValve;",
        method: "invoke",
        descriptors: &[
            "(Lorg/apache/catalina/connector/Request;Lorg/apache/catalina/connector/Response;)V",
        ],
        loads: 3,
        leave: Leave::Returning,
    },
    // Of Jetty 12. True: the request was answered.
    Point {
        server: Server::Jetty,
        name: "Jetty",
        number: 1,
        class: "Lorg/eclipse/jetty/server/handler/ContextHandler;",
        method: "handle",
        descriptors: &[
            "(Lorg/eclipse/jetty/server/Request;Lorg/eclipse/jetty/server/Response;Lorg/eclipse/jetty/util/Callback;)Z",
        ],
        loads: 4,
        leave: Leave::ReturningBoolean(true),
    },
    // Of Undertow 2.2 with either name of the Servlet API, and of 2.3. A private method, but every request
    // comes through it, on a thread that may block.
    Point {
        server: Server::Undertow,
        name: "Undertow",
        number: 2,
        class: "Lio/undertow/servlet/handlers/ServletInitialHandler;",
        method: "dispatchRequest",
        descriptors: &[
            "(Lio/undertow/server/HttpServerExchange;Lio/undertow/servlet/handlers/ServletRequestContext;Lio/undertow/servlet/handlers/ServletChain;Ljakarta/servlet/DispatcherType;)V",
            "(Lio/undertow/server/HttpServerExchange;Lio/undertow/servlet/handlers/ServletRequestContext;Lio/undertow/servlet/handlers/ServletChain;Ljavax/servlet/DispatcherType;)V",
        ],
        loads: 5,
        leave: Leave::Returning,
    },
];

/// Why the question cannot be inserted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotInserted {
    /// The class has no such method.
    #[error("its {class} has no method {method} with the parameters that are known")]
    NoMethod {
        /// The class, in source form.
        class: String,
        /// The method.
        method: &'static str,
    },
    /// The class file is not understood, or has no room.
    #[error("its class file: {0}")]
    ClassFile(#[from] RewriteError),
}

impl Point {
    /// The point in the class of this signature.
    pub(super) fn of_class(signature: &str) -> Option<&'static Point> {
        POINTS.iter().find(|point| point.class == signature)
    }

    /// The class file with the question inserted. Pure.
    ///
    /// # Errors
    /// As [`NotInserted`] says; the class is then left alone.
    pub(super) fn insert(&self, file: &[u8]) -> Result<Vec<u8>, NotInserted> {
        let missing = || NotInserted::NoMethod {
            class: crate::identity::names::java_name(self.class),
            method: self.method,
        };
        let class = ClassFile::parse(file)?;
        let method = class.methods().iter().find(|method| {
            method.name() == self.method.as_bytes()
                && method.access_flags() & ACC_STATIC == 0
                && (self.descriptors.iter()).any(|known| known.as_bytes() == method.descriptor())
        });
        let method = method.ok_or_else(missing)?;
        let mut edit = MethodEdit::default();
        edit.guard(Guard {
            ask: self.question()?,
            leave: self.leave,
        });
        let mut rewriter = Rewriter::new(&class);
        rewriter.edit(method, &edit)?;
        rewriter.finish().ok_or_else(missing)
    }

    /// `Guard.isShut(this, ...)`.
    fn question(&self) -> Result<Snippet, RewriteError> {
        let mut ask = Snippet::new();
        for local in 0..self.loads {
            ask = ask.load_reference(local);
        }
        let objects = "Ljava/lang/Object;".repeat(self.loads.into());
        ask.invoke_static(GUARD, "isShut", &format!("({objects})Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALOAD: u8 = 0x19;
    const INVOKESTATIC: u8 = 0xb8;
    const IFEQ: u8 = 0x99;

    /// Points in classes of our own, with results of both kinds.
    fn ours() -> [(Point, &'static [u8]); 2] {
        let leaving_true = Point {
            class: "Ldev/heapwarden/agent/Subscription;",
            method: "wants",
            descriptors: &["(I)V", "(Ljava/lang/String;Ljava/lang/String;)Z"],
            loads: 3,
            ..jetty()
        };
        let leaving = Point {
            class: "Ldev/heapwarden/agent/Subscription;",
            method: "settle",
            descriptors: &["(Ljava/lang/String;)V"],
            loads: 2,
            leave: Leave::Returning,
            ..jetty()
        };
        let class =
            include_bytes!("../../java/classes/dev/heapwarden/agent/Subscription.class").as_slice();
        [(leaving_true, class), (leaving, class)]
    }

    fn jetty() -> Point {
        Point {
            descriptors: &[],
            ..POINTS[1]
        }
    }

    #[test]
    fn a_class_is_found_by_its_signature_and_each_server_has_its_number() {
        for (number, point) in POINTS.iter().enumerate() {
            assert_eq!(usize::try_from(point.number).unwrap(), number);
            assert!(std::ptr::eq(Point::of_class(point.class).unwrap(), point));
        }
        assert!(Point::of_class("Lorg/apache/catalina/core/StandardHostValve;").is_none());
        assert!(Point::of_class("[Lorg/apache/catalina/core/StandardContextValve;").is_none());
    }

    #[test]
    fn a_point_loads_this_and_all_parameters_which_are_references() {
        for point in &POINTS {
            for descriptor in point.descriptors {
                let (parameters, result) = descriptor[1..].split_once(')').unwrap();
                let parameters: Vec<&str> = parameters.split_terminator(';').collect();
                assert_eq!(
                    parameters.len() + 1,
                    usize::from(point.loads),
                    "{descriptor}"
                );
                assert!(parameters.iter().all(|one| one.starts_with('L')));
                let boolean = matches!(point.leave, Leave::ReturningBoolean(_));
                assert_eq!(result, if boolean { "Z" } else { "V" });
            }
        }
    }

    #[test]
    fn the_question_stands_at_the_entry_and_only_there() {
        for (point, file) in ours() {
            let inserted = point.insert(file).unwrap();
            let (before, after) = (
                ClassFile::parse(file).unwrap(),
                ClassFile::parse(&inserted).unwrap(),
            );
            for (old, new) in before.methods().iter().zip(after.methods()) {
                let opcodes = |method: &policy_rewrite::Method<'_>| -> Vec<u8> {
                    let code = method.code().unwrap();
                    let code = code.iter().flat_map(|code| code.instructions());
                    code.map(|instruction| instruction.opcode).collect()
                };
                let (old_code, new_code) = (opcodes(old), opcodes(new));
                if new.name() != point.method.as_bytes() {
                    assert_eq!(old_code, new_code);
                    continue;
                }
                let mut expected = vec![ALOAD; usize::from(point.loads)];
                expected.extend([INVOKESTATIC, IFEQ]);
                assert!(new_code.starts_with(&expected), "{new_code:x?}");
                assert!(new_code.ends_with(&old_code));
            }
            assert!(inserted.windows(GUARD.len()).any(|w| w == GUARD.as_bytes()));
        }
    }

    #[test]
    fn a_class_of_another_release_is_left_alone_with_a_reason() {
        let [(mut point, file), _] = ours();
        point.descriptors = &["(Ljava/lang/String;)Z"];
        let why = point.insert(file).unwrap_err().to_string();
        assert_eq!(
            why,
            "its dev.heapwarden.agent.Subscription has no method wants with the parameters that are known"
        );
        let why = point.insert(b"no class").unwrap_err().to_string();
        assert_eq!(why, "its class file: it is not a class file");
    }
}
