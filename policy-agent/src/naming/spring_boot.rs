//! The name that an application of Spring Boot or Quarkus has in its own configuration.

use super::class_path::Elements;

/// Where the configuration lies, in an executable jar or war and on a class path.
const FOLDERS: [&str; 4] = ["BOOT-INF/classes/", "WEB-INF/classes/", "config/", ""];

/// The value of a key of the application's configuration in an element of the class path.
pub(crate) fn configured_in(element: &str, key: &str, elements: &dyn Elements) -> Option<String> {
    let files = [
        (
            "application.properties",
            from_properties as fn(&str, &str) -> Option<String>,
        ),
        ("application.yml", from_yaml),
        ("application.yaml", from_yaml),
    ];
    FOLDERS.iter().find_map(|folder| {
        files.iter().find_map(|(file, read)| {
            let text = elements.text(element, &format!("{folder}{file}"))?;
            read(&text, key)
        })
    })
}

/// The value of a key in a properties file. A placeholder is not resolved.
fn from_properties(text: &str, wanted: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', '!']))
        .find_map(|line| {
            let (key, value) = line.split_once(['=', ':'])?;
            (key.trim() == wanted).then(|| value.trim().to_owned())
        })
        .filter(|name| !name.is_empty() && !name.contains("${"))
}

/// The value of a key in the first YAML document, in block or dotted form.
fn from_yaml(text: &str, wanted: &str) -> Option<String> {
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
        if dotted == wanted && !value.is_empty() && !value.contains("${") {
            return Some(value.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "spring.application.name";

    #[test]
    fn names_from_properties() {
        let text = "# spring.application.name=no\nserver.port=0\nspring.application.name = shop \n";
        assert_eq!(from_properties(text, NAME).as_deref(), Some("shop"));
        assert_eq!(
            from_properties("spring.application.name=${X:shop}", NAME),
            None
        );
        assert_eq!(from_properties("other=1", NAME), None);
    }

    #[test]
    fn names_from_yaml() {
        let block = "server:\n  port: 0\nspring:\n  main:\n    banner-mode: off\n  application:\n    name: \"shop\" # ours\n";
        assert_eq!(from_yaml(block, NAME).as_deref(), Some("shop"));
        assert_eq!(
            from_yaml("spring.application.name: shop\n", NAME).as_deref(),
            Some("shop")
        );
        assert_eq!(
            from_yaml("name: shop\nspring:\n  other:\n    name: x\n", NAME),
            None
        );
    }
}
