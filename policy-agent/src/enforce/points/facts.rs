//! From what the VM tells of a method to what the rules say of it.

use super::judge::Verdict;
use super::reason::Reason;
use super::rules::Rules;

/// What the rules need to know of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The class that declares it, as Java writes it (`java.util.Map$Entry`).
    pub(crate) class: String,
    pub(crate) method: String,
    pub(crate) native: bool,
    /// The class is a part of the JDK.
    pub(crate) of_jdk: bool,
    /// The class is a class loader.
    pub(crate) of_loader: bool,
}

impl Facts {
    /// The package of the class; empty for the unnamed one.
    pub(crate) fn package(&self) -> &str {
        self.class
            .rsplit_once('.')
            .map_or("", |(package, _)| package)
    }

    /// What holds for every account.
    pub(crate) fn verdict(&self, rules: &Rules) -> Verdict {
        if self.method == "<clinit>" {
            return Verdict::Anywhere(Reason::Clinit);
        }
        if self.of_loader {
            return Verdict::Anywhere(Reason::ClassLoading);
        }
        let unreviewed = if self.of_jdk {
            Verdict::Jdk
        } else {
            Verdict::Outside
        };
        match rules.of(&self.class, &self.method) {
            // A class that only has a name like the JDK's was not reviewed; and what is
            // said of a class is said of its Java code.
            Some(ruling) if ruling.verdict == Verdict::Transparent => {
                if self.of_jdk && (ruling.by_name || !self.native) {
                    Verdict::Transparent
                } else {
                    unreviewed
                }
            }
            Some(ruling) => ruling.verdict,
            None => unreviewed,
        }
    }
}

/// The name of a class as Java writes it, from its signature: without the suffix that tells
/// hidden classes of one name apart (`Ljava/lang/invoke/LambdaForm$MH.0x0000000800c01000;`).
pub(crate) fn class_name(signature: &str) -> String {
    let name = signature.strip_prefix('L').unwrap_or(signature);
    let name = name.strip_suffix(';').unwrap_or(name);
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    name.replace('/', ".")
}

/// Whether a class is a part of the JDK, by its name and the class of its loader; `None` is the
/// boot loader. Tools such as the compiler have the loader of the class path, but their
/// packages are theirs.
pub(crate) fn is_of_jdk(class: &str, loader: Option<&str>) -> bool {
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

    fn facts(class: &str, method: &str) -> Facts {
        Facts {
            class: class.to_owned(),
            method: method.to_owned(),
            native: false,
            of_jdk: class.starts_with("java.") || class.starts_with("jdk."),
            of_loader: false,
        }
    }

    fn native(class: &str, method: &str) -> Facts {
        Facts {
            native: true,
            ..facts(class, method)
        }
    }

    #[test]
    fn methods_of_the_jdk_and_others() {
        use Reason::{ClassLoading, Clinit, Jdk, Linkage, Locks, Logging, Serialization, Timer};
        use Verdict::{Above, Anywhere, Outside, Transparent};
        let rules = Rules::reviewed();
        for (facts, expected) in [
            (facts("java.util.ArrayList", "grow"), Transparent),
            (facts("java.util.HashMap", "putVal"), Transparent),
            (
                facts("java.util.HashMap$TreeNode", "putTreeVal"),
                Transparent,
            ),
            (facts("java.util.HashMap$TreeNode", "split"), Above(Jdk)),
            (facts("java.util.HashMap", "resize"), Above(Jdk)),
            (
                facts("java.util.Comparator$$Lambda", "compare"),
                Transparent,
            ),
            (facts("java.util.Properties", "load"), Verdict::Jdk),
            (facts("java.util.TimerThread", "mainLoop"), Anywhere(Timer)),
            (
                facts("java.util.concurrent.locks.ReentrantLock", "lock"),
                Anywhere(Locks),
            ),
            (
                facts("java.util.concurrent.ConcurrentHashMap", "transfer"),
                Above(Jdk),
            ),
            (
                facts("java.util.concurrent.ConcurrentHashMap", "putVal"),
                Transparent,
            ),
            (facts("java.util.ArrayList", "<clinit>"), Anywhere(Clinit)),
            (facts("com.acme.Shop", "<clinit>"), Anywhere(Clinit)),
            (facts("com.acme.Shop", "sell"), Outside),
            (facts("org.slf4j.Logger", "info"), Anywhere(Logging)),
            (
                facts("java.lang.invoke.CallSite", "make"),
                Anywhere(Linkage),
            ),
            (
                facts("java.lang.invoke.LambdaForm$MH", "linkToTargetMethod"),
                Transparent,
            ),
            (
                facts("java.lang.invoke.LambdaForm", "prepare"),
                Anywhere(Linkage),
            ),
            (
                facts("java.io.ObjectStreamClass", "lookup"),
                Anywhere(Serialization),
            ),
            (
                facts("java.io.ObjectStreamClass", "invokeReadObject"),
                Transparent,
            ),
            (native("java.lang.Object", "clone"), Transparent),
            (native("java.lang.String", "intern"), Verdict::Jdk),
            (native("java.lang.reflect.Array", "newArray"), Transparent),
            (
                Facts {
                    of_loader: true,
                    ..facts("com.acme.Loader", "main")
                },
                Anywhere(ClassLoading),
            ),
            (
                // Not the JDK's, whatever its name.
                Facts {
                    of_jdk: false,
                    ..facts("jdk.internal.math.Mine", "grow")
                },
                Outside,
            ),
        ] {
            assert_eq!(facts.verdict(&rules), expected, "{facts:?}");
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
        assert_eq!(facts("Top", "m").package(), "");
        assert_eq!(facts("java.util.Map$Entry", "m").package(), "java.util");
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

    /// What the policy file's own diagnostics promise.
    #[test]
    fn packages_that_a_policy_cannot_open_are_never_interrupted() {
        let rules = Rules::reviewed();
        for package in policy_config::NEVER_INTERRUPTED {
            let verdict = facts(&format!("{package}.Some"), "m").verdict(&rules);
            assert!(matches!(verdict, Verdict::Anywhere(_)), "{package}");
        }
    }
}
