//! The answers as JSON: a list with one object for each address.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::{Asked, Document};
use heapwarden_terminal::json_line;

/// One address.
#[derive(Serialize)]
struct Entry {
    /// As given, a bare port completed. Null: a JVM of this machine whose agent cannot be reached.
    address: Option<String>,
    /// The process id, as this machine sees it or else the agent.
    pid: Option<u64>,
    reachable: bool,
    /// Why it is not.
    error: Option<String>,
    /// Why a JVM that answers keeps no accounts.
    not_ready: Option<String>,
    /// The agent's answer with every field it has, or null.
    answer: Option<Value>,
}

/// Writes the list in one line.
///
/// # Errors
/// Output that cannot be written.
pub(crate) fn write_json<D: Document>(found: &[Asked<D>], out: &mut dyn Write) -> io::Result<()> {
    let entries: Vec<Entry> = found.iter().map(Entry::of).collect();
    json_line::write(&entries, out)
}

impl Entry {
    fn of<D: Document>(one: &Asked<D>) -> Entry {
        let (answer, error) = match &one.answer {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(error.clone())),
        };
        Entry {
            address: one.target.address.as_ref().map(ToString::to_string),
            pid: one.pid(),
            reachable: answer.is_some(),
            error,
            not_ready: answer.and_then(|answer| answer.not_ready.clone()),
            // It was valid JSON before; this fails only if it nests too deep.
            answer: answer.and_then(|answer| serde_json::from_slice(&answer.json).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Answer;
    use super::*;
    use heapwarden_client::live::Accounts;

    #[test]
    fn every_field_of_the_agent_passes_and_nothing_drives_the_terminal() {
        let document = "{\"jvm\":{\"pid\":7},\"accounts\":[{\"name\":\"a\u{202e}\u{9b}\u{e0001}ä\",\"newer\":1.5}]}";
        let found: [Asked<Accounts>; 2] = [
            Asked::at("9464", Ok(Answer::of(document, Some("why")))),
            Asked::at("a:1", Err("a:1 is no Heapwarden agent".into())),
        ];
        let mut out = Vec::new();
        write_json(&found, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r"a\u202e\u009b\udb40\udc01ä"), "{text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json[0]["address"], "127.0.0.1:9464");
        assert_eq!(
            (&json[0]["pid"], &json[1]["pid"]),
            (&Value::from(7), &Value::Null)
        );
        assert_eq!(json[0]["reachable"], true);
        assert_eq!(json[0]["error"], Value::Null);
        assert_eq!(json[0]["not_ready"], "why");
        let account = &json[0]["answer"]["accounts"][0];
        assert_eq!(account["name"], "a\u{202e}\u{9b}\u{e0001}ä");
        assert_eq!(account["newer"], 1.5);
        assert_eq!(json[1]["reachable"], false);
        assert!(
            json[1]["error"]
                .as_str()
                .unwrap()
                .contains("no Heapwarden agent")
        );
        assert_eq!(json[1]["answer"], Value::Null);
    }
}
