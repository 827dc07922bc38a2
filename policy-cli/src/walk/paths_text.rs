//! Chains as text.

use std::io::{self, Write};

use policy_report::{Chain, ChainStep, Paths};

use crate::printable;
use crate::table::amount;

/// Most chains that are printed, and most steps of one.
const MAX_CHAINS: usize = 64;
const MAX_STEPS: usize = 60;
/// Widest name, in columns.
const MAX_COLUMNS: usize = 110;

/// Writes the chains, shortest first.
pub(super) fn write(paths: &Paths<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} of {} objects that were looked for are kept alive; {} references, walked {}; the JVM stood still for {} (predicted: {})",
        amount::count(paths.looked_for.saturating_sub(paths.unreached)),
        amount::count(paths.looked_for),
        amount::count(paths.walk.references),
        how(&paths.walk.how),
        pause(paths.walk.pause_ms),
        pause(paths.walk.predicted_pause_ms),
    )?;
    for chain in paths.paths.iter().take(MAX_CHAINS) {
        write_chain(chain, out)?;
    }
    if let more @ 1.. = paths.paths.len().saturating_sub(MAX_CHAINS) {
        writeln!(out, "\nand {more} more chains (see --json)")?;
    }
    Ok(())
}

/// How the heap was walked.
pub(super) fn how(word: &str) -> String {
    match word {
        "forked" => "in a forked child".to_owned(),
        "in-place" => "in place".to_owned(),
        other => printable::fitted(other, MAX_COLUMNS).into_owned(),
    }
}

/// A pause in milliseconds, or in seconds.
pub(super) fn pause(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

fn write_chain(chain: &Chain<'_>, out: &mut dyn Write) -> io::Result<()> {
    let name = |text: &str| printable::fitted_name(text, MAX_COLUMNS).into_owned();
    let stands_for = match chain.bytes {
        0 => String::new(),
        bytes => format!(", {}", amount::bytes(bytes)),
    };
    writeln!(
        out,
        "\n{} × {} of {}{stands_for}, kept by",
        amount::count(chain.objects),
        name(&chain.class),
        name(&chain.account),
    )?;
    writeln!(out, "  {}", printable::fitted(&chain.root, MAX_COLUMNS))?;
    if chain.is_cut {
        writeln!(out, "  …")?;
    }
    for step in chain.steps.iter().take(MAX_STEPS) {
        writeln!(out, "    {}", shown(step))?;
    }
    if let more @ 1.. = chain.steps.len().saturating_sub(MAX_STEPS) {
        writeln!(out, "    and {more} more steps (see --json)")?;
    }
    writeln!(out, "      {}", name(&chain.class))
}

/// `java.util.HashMap.table`, `java.util.HashMap$Node[] [17]`, `com.acme.Node.next ×400`.
fn shown(step: &ChainStep<'_>) -> String {
    let class = printable::fitted_name(&step.class, MAX_COLUMNS);
    let via = printable::fitted(&step.via, MAX_COLUMNS);
    let times = match step.repeats {
        0 | 1 => String::new(),
        times => format!(" ×{times}"),
    };
    let is_field = via
        .starts_with(|first: char| first.is_alphabetic() || first == '_' || first == '$')
        && !via.starts_with("static ");
    let between = if is_field { "." } else { " " };
    format!("{class}{between}{via}{times}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy_report::WalkMade;

    #[test]
    fn a_chain_is_read_from_its_root_and_nothing_in_it_reaches_the_terminal_raw() {
        let step = |class: &'static str, via: &'static str, repeats| ChainStep {
            class: class.into(),
            via: via.into(),
            repeats,
        };
        let paths = Paths {
            walk: WalkMade {
                how: "forked".into(),
                pause_ms: 26.4,
                predicted_pause_ms: 1300.0,
                ..WalkMade::default()
            },
            looked_for: 64,
            unreached: 4,
            paths: vec![Chain {
                account: "shop".into(),
                class: "com.acme.Entry".into(),
                objects: 60,
                bytes: 5 << 20,
                root: "static com.acme.Cache.map\u{1b}".into(),
                steps: vec![
                    step("java.util.HashMap", "table", 1),
                    step("java.util.HashMap$Node[]", "[*]", 1),
                    step("java.util.HashMap$Node", "next", 400),
                ],
                is_cut: false,
            }],
        };
        let mut out = Vec::new();
        write(&paths, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("60 of 64 objects") && text.contains("26 ms"),
            "{text}"
        );
        assert!(text.contains("predicted: 1.3 s"), "{text}");
        assert!(
            text.contains("60 × com.acme.Entry of shop, 5.0MiB")
                || text.contains("5 MiB")
                || text.contains("5.0 MiB"),
            "{text}"
        );
        assert!(text.contains("java.util.HashMap.table\n"), "{text}");
        assert!(text.contains("java.util.HashMap$Node[] [*]\n"), "{text}");
        assert!(
            text.contains("java.util.HashMap$Node.next ×400\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
