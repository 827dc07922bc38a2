//! The arguments of a JVM: its command line, and the environment variables that add to it.
//!
//! Files named by `@file`, `-XX:Flags=` and `-XX:VMOptionsFile=` are not read: they may have changed
//! since the JVM read them.

/// Options of the `java` launcher whose value is the next word.
const WITH_VALUE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--enable-native-access",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--limit-modules",
    "--patch-module",
    "--describe-module",
];

/// The options of a JVM, in order of precedence: a later one overrides an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Arguments(Vec<String>);

/// An agent among the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentArgument<'a> {
    /// A library's path or name, or a jar.
    pub(crate) library: &'a str,
    /// The text after the `=`; empty if there is none.
    pub(crate) options: &'a str,
}

impl Arguments {
    /// From `/proc/PID/cmdline` and `/proc/PID/environ`. What follows the main class is the
    /// application's, and ignored.
    pub(crate) fn parse(cmdline: &[u8], environ: &[u8]) -> Arguments {
        let variable = |name: &str| variable(environ, name).unwrap_or_default();
        let mut options = words(&variable("JAVA_TOOL_OPTIONS"));
        options.extend(words(&variable("JDK_JAVA_OPTIONS")));
        options.extend(of_the_launcher(cmdline));
        options.extend(words(&variable("_JAVA_OPTIONS")));
        Arguments(options)
    }

    /// Whether `-XX:+name` or `-XX:-name` was given, the last one counting.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let mut latest_first = self.0.iter().rev();
        latest_first.find_map(|option| {
            let flag = option.strip_prefix("-XX:")?;
            (flag.get(1..) == Some(name)).then(|| flag.starts_with('+'))
        })
    }

    /// Whether `-Xname` was given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.0.iter().any(|given| given == option)
    }

    /// The agents among the arguments, native and Java ones.
    pub(crate) fn agents(&self) -> Vec<AgentArgument<'_>> {
        let agents = self.0.iter().filter_map(|option| {
            let rest = ["-agentpath:", "-agentlib:", "-javaagent:"]
                .iter()
                .find_map(|prefix| option.strip_prefix(prefix))?;
            let (library, options) = rest.split_once('=').unwrap_or((rest, ""));
            Some(AgentArgument { library, options })
        });
        agents.collect()
    }

    /// The jar of the first Java agent, if the JVM loads it before Heapwarden.
    pub(crate) fn java_agent_before_heapwarden(&self) -> Option<&str> {
        let mut options = self.0.iter();
        let jar = options.find_map(|option| {
            let is_ours = option.starts_with("-agent") && option.contains("heapwarden");
            let jar = option.strip_prefix("-javaagent:");
            (is_ours || jar.is_some()).then_some(jar)
        })??;
        let is_behind =
            options.any(|option| option.starts_with("-agent") && option.contains("heapwarden"));
        is_behind.then(|| jar.split_once('=').map_or(jar, |(jar, _)| jar))
    }

    /// Heapwarden's options, if it is among the arguments.
    pub(crate) fn heapwarden(&self) -> Option<&str> {
        let agents = self.agents().into_iter();
        agents
            .filter(|agent| agent.library.contains("heapwarden"))
            .map(|agent| agent.options)
            .next_back()
    }
}

/// The value of a variable in `/proc/PID/environ`.
pub(crate) fn variable(environ: &[u8], name: &str) -> Option<String> {
    environ.split(|byte| *byte == 0).find_map(|entry| {
        let entry = String::from_utf8_lossy(entry);
        let (key, value) = entry.split_once('=')?;
        (key == name).then(|| value.to_owned())
    })
}

/// The words before the main class.
fn of_the_launcher(cmdline: &[u8]) -> Vec<String> {
    options_and_program(cmdline).0
}

/// Returns the name of what the launcher runs: the main class, `module/class`, or the file name of the jar. Empty if
/// the command line does not tell.
pub(crate) fn program(cmdline: &[u8]) -> String {
    options_and_program(cmdline).1
}

