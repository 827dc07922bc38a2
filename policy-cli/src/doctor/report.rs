//! The output of `doctor`: the findings as text for people and as JSON for scripts.

use std::io::{self, Write};

use serde::Serialize;

use super::finding::{Finding, Severity};
use super::inputs::Inputs;
use crate::process::printable;

/// Most findings that are listed; a policy with thousands of accounts may give thousands.
const MAX_LISTED: usize = 100;

#[derive(Serialize)]
struct Document<'a> {
    /// The process, if it was named by its id.
    pid: Option<u32>,
    /// Where the agent was read.
    address: Option<&'a str>,
    findings: &'a [Finding],
    findings_omitted: usize,
}

/// One JSON document on one line.
pub(super) fn json(inputs: &Inputs, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let listed = &findings[..findings.len().min(MAX_LISTED)];
    let document = Document {
        pid: inputs.info.as_ref().map(|info| info.pid),
        address: inputs.address.as_deref(),
        findings: listed,
        findings_omitted: findings.len() - listed.len(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

/// A paragraph for each finding, the worst first.
pub(super) fn text(inputs: &Inputs, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    if let Some(info) = &inputs.info {
        writeln!(out, "{}: {}", info.title(), info.summary())?;
        writeln!(out, "  {}", info.command_line())?;
    }
    if let Some(address) = &inputs.address {
        writeln!(out, "agent on {}", printable(address))?;
    }
    writeln!(out)?;
    for finding in findings.iter().take(MAX_LISTED) {
        let severity = finding.severity.as_str().to_uppercase();
        writeln!(
            out,
            "{severity:7}  {}  [{}]",
            printable(&finding.sentence),
            finding.name
        )?;
        writeln!(out, "         seen: {}", printable(&finding.evidence))?;
        writeln!(out, "         do:   {}\n", printable(&finding.remedy))?;
    }
    if let more @ 1.. = findings.len().saturating_sub(MAX_LISTED) {
        writeln!(out, "and {more} more\n")?;
    }
    let count = |severity| {
        findings
            .iter()
            .filter(|found| found.severity == severity)
            .count()
    };
    match (
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note),
    ) {
        (0, 0, 0) => writeln!(out, "Nothing is wrong."),
        (0, 0, notes) => writeln!(out, "Nothing is wrong. Notes: {notes}."),
        (errors, warnings, notes) => {
            writeln!(
                out,
                "Errors: {errors}. Warnings: {warnings}. Notes: {notes}."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::findings;
    use super::*;

    fn finding(sentence: &str) -> Finding {
        Finding::new(&findings::OVER_LIMIT, sentence, "1 of 2", "fix it")
    }

    #[test]
    fn names_of_tenants_do_not_drive_the_terminal() {
        let mut out = Vec::new();
        text(
            &Inputs::default(),
            &[finding("account \u{1b}[2J")],
            &mut out,
        )
        .unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.contains("account \\u{1b}[2J"), "{shown}");
        assert!(
            shown.ends_with("Errors: 0. Warnings: 1. Notes: 0.\n"),
            "{shown}"
        );
    }

    #[test]
    fn the_json_is_bounded_and_says_so() {
        let many = vec![finding("x"); MAX_LISTED + 5];
        let mut out = Vec::new();
        json(&Inputs::default(), &many, &mut out).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["findings"].as_array().unwrap().len(), MAX_LISTED);
        assert_eq!(document["findings_omitted"], 5);
        assert_eq!(document["findings"][0]["severity"], "warning");
    }
}
