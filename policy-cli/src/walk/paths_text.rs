//! Chains as text.

use std::io::{self, Write};

use policy_report::{Chain, ChainStep, Paths, WalkMade};

use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// Most chains that are printed, and most steps of one.
const MAX_CHAINS: usize = 64;
const MAX_STEPS: usize = 60;
/// Most stops that are printed.
const MAX_STOPS: usize = 4;
/// From here on the longest prediction is worth telling.
const MUCH: f64 = 1.5;
/// Widest name, in columns.
const MAX_COLUMNS: usize = 110;

/// Writes the chains, shortest first.
pub(super) fn write(paths: &Paths<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} of {} objects that were looked for are kept alive; {} references, walked {}; the JVM stood still for {} (predicted: {})",
        amount::count(
            paths
                .looked_for
                .saturating_sub(paths.unreached + paths.undecided)
        ),
        amount::count(paths.looked_for),
        amount::count(paths.walk.references),
        how(&paths.walk),
        pause(paths.walk.pause_ms),
        predicted(&paths.walk),
    )?;
    stops(&paths.walk, out)?;
    if paths.undecided > 0 {
        writeln!(
            out,
            "{} objects were not found in the part of the heap that was walked; that nothing keeps them alive was not shown",
            amount::count(paths.undecided)
        )?;
    }
    for chain in paths.paths.iter().take(MAX_CHAINS) {
        write_chain(chain, out)?;
    }
    if let more @ 1.. = paths.paths.len().saturating_sub(MAX_CHAINS) {
        writeln!(out, "\nand {more} more chains (see --json)")?;
    }
    Ok(())
}

/// How the heap was walked.
pub(super) fn how(walk: &WalkMade<'_>) -> String {
    match (&*walk.how, walk.processor_share) {
        ("forked", Some(share)) => format!(
            "in a forked child that kept to {:.3} processors, a quarter of the cgroup's limit",
            share
        ),
        ("forked", None) => "in a forked child".to_owned(),
        ("in-place", _) => "in place".to_owned(),
        (other, _) => printable::fitted(other, MAX_COLUMNS).into_owned(),
    }
}

/// Of a walk in place, each stop of the JVM, or why there is one.
pub(super) fn stops(walk: &WalkMade<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (number, stop) in walk.stops.iter().take(MAX_STOPS).enumerate() {
        let of = match &*stop.of {
            "slice" => "what the account itself holds".to_owned(),
            "whole" => "the whole heap".to_owned(),
            other => printable::fitted(other, MAX_COLUMNS).into_owned(),
        };
        let (predicted, accepted) = (pause(stop.predicted_ms), pause(stop.accepted_ms));
        let found = amount::count(stop.found);
        write!(out, "stop {}, {of}: ", number + 1)?;
        match &*stop.ended {
            "not-made" => writeln!(
                out,
                "not made, for it would take about {predicted}, and {accepted} are accepted (--in-place)"
            )?,
            "given-up" => writeln!(
                out,
                "given up after {} of {accepted} that are accepted, {found} found",
                pause(stop.pause_ms)
            )?,
            _ => writeln!(
                out,
                "{} (predicted: {predicted}), {found} found",
                pause(stop.pause_ms)
            )?,
        }
    }
    match &walk.one_stop_because {
        Some(why) => writeln!(
            out,
            "in one stop, because {}",
            printable::fitted(why, MAX_COLUMNS)
        ),
        None => Ok(()),
    }
}

/// A pause in milliseconds, or in seconds.
pub(super) fn pause(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// Returns the predicted pause: one figure, or two where other processes may make a difference.
pub(super) fn predicted(walk: &WalkMade<'_>) -> String {
    let (least, most) = (walk.predicted_pause_ms, walk.most_predicted_pause_ms);
    if most > MUCH * least {
        format!("{} to {}", pause(least), pause(most))
    } else {
        pause(least)
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
    use policy_report::StopMade;

    use super::*;

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
                most_predicted_pause_ms: 1400.0,
                ..WalkMade::default()
            },
            looked_for: 64,
            unreached: 4,
            undecided: 0,
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
        assert!(text.contains("predicted: 1.3 s)"), "{text}");
        let busy = WalkMade {
            predicted_pause_ms: 20.0,
            most_predicted_pause_ms: 80.0,
            ..WalkMade::default()
        };
        assert_eq!(predicted(&busy), "20 ms to 80 ms");
        let limited = WalkMade {
            how: "forked".into(),
            processor_share: Some(0.125),
            ..WalkMade::default()
        };
        assert_eq!(
            how(&limited),
            "in a forked child that kept to 0.125 processors, a quarter of the cgroup's limit"
        );
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

    #[test]
    fn the_stops_of_a_walk_in_place_are_told_one_by_one() {
        let stop = |of: &'static str, ended: &'static str, pause_ms, found| StopMade {
            of: of.into(),
            ended: ended.into(),
            predicted_ms: 1500.0,
            accepted_ms: 1000.0,
            pause_ms,
            references: 5,
            found,
        };
        let mut paths = Paths {
            walk: WalkMade {
                how: "in-place".into(),
                stops: vec![
                    stop("slice", "done", 95.0, 60),
                    stop("whole", "not-made", 0.0, 0),
                ],
                ..WalkMade::default()
            },
            looked_for: 64,
            undecided: 4,
            ..Paths::default()
        };
        let text = |paths: &Paths<'_>| {
            let mut out = Vec::new();
            write(paths, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let two = text(&paths);
        for part in [
            "60 of 64 objects",
            "stop 1, what the account itself holds: 95 ms (predicted: 1.5 s), 60 found\n",
            "stop 2, the whole heap: not made, for it would take about 1.5 s, and 1.0 s are accepted (--in-place)\n",
            "4 objects were not found in the part of the heap that was walked; that nothing keeps them alive was not shown\n",
        ] {
            assert!(two.contains(part), "{part}: {two}");
        }
        paths.walk.stops = vec![stop("whole", "given-up", 1001.0, 3)];
        paths.walk.one_stop_because = Some("of\u{1b}that".into());
        let one = text(&paths);
        assert!(
            one.contains("given up after 1.0 s of 1.0 s that are accepted, 3 found"),
            "{one}"
        );
        assert!(
            one.contains("in one stop, because of") && !one.contains('\u{1b}'),
            "{one}"
        );
    }
}
