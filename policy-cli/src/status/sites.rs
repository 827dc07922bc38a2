//! `heapwarden status --sites ACCOUNT`: where the survivors of an account were allocated.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::targets::{self, Targets};
use heapwarden_client::live::{AccountSites, ClassSites, Client, Sites};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// Widest name of an account, a class and a frame, in columns.
const MAX_NAME_COLUMNS: usize = 60;
const MAX_FRAME_COLUMNS: usize = 110;
/// Most classes, most places of each, and most frames of each that are listed.
const MAX_CLASSES: usize = 10;
const MAX_SITES: usize = 5;
const MAX_FRAMES: usize = 32;

type Asked = targets::Asked<Sites>;

/// Reads every JVM, even if some cannot be read. Exit code 0 if all could be read and stacks are taken of the
/// account in one; else 1.
pub(super) fn run(
    client: &Client,
    targets: &Targets,
    account: &str,
    is_json: bool,
) -> io::Result<ExitCode> {
    let found = targets.ask(client, |address| client.sites(address));
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    if is_json {
        targets::write_json(&found, &mut out)?;
    } else {
        write(&found, account, &mut out, &mut err)?;
    }
    out.flush()?;
    if let Some(remark) = targets.remark() {
        writeln!(err, "heapwarden: {remark}")?;
    }
    let is_read = found.iter().all(|one| one.answer.is_ok());
    let is_known = (found.iter()).any(|one| {
        let answer = one.answer.as_ref();
        answer.is_ok_and(|answer| of_account(&answer.document, account).is_some())
    });
    Ok(if is_read && is_known {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn of_account<'a>(sites: &'a Sites, account: &str) -> Option<&'a AccountSites> {
    sites.accounts.iter().find(|one| one.account == account)
}

fn write(
    found: &[Asked],
    account: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let shown = printable::fitted_name(account, MAX_NAME_COLUMNS);
    targets::write_each(found, out, err, |_, address, answer, out| {
        let sites = &answer.document;
        let Some(of) = of_account(sites, account) else {
            writeln!(out, "{address}: no stacks are taken of {shown}")?;
            return writeln!(
                out,
                "  They are taken of leak suspects, and of accounts that the policy names:\n  \
                 [leaks]\n  sites = [\"{shown}\"]"
            );
        };
        writeln!(out, "{address}: {shown}, {}", taken(of))?;
        write_account(of, out)?;
        write_skipped(sites, out)
    })
}

fn taken(of: &AccountSites) -> String {
    let classes = of.classes.iter();
    let stacks = classes.fold(0u64, |sum, class| sum.saturating_add(class.stacks));
    match stacks {
        0 => "nothing that has survived a collection has a stack yet".to_owned(),
        1 => "survivors with a stack: 1".to_owned(),
        stacks => format!("survivors with a stack: {}", amount::count(stacks)),
    }
}

fn write_account(of: &AccountSites, out: &mut dyn Write) -> io::Result<()> {
    let with_stacks: Vec<&ClassSites> = of.classes.iter().filter(|one| one.stacks > 0).collect();
    for class in with_stacks.iter().take(MAX_CLASSES) {
        writeln!(
            out,
            "\n  {}: {} live, of it {} with a stack",
            printable::fitted_name(&class.class, MAX_NAME_COLUMNS),
            amount::bytes(class.live_bytes),
            amount::bytes(class.with_stack_bytes),
        )?;
        write_places(class, out)?;
    }
    let listed = with_stacks.len().min(MAX_CLASSES);
    let omitted = of.classes_omitted + (with_stacks.len() - listed) as u64;
    if omitted > 0 {
        writeln!(out, "\n  and {} more classes", amount::count(omitted))?;
    }
    Ok(())
}

fn write_places(class: &ClassSites, out: &mut dyn Write) -> io::Result<()> {
    // Others are listed for what was allocated there and died.
    let survived: Vec<_> = (class.sites.iter())
        .filter(|site| site.stacks > 0)
        .collect();
    for site in survived.iter().take(MAX_SITES) {
        let mut share = format!(
            "{:>4} ± {:<3}",
            amount::percent(site.share * 100.0),
            amount::percent(site.share_standard_error * 100.0)
        );
        // The place first, then its callers. What lies above it in the JDK is one line.
        for frame in site.frames.iter().take(MAX_FRAMES) {
            let frame = printable::fitted(frame, MAX_FRAME_COLUMNS);
            writeln!(out, "    {share}  {frame}")?;
            share = " ".repeat(printable::columns(&share));
        }
        if let Some(nearest) = site.through.first() {
            let nearest = printable::fitted(nearest, MAX_FRAME_COLUMNS);
            writeln!(out, "    {share}  allocated in {nearest}")?;
        }
    }
    let listed = survived.len().min(MAX_SITES);
    let omitted = class.sites_omitted + (survived.len() - listed) as u64;
    if omitted > 0 {
        writeln!(out, "    and {} more places", amount::count(omitted))?;
    }
    Ok(())
}

/// Writes how many samples have no stack or a shorter one, by reason: the shares do not cover them.
fn write_skipped(sites: &Sites, out: &mut dyn Write) -> io::Result<()> {
    let counts = sites.skipped.0.iter();
    let lost = counts.filter(|(reason, count)| reason != "budget" && *count > 0);
    let lost: Vec<String> = lost
        .map(|(reason, count)| {
            let reason = printable::fitted(reason, MAX_NAME_COLUMNS);
            format!("{reason} {}", amount::count(*count))
        })
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  Samples without a stack, or with a shorter one, since the agent was loaded: {}",
        lost.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Answer;

    fn written(text: &str, account: &str) -> String {
        let answer = Answer {
            document: serde_json::from_str(text).unwrap(),
            json: text.into(),
            not_ready: None,
        };
        let found = [Asked::at("9464", Ok(answer))];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        write(&found, account, &mut out, &mut err).unwrap();
        assert!(err.is_empty());
        String::from_utf8(out).unwrap()
    }

    const TEXT: &str = r#"{"stacks":900,"skipped":{"budget":70,"exhausted":0,"clearing":3,"full":0},"accounts":[
        {"account":"shop","classes":[{"class":"com.acme.Item","live_bytes":21600000,"with_stack_bytes":20000000,
        "stacks":812,"sites":[
        {"frames":["com.acme.Cart.add(Cart.java:41)","com.acme.Web.get(Web.java:9)"],"through":[],"share":0.7,
        "share_standard_error":0.016,"live_bytes":1,"objects":1,"stacks":600},
        {"frames":["com.acme.\u001bX.y(X.java:1)"],"through":["java.util.HashMap.newNode(HashMap.java:1901)"],
        "share":0.3,"share_standard_error":0.016,"live_bytes":1,"objects":1,"stacks":212}],"sites_omitted":4},
        {"class":"byte[]","live_bytes":5,"with_stack_bytes":0,"stacks":0,"sites":[]}]},
        {"account":"quiet","classes":[]}]}"#;

    #[test]
    fn each_class_has_its_places_with_shares_and_errors() {
        let expected = "\
127.0.0.1:9464: shop, survivors with a stack: 812

  com.acme.Item: 20.6 MiB live, of it 19.1 MiB with a stack
     70% ± 1.6%  com.acme.Cart.add(Cart.java:41)
                 com.acme.Web.get(Web.java:9)
     30% ± 1.6%  com.acme.\\u{1b}X.y(X.java:1)
                 allocated in java.util.HashMap.newNode(HashMap.java:1901)
    and 4 more places

  Samples without a stack, or with a shorter one, since the agent was loaded: clearing 3
";
        assert_eq!(written(TEXT, "shop"), expected);
    }

    #[test]
    fn what_there_is_none_of_is_said() {
        assert!(
            written(TEXT, "quiet")
                .contains("nothing that has survived a collection has a stack yet")
        );
        let none = written(TEXT, "other");
        assert!(
            none.contains("no stacks are taken of other") && none.contains("sites = [\"other\"]")
        );
    }
}
