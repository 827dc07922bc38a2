//! The facts about a method that the rules need, and the rule that follows.

use super::judge::MethodRule;
use super::reason::Reason;
use super::rules::Rules;

/// The name and class of a method, and the facts about both that the rules need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodInfo {
    /// The class that declares it, as Java writes it (`java.util.Map$Entry`).
    pub class: String,
    /// The method's name.
    pub method: String,
    /// Whether the method is native.
    pub native: bool,
    /// Whether the class is part of the JDK.
    pub of_jdk: bool,
    /// Whether the class is a class loader.
    pub of_loader: bool,
}

impl MethodInfo {
    /// The package of the class; empty for the unnamed one.
    pub fn package(&self) -> &str {
        self.class
            .rsplit_once('.')
            .map_or("", |(package, _)| package)
    }

    /// Whether the method makes an instance by a call, as linked constructor handles do.
    pub fn makes_instances(&self) -> bool {
        self.of_jdk
            && self.class == "java.lang.invoke.DirectMethodHandle"
            && self.method == "allocateInstance"
    }

    /// The rule for every account.
    pub fn rule(&self, rules: &Rules) -> MethodRule {
        if self.method == "<clinit>" {
            return MethodRule::Anywhere(Reason::Clinit);
        }
        if self.of_loader {
            return MethodRule::Anywhere(Reason::ClassLoading);
        }
        let unreviewed = if self.of_jdk {
            MethodRule::Jdk
        } else {
            MethodRule::Outside
        };
        match rules.of(&self.class, &self.method) {
            // A class outside the JDK with a name like the JDK's was not reviewed. A rule for a
            // class is about its Java methods, not about native ones.
            Some(ruling) if ruling.rule == MethodRule::Transparent => {
                if self.of_jdk && (ruling.by_name || !self.native) {
                    MethodRule::Transparent
                } else {
                    unreviewed
                }
            }
            Some(ruling) => ruling.rule,
            None => unreviewed,
        }
    }
}

/// The name of a class as Java writes it, from its signature; without the suffix that distinguishes
/// hidden classes of the same name (`Ljava/lang/invoke/LambdaForm$MH.0x0000000800c01000;`).
pub fn class_name(signature: &str) -> String {
    let name = signature.strip_prefix('L').unwrap_or(signature);
    let name = name.strip_suffix(';').unwrap_or(name);
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    name.replace('/', ".")
}

