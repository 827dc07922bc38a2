//! The page: the files that a browser gets, from inside the library or the command.
//!
//! They are plain HTML, CSS and ES modules, used as they lie in the folder `page`. The agent and `heapwarden
//! ui` serve them one by one ([`file()`]); `heapwarden report` puts them into one file ([`report`]).
//!
//! The index names the others below a folder that is the [`version`] of them all. So a browser may keep them
//! for ever, and a page never runs with modules of another version. This crate knows neither HTTP nor the JVM.

#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: &'static str,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The file's content.
    pub bytes: &'static [u8],
}

/// The rights of the page in a browser: to run these scripts, use these styles and ask this server. Nothing else, and
/// no script can make markup of a string.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Who shows the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// The agent, of its own JVM.
    Agent,
    /// `heapwarden ui`, of several JVMs and files.
    Command,
}

const INDEX: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/style.css");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../page/", $name)))),*]
    };
}

/// The modules, each after those that it imports.
const MODULES: &[(&str, &str)] = modules![
    "format.js",
    "dom.js",
    "source.js",
    "record.js",
    "declared.js",
    "findings.js",
    "chart.js",
    "table.js",
    "difference.js",
    "icicle.js",
    "instances.js",
    "overview.js",
    "account.js",
    "class.js",
    "history.js",
    "flames.js",
    "fleet.js",
    "main.js",
];

/// The file of this name, but for the index.
pub fn file(name: &str) -> Option<File> {
    let file = |name, content_type, text: &'static str| File {
        name,
        content_type,
        bytes: text.as_bytes(),
    };
    if name == "style.css" {
        return Some(file("style.css", "text/css; charset=utf-8", STYLE));
    }
    let (name, text) = MODULES.iter().find(|(known, _)| *known == name)?;
    Some(file(name, "text/javascript; charset=utf-8", text))
}

/// Returns the hash that tells these files from those of another build: 16 hexadecimal digits.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let all = MODULES.iter().flat_map(|(name, text)| [*name, *text]);
        let bytes = all.chain([INDEX, STYLE]).flat_map(str::bytes);
        // FNV-1a. Nobody gains by a collision: the files come from one build.
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("{hash:016x}")
    })
}

/// The index.
pub fn index(host: Host) -> String {
    let mode = match host {
        Host::Agent => "agent",
        Host::Command => "command",
    };
    let folder = format!("page/{}", version());
    let head = format!(
        "<link rel=\"stylesheet\" href=\"{folder}/style.css\">\n\
         <script type=\"module\" src=\"{folder}/main.js\"></script>"
    );
    filled(mode, &head, "")
}

fn filled(mode: &str, head: &str, data: &str) -> String {
    INDEX
        .replace("<!-- mode -->", mode)
        .replace("<!-- head -->", head)
        .replace("<!-- data -->", data)
}

/// The whole page in one file that needs no server, with `documents` in it: a JSON object, the agent's answers
/// by their paths. `nonce` is random, of letters and digits; scripts without it do not run.
pub fn report(documents: &str, nonce: &str) -> String {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <style nonce=\"{nonce}\">\n{STYLE}</style>\n\
         <script type=\"module\" nonce=\"{nonce}\">\n{}</script>",
        bundle()
    );
    let data = format!(
        "<script type=\"application/json\" id=\"documents\">{}</script>",
        without_markup(documents)
    );
    filled("report", &head, &data)
}

/// JSON in which nothing can end an element: `<`, `>` and `&` occur in strings alone, and are escaped there.
fn without_markup(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            other => out.push(other),
        }
    }
    out
}

/// All modules as one: their imports are left out, and what they export has the same name in all of them.
fn bundle() -> String {
    let mut out = String::new();
    for (_, text) in MODULES {
        let mut is_import = false;
        for line in text.lines() {
            is_import |= line.starts_with("import ");
            if is_import {
                is_import = !line.ends_with(';');
                continue;
            }
            out.push_str(line.strip_prefix("export ").unwrap_or(line));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_index_names_files_that_are_there() {
        let index = index(Host::Agent);
        assert!(!index.contains("<!--"), "{index}");
        for name in ["style.css", "main.js"] {
            assert!(index.contains(&format!("\"page/{}/{name}\"", version())));
            assert!(file(name).is_some());
        }
        assert_eq!(file("index.html"), None);
        assert_eq!(file("../src/lib.rs"), None);
    }

    #[test]
    fn modules_import_only_those_before_them() {
        let mut before = BTreeSet::new();
        for (name, text) in MODULES {
            for line in text.lines() {
                if let Some((_, from)) = line.split_once(" from \"./") {
                    let from = from.trim_end_matches("\";");
                    assert!(before.contains(&from), "{name} imports {from}");
                }
            }
            before.insert(name);
        }
    }

    /// In a report they share one scope.
    #[test]
    fn no_two_modules_define_one_name() {
        let mut names = BTreeSet::new();
        for line in bundle().lines() {
            let definition = ["const ", "let ", "function ", "class ", "async function "]
                .iter()
                .find_map(|keyword| line.strip_prefix(keyword));
            if let Some(definition) = definition {
                let end = definition.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &definition[..end.unwrap_or(definition.len())];
                assert!(names.insert(name.to_owned()), "{name} is defined twice");
            }
        }
        assert!(names.len() > 50, "{}", names.len());
    }

    #[test]
    fn no_script_makes_markup_of_a_string() {
        for (name, text) in MODULES {
            for sink in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(sink), "{name}: {sink}");
            }
        }
    }

    #[test]
    fn no_name_ends_the_data_of_a_report() {
        let report = report(
            "{\"a\":\"</script><script>alert(1)</script><!--\"}",
            "n0nce",
        );
        assert_eq!(report.matches("alert(1)").count(), 1);
        assert!(report.contains("\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"));
        let scripts = report.matches("<script").count();
        assert_eq!((scripts, report.matches("</script>").count()), (2, 2));
    }
}