fn options_and_program(cmdline: &[u8]) -> (Vec<String>, String) {
    let mut options = Vec::new();
    let mut program = String::new();
    let mut given = cmdline
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .skip(1);
    while let Some(word) = given.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            given.next();
        } else if word == "-jar" {
            let jar = given.next().unwrap_or_default();
            jar.rsplit('/')
                .next()
                .unwrap_or_default()
                .clone_into(&mut program);
            break;
        } else if ["-m", "--module"].contains(&word.as_str()) {
            program = given.next().unwrap_or_default();
            break;
        } else if word.starts_with('-') {
            options.push(word);
        } else if !word.starts_with('@') {
            program = word;
            break;
        }
    }
    (options, program)
}

/// Splits at unquoted blanks, as the JVM splits its variables.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                begun = true;
            }
            (None, _) if character.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cmdline: &[&str], environ: &[&str]) -> Arguments {
        Arguments::parse(cmdline.join("\0").as_bytes(), environ.join("\0").as_bytes())
    }

    #[test]
    fn the_last_flag_counts_and_variables_stand_around_the_command_line() {
        let flag = "-XX:+DisableAttachMechanism";
        let unset = "-XX:-DisableAttachMechanism";
        let name = "DisableAttachMechanism";
        assert_eq!(of(&["java", flag, "Main"], &[]).flag(name), Some(true));
        assert_eq!(
            of(&["java", flag, unset, "Main"], &[]).flag(name),
            Some(false)
        );
        let tool = format!("JAVA_TOOL_OPTIONS={flag}");
        assert_eq!(
            of(&["java", unset, "Main"], &[&tool]).flag(name),
            Some(false)
        );
        let last = format!("_JAVA_OPTIONS={flag}");
        assert_eq!(
            of(&["java", unset, "Main"], &[&last]).flag(name),
            Some(true)
        );
        assert_eq!(of(&["java", "Main"], &["PATH=/bin"]).flag(name), None);
    }

    #[test]
    fn what_follows_the_main_class_is_the_applications() {
        let application = [
            "java",
            "-cp",
            "-Xrs",
            "-Xmx1g",
            "Main",
            "-XX:+DisableAttachMechanism",
            "-Xrs",
        ];
        let arguments = of(&application, &[]);
        assert!(arguments.has("-Xmx1g") && !arguments.has("-Xrs"));
        assert_eq!(arguments.flag("DisableAttachMechanism"), None);
        assert!(!of(&["java", "-jar", "a.jar", "-Xrs"], &[]).has("-Xrs"));
        assert!(of(&["java", "@options", "-Xrs", "Main"], &[]).has("-Xrs"));
    }

    #[test]
    fn a_program_is_named_by_its_class_or_jar() {
        let of = |cmdline: &[&str]| program(cmdline.join("\0").as_bytes());
        assert_eq!(
            of(&["java", "-cp", "a.jar", "-Xmx1g", "com.acme.Main", "x"]),
            "com.acme.Main"
        );
        assert_eq!(
            of(&["java", "-jar", "/opt/my apps/shop.jar", "secret"]),
            "shop.jar"
        );
        assert_eq!(of(&["java", "-m", "a.module/a.Main"]), "a.module/a.Main");
        assert_eq!(of(&["java", "@options"]), "");
        assert_eq!(program(b""), "");
    }

    #[test]
    fn agents_are_found_wherever_they_are_named() {
        let arguments = of(
            &[
                "java",
                "-javaagent:/a/dd.jar",
                "-agentlib:jdwp=transport=dt_socket,server=y",
                "Main",
            ],
            &[
                "JDK_JAVA_OPTIONS=-Dx='a b'  \"-agentpath:/opt/my libs/libheapwarden.so=listen=off,log=/l\"",
            ],
        );
        let libraries: Vec<&str> = arguments.agents().iter().map(|one| one.library).collect();
        assert_eq!(
            libraries,
            ["/opt/my libs/libheapwarden.so", "/a/dd.jar", "jdwp"]
        );
        assert_eq!(arguments.heapwarden(), Some("listen=off,log=/l"));
        assert!(arguments.has("-Dx=a b"));
    }

    #[test]
    fn hostile_bytes_are_read_without_harm() {
        let arguments = Arguments::parse(
            b"java\0\xff\xfe\0\0-XX:\0-XX:+\0",
            b"=\0JAVA_TOOL_OPTIONS\0'",
        );
        assert_eq!(arguments.flag("x"), None);
        assert_eq!(Arguments::parse(b"", b""), Arguments::default());
    }
}