/// Whether a class is part of the JDK, by its name and the class of its loader (`None` is the boot
/// loader). Tools such as the compiler have the class path's loader; the JDK's own package prefixes
/// identify them.
pub fn is_of_jdk(class: &str, loader: Option<&str>) -> bool {
    match loader {
        None | Some("Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;") => true,
        Some("Ljdk/internal/loader/ClassLoaders$AppClassLoader;") => ["jdk.", "sun.", "com.sun."]
            .iter()
            .any(|own| class.starts_with(own)),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method_info(class: &str, method: &str) -> MethodInfo {
        MethodInfo {
            class: class.to_owned(),
            method: method.to_owned(),
            native: false,
            of_jdk: class.starts_with("java.") || class.starts_with("jdk."),
            of_loader: false,
        }
    }

    fn native(class: &str, method: &str) -> MethodInfo {
        MethodInfo {
            native: true,
            ..method_info(class, method)
        }
    }

    #[test]
    fn methods_of_the_jdk_and_others() {
        use MethodRule::{Above, Anywhere, Outside, Transparent};
        use Reason::{ClassLoading, Clinit, Jdk, Linkage, Locks, Logging, Serialization, Timer};
        let rules = Rules::reviewed();
        for (method_info, expected) in [
            (method_info("java.util.ArrayList", "grow"), Transparent),
            (method_info("java.util.HashMap", "putVal"), Transparent),
            (
                method_info("java.util.HashMap$TreeNode", "putTreeVal"),
                Transparent,
            ),
            (
                method_info("java.util.HashMap$TreeNode", "split"),
                Above(Jdk),
            ),
            (method_info("java.util.HashMap", "resize"), Above(Jdk)),
            (
                method_info("java.util.Comparator$$Lambda", "compare"),
                Transparent,
            ),
            (method_info("java.util.Properties", "load"), MethodRule::Jdk),
            (
                method_info("java.util.TimerThread", "mainLoop"),
                Anywhere(Timer),
            ),
            (
                method_info("java.util.concurrent.locks.ReentrantLock", "lock"),
                Anywhere(Locks),
            ),
            (
                method_info("java.util.concurrent.ConcurrentHashMap", "transfer"),
                Above(Jdk),
            ),
            (
                method_info("java.util.concurrent.ConcurrentHashMap", "putVal"),
                Transparent,
            ),
            (
                method_info("java.util.ArrayList", "<clinit>"),
                Anywhere(Clinit),
            ),
            (method_info("com.acme.Shop", "<clinit>"), Anywhere(Clinit)),
            (method_info("com.acme.Shop", "sell"), Outside),
            (
                method_info("java.lang.invoke.DirectMethodHandle", "allocateInstance"),
                Transparent,
            ),
            (
                native("jdk.internal.misc.Unsafe", "allocateInstance"),
                Transparent,
            ),
            (
                method_info("java.lang.invoke.DirectMethodHandle", "ensureInitialized"),
                Anywhere(Linkage),
            ),
            (
                method_info(
                    "org.apache.logging.log4j.web.Log4jServletFilter",
                    "doFilter",
                ),
                Above(Logging),
            ),
            (
                method_info("org.apache.logging.log4j.core.Logger", "log"),
                Anywhere(Logging),
            ),
            (
                method_info("org.slf4j.helpers.MessageFormatter", "safeObjectAppend"),
                Above(Logging),
            ),
            (
                method_info("wiremock.org.slf4j.Logger", "info"),
                Anywhere(Logging),
            ),
            (
                method_info("org.eclipse.jetty.server.Server", "handle"),
                MethodRule::Framework,
            ),
            (
                method_info("wiremock.org.eclipse.jetty.server.Server", "handle"),
                MethodRule::Framework,
            ),
            (
                method_info("io.grpc.netty.shaded.io.netty.channel.Channel", "read"),
                MethodRule::Framework,
            ),
            (
                method_info("reactor.core.publisher.FluxMap", "subscribe"),
                MethodRule::Framework,
            ),
            (method_info("com.acme.reactor.Loop", "run"), Outside),
            (method_info("org.slf4j.Logger", "info"), Anywhere(Logging)),
            (
                method_info("dev.heapwarden.grpc.AdmissionInterceptor", "turnAway"),
                Anywhere(Reason::Container),
            ),
            (
                method_info("dev.heapwarden.grpc.AdmissionInterceptor", "interceptCall"),
                Above(Reason::Container),
            ),
            (
                method_info("java.lang.invoke.CallSite", "make"),
                Anywhere(Linkage),
            ),
            (
                method_info("java.lang.invoke.LambdaForm$MH", "linkToTargetMethod"),
                Transparent,
            ),
            (
                method_info("java.lang.invoke.LambdaForm", "prepare"),
                Anywhere(Linkage),
            ),
            (
                method_info("java.io.ObjectStreamClass", "lookup"),
                Anywhere(Serialization),
            ),
            (
                method_info("java.io.ObjectStreamClass", "invokeReadObject"),
                Transparent,
            ),
            (native("java.lang.Object", "clone"), Transparent),
            (native("java.lang.String", "intern"), MethodRule::Jdk),
            (native("java.lang.reflect.Array", "newArray"), Transparent),
            (
                MethodInfo {
                    of_loader: true,
                    ..method_info("com.acme.Loader", "main")
                },
                Anywhere(ClassLoading),
            ),
            (
                // Not the JDK's, whatever its name.
                MethodInfo {
                    of_jdk: false,
                    ..method_info("jdk.internal.math.Mine", "grow")
                },
                Outside,
            ),
        ] {
            assert_eq!(method_info.rule(rules), expected, "{method_info:?}");
        }
    }

    #[test]
    fn names_come_from_signatures() {
        assert_eq!(class_name("Ljava/util/Map$Entry;"), "java.util.Map$Entry");
        assert_eq!(
            class_name("Ljava/lang/invoke/LambdaForm$MH.0x0000000800c01000;"),
            "java.lang.invoke.LambdaForm$MH"
        );
        assert_eq!(class_name("LTop;"), "Top");
        assert_eq!(method_info("Top", "m").package(), "");
        assert_eq!(
            method_info("java.util.Map$Entry", "m").package(),
            "java.util"
        );
    }

    #[test]
    fn the_jdk_is_what_its_loaders_load() {
        let app = Some("Ljdk/internal/loader/ClassLoaders$AppClassLoader;");
        assert!(is_of_jdk("java.util.Map", None));
        assert!(is_of_jdk(
            "java.sql.Driver",
            Some("Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;")
        ));
        assert!(is_of_jdk("com.sun.tools.javac.Main", app));
        assert!(!is_of_jdk("com.acme.Shop", app));
        assert!(!is_of_jdk("jdk.internal.Mine", Some("Lcom/acme/Loader;")));
    }

    /// The diagnostics of policy files promise this of each of these packages.
    #[test]
    fn packages_that_a_policy_cannot_open_are_never_interrupted() {
        let rules = Rules::reviewed();
        for package in policy_config::NEVER_INTERRUPTED {
            let rule = method_info(&format!("{package}.Some"), "m").rule(rules);
            assert!(matches!(rule, MethodRule::Anywhere(_)), "{package}");
        }
    }
}
