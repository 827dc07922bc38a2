//! The program: what the JVM was started with, and what its classes on the class path are called.
//!
//! The name is, in this order: `spring.application.name` of a Spring Boot application; that of a Quarkus application
//! (see [`super::quarkus`]); the main module; the jar of the main class without its version; the main class; the class
//! that Spring Boot's launcher starts. A container's own start-up, a tool of the JDK and a JVM inside another program
//! (without a java command) are no program: their code is nobody's.

use std::path::Path;
use std::sync::OnceLock;

use policy_jvm::{Jni, JvmTi};

use crate::identity::names::{Server, ServiceName, service};
use crate::identity::versions::without_version;
use crate::servers::SERVERS;

use super::class_path::{Elements, Files, is_archive};
use super::{quarkus, spring_boot};

/// Where the main classes of further containers lie: those that have no declaration in `servers`.
const CONTAINERS: [&str; 1] = ["weblogic."];

/// Where the main classes and modules of the JDK's tools lie.
const TOOLS: [&str; 4] = ["com.sun.tools.", "java.", "jdk.", "sun."];

/// Where the classes lie that start a Spring Boot application with its libraries inside.
const SPRING_BOOT_LAUNCHERS: &str = "org.springframework.boot.loader.";

/// Elements of the class path that are searched for the main class, at most.
const MAX_ELEMENTS: usize = 2_000;

/// How the JVM was started.
#[derive(Debug, Default)]
pub(crate) struct Launch {
    /// The main class, the module and main class, or the jar, and the arguments: `sun.java.command`.
    command: String,
    class_path: String,
    /// The system property `spring.application.name`.
    application_name: Option<String>,
    /// The system property `quarkus.application.name`.
    quarkus_name: Option<String>,
}

impl Launch {
    /// Reads it from the JVM.
    fn of(jvmti: &JvmTi) -> Launch {
        let property = |name| jvmti.system_property(name);
        Launch {
            command: property("sun.java.command").unwrap_or_default(),
            class_path: property("java.class.path").unwrap_or_default(),
            application_name: property("spring.application.name"),
            quarkus_name: property(quarkus::NAME),
        }
    }
}

/// The program whose classes the application class loader has. `None` where they are nobody's.
pub(crate) fn program(jni: &Jni, jvmti: &JvmTi) -> Option<ServiceName> {
    let files = Files(jni);
    let program = Program::of(&Launch::of(jvmti), &files);
    (program.pays()).then(|| program.name())
}

/// The one Spring Boot application in the JVM.
pub(crate) fn spring_boot_application(jni: &Jni, jvmti: &JvmTi) -> ServiceName {
    let mut program = Program::of(&Launch::of(jvmti), &Files(jni));
    program.is_spring_boot = true;
    program.name()
}

/// The main class that the JVM was started with; empty if it is not known. It is searched for once.
pub(crate) fn main_class(jni: &Jni, jvmti: &JvmTi) -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| Program::of(&Launch::of(jvmti), &Files(jni)).main_class)
}

/// The names and the files by which the program is known. Pure.
#[derive(Debug, Default)]
struct Program {
    main_class: String,
    module: Option<String>,
    /// The jar that has the main class.
    jar: Option<String>,
    is_spring_boot: bool,
    /// The main class that Spring Boot's launcher of an unpacked jar starts.
    start_class: Option<String>,
    /// `spring.application.name`.
    application_name: Option<String>,
    /// The names of a Quarkus application.
    quarkus: Vec<String>,
}

