//! Spring Boot: the name of the one application in the JVM.
//!
//! In this order: the system property or environment variable `spring.application.name`;
//! `spring.application.name` in the `application.properties` or `application.yml` of the
//! executable jar; the jar's own name; the main class.

use policy_jvm::{Jni, JvmTi};

use crate::identity::names::{Server, ServiceName, service};

/// The name of the program.
pub(crate) fn application(jni: &Jni, jvmti: &JvmTi) -> ServiceName {
    let command = jvmti
        .system_property("sun.java.command")
        .unwrap_or_default();
    let program = command.split(' ').next().unwrap_or_default().to_owned();
    let file = program.rsplit('/').next().unwrap_or_default();
    let fallback = match file.strip_suffix(".jar").or(file.strip_suffix(".war")) {
        Some(stem) => stem.to_owned(),
        None => program.rsplit('.').next().unwrap_or_default().to_owned(),
    };
    let configured = jvmti
        .system_property("spring.application.name")
        .or_else(|| std::env::var("SPRING_APPLICATION_NAME").ok())
        .or_else(|| {
            let jar = program.ends_with(".jar") || program.ends_with(".war");
            jar.then(|| configured_in(jni, &program)).flatten()
        })
        .filter(|name| !name.trim().is_empty());
    let mut names: Vec<String> = configured.into_iter().collect();
    if !fallback.is_empty() {
        names.push(fallback);
    }
    if names.is_empty() {
        names.push("application".to_owned());
    }
    ServiceName {
        server: Server::SpringBoot,
        ..service(names, false)
    }
}

/// Reads the application's name out of its executable jar, with the JDK's own zip reader.
fn configured_in(jni: &Jni, jar: &str) -> Option<String> {
    for (entry, read) in [
        (
            "BOOT-INF/classes/application.properties",
            from_properties as fn(&str) -> Option<String>,
        ),
        ("BOOT-INF/classes/application.yml", from_yaml),
        ("BOOT-INF/classes/application.yaml", from_yaml),
        ("WEB-INF/classes/application.properties", from_properties),
        ("WEB-INF/classes/application.yml", from_yaml),
    ] {
        if let Some(text) = jni.zip_entry(jar, entry)
            && let Some(name) = read(&text)
        {
            return Some(name);
        }
    }
    None
}

/// `spring.application.name` of a properties file. A placeholder is not resolved.
fn from_properties(text: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', '!']))
        .find_map(|line| {
            let (key, value) = line.split_once(['=', ':'])?;
            (key.trim() == "spring.application.name").then(|| value.trim().to_owned())
        })
        .filter(|name| !name.is_empty() && !name.contains("${"))
}

/// `spring.application.name` of the first YAML document, in block or dotted form.
fn from_yaml(text: &str) -> Option<String> {
    let mut path: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed == "---" && !path.is_empty() {
            break;
        }
        if trimmed.is_empty() || trimmed.starts_with(['#', '-']) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        path.retain(|(i, _)| *i < indent);
        let Some((key, value)) = trimmed.split_once(':') else {
            continue;
        };
        path.push((indent, key.trim().to_owned()));
        let dotted = path
            .iter()
            .map(|(_, k)| k.as_str())
            .collect::<Vec<_>>()
            .join(".");
        let value = value.split(" #").next().unwrap_or_default().trim();
        let value = value.trim_matches(['"', '\'']);
        if dotted == "spring.application.name" && !value.is_empty() && !value.contains("${") {
            return Some(value.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_properties() {
        let text = "# spring.application.name=no\nserver.port=0\nspring.application.name = shop \n";
        assert_eq!(from_properties(text).as_deref(), Some("shop"));
        assert_eq!(from_properties("spring.application.name=${X:shop}"), None);
        assert_eq!(from_properties("other=1"), None);
    }

    #[test]
    fn names_from_yaml() {
        let block = "server:\n  port: 0\nspring:\n  main:\n    banner-mode: off\n  application:\n    name: \"shop\" # ours\n";
        assert_eq!(from_yaml(block).as_deref(), Some("shop"));
        assert_eq!(
            from_yaml("spring.application.name: shop\n").as_deref(),
            Some("shop")
        );
        assert_eq!(
            from_yaml("name: shop\nspring:\n  other:\n    name: x\n"),
            None
        );
    }
}