impl Program {
    fn of(launch: &Launch, elements: &dyn Elements) -> Program {
        let mut program = Program::default();
        let path = launch.class_path.as_str();
        // With -jar, the jar is the class path, and its name may have spaces.
        let after_jar = (launch.command.strip_prefix(path))
            .filter(|rest| is_archive(path) && (rest.is_empty() || rest.starts_with(' ')));
        let is_jar = after_jar.is_some();
        let arguments = after_jar.unwrap_or(&launch.command);
        if is_jar {
            program.jar = Some(path.to_owned());
            let manifest = elements.text(path, "META-INF/MANIFEST.MF");
            program.main_class = (manifest.as_deref())
                .and_then(|text| header(text, "Main-Class"))
                .unwrap_or_default();
            let has = |name, wanted: fn(&str) -> bool| {
                (manifest.as_deref().and_then(|text| header(text, name)))
                    .is_some_and(|value| wanted(&value))
            };
            program.is_spring_boot = program.main_class.starts_with(SPRING_BOOT_LAUNCHERS)
                || has("Spring-Boot-Version", |_| true)
                // Of a jar that Spring Boot's tools have taken its libraries out of.
                || has("Class-Path", |path| path.split(' ').any(is_spring_boot_jar));
        } else {
            let word = launch.command.split(' ').next().unwrap_or_default();
            match word.split_once('/') {
                Some((module, class)) => {
                    program.module = Some(module.to_owned());
                    program.main_class = class.to_owned();
                }
                None => program.main_class = word.to_owned(),
            }
            if program.module.is_none() && !program.main_class.is_empty() {
                let entry = format!("{}.class", program.main_class.replace('.', "/"));
                let holder = elements_of(path).find(|element| elements.has(element, &entry));
                program.jar = holder
                    .filter(|element| is_archive(element))
                    .map(str::to_owned);
                if program.main_class.starts_with(SPRING_BOOT_LAUNCHERS) {
                    // An unpacked jar, as layered images have it.
                    program.is_spring_boot = true;
                    let manifest =
                        holder.and_then(|element| elements.text(element, "META-INF/MANIFEST.MF"));
                    program.start_class = manifest.and_then(|text| header(&text, "Start-Class"));
                }
            }
        }
        if quarkus::is_main(&program.main_class) {
            program.quarkus = quarkus::names(path, launch.quarkus_name.as_deref(), elements);
        }
        program.is_spring_boot |= elements_of(path).any(is_spring_boot_jar);
        if program.is_spring_boot || launch.application_name.is_some() {
            let argument = (arguments.split(' '))
                .find_map(|word| word.strip_prefix("--spring.application.name="));
            program.application_name = (argument.map(str::to_owned))
                .or_else(|| launch.application_name.clone())
                .or_else(|| elements.variable("SPRING_APPLICATION_NAME"))
                .or_else(|| {
                    let jar = program.jar.as_deref();
                    // Other jars may bring a file of their own that the application's goes before.
                    let own = elements_of(path)
                        .filter(|element| !is_archive(element) || Some(*element) == jar);
                    own.into_iter().find_map(|element| {
                        spring_boot::configured_in(element, "spring.application.name", elements)
                    })
                })
                .filter(|name| !name.trim().is_empty());
        }
        program
    }

    /// Whether what nobody else owns is the program's.
    fn pays(&self) -> bool {
        let starts = |name: &str, with: &[&str]| with.iter().any(|start| name.starts_with(start));
        let is_known = !self.main_class.is_empty() || self.module.is_some() || self.jar.is_some();
        is_known
            && !starts(&self.main_class, &CONTAINERS)
            && !(SERVERS.iter()).any(|server| starts(&self.main_class, server.main_classes))
            && !starts(&self.main_class, &TOOLS)
            && !(self.module.as_deref()).is_some_and(|module| starts(module, &TOOLS))
    }

    fn name(&self) -> ServiceName {
        let mut names: Vec<String> = self.application_name.iter().cloned().collect();
        names.extend(self.quarkus.iter().cloned());
        names.extend(self.module.clone());
        if let Some(stem) = self.jar.as_deref().and_then(stem) {
            names.push(without_version(stem).to_owned());
            names.push(stem.to_owned());
        }
        if !self.main_class.is_empty() && !self.main_class.starts_with(SPRING_BOOT_LAUNCHERS) {
            names.push(self.main_class.clone());
        }
        names.extend(self.start_class.clone());
        if names.is_empty() {
            names.push("application".to_owned());
        }
        ServiceName {
            server: match self.is_spring_boot {
                true => Server::SpringBoot,
                false => Server::Program,
            },
            ..service(names, false)
        }
    }
}

fn elements_of(class_path: &str) -> impl Iterator<Item = &str> {
    let elements = class_path.split(':').filter(|element| !element.is_empty());
    elements.take(MAX_ELEMENTS)
}

/// The name of a file without its folder and its ending.
fn stem(file: &str) -> Option<&str> {
    Path::new(file).file_stem()?.to_str()
}

/// `spring-boot-3.5.0.jar`, and no other of its jars (`spring-boot-autoconfigure-…`).
fn is_spring_boot_jar(element: &str) -> bool {
    let rest = stem(element).and_then(|stem| stem.strip_prefix("spring-boot"));
    rest.is_some_and(|rest| is_archive(element) && without_version(&format!("x{rest}")) == "x")
}

/// The value of a header of a jar's manifest, without its continuation lines.
fn header(manifest: &str, name: &str) -> Option<String> {
    let mut lines = manifest.lines();
    let first = lines.find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })?;
    // A line has at most 72 bytes; the next one goes on after a space.
    let more = lines.map_while(|line| line.strip_prefix(' '));
    let value: String = std::iter::once(first.trim_start()).chain(more).collect();
    Some(value.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
