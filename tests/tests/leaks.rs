//! Leaks: services with known truth in one JVM. What leaks is suspected in time, class first; what does not leak
//! is not suspected.

use heapwarden_tests::application::subject;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;
use heapwarden_tests::server::Installation;
use policy_report::Leaks;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Services that keep what they should. None keeps anything for longer than about 40 s.
const HEALTHY: [&str; 9] = [
    "lru",
    "random",
    "ttl",
    "sessions",
    "ramp",
    "day",
    "batch",
    "startup",
    "refreshed",
];
/// What leaks, the class that names it, and how many seconds after the start it must be found at the latest.
/// The class is a thirtieth of the bytes. Where that is too little to be proved in the time, its arrays are
/// named.
const LEAKS: [(&str, &str, u64); 5] = [
    ("fastleak", "Entry", 180),
    ("leak", "byte[]", 300),
    ("keys", "Key", 300),
    ("mixed", "byte[]", 600),
    ("slowleak", "byte[]", 600),
];
/// Twice the longest lifetime of what is healthy. A shorter window cannot tell.
const HONEST_FROM_SECONDS: u64 = 80;
/// What the times are promised for, on a busy machine too.
const SAMPLING: &str = "[sampling]\ninterval = \"64KiB\"\ncpu-budget = \"none\"\n";
/// How much later than promised a verdict may come on a busy machine.
const SLACK: Duration = Duration::from_secs(60);

fn account(service: &str) -> String {
    format!("[[account]]\nname = \"{service}\"\npackages = [\"com.acme.services.{service}\"]\n")
}

fn start(vm: &Vm, leaks: &[(&str, &str, u64)]) -> Jvm {
    let services = HEALTHY.into_iter().chain(leaks.iter().map(|leak| leak.0));
    let accounts: String = services.clone().map(account).collect();
    let policy = format!("{SAMPLING}{accounts}");
    let mut builder = victim(vm, "victim.leaks.Services")
        .heap("1g")
        .flag("-Xms1g")
        .policy(&policy);
    if vm.collector != Collector::Z {
        builder = builder.flag("-Xmn64m");
    }
    services
        .fold(builder, |builder, service| builder.argument(service))
        .start()
}

fn document(jvm: &Jvm) -> String {
    let answer = scrape::get(jvm.address(), "/api/v1/leaks");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Waits until all of these are found, and checks at every look that nothing healthy is.
fn assert_found(jvm: &Jvm, leaks: &[(&str, &str, u64)]) {
    let begun = Instant::now();
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut judged = 0;
    while found.len() < leaks.len() {
        let text = document(jvm);
        let now = begun.elapsed();
        let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
        judged += u32::from(document.undecided.is_none());
        for suspect in &document.suspects {
            let leak = leaks.iter().find(|leak| leak.0 == suspect.account);
            match leak {
                Some((service, class, _)) => {
                    let own = format!("com.acme.services.{service}.Store${class}");
                    let is_array = *class == "byte[]" && suspect.class.ends_with("[]");
                    let is_own = *class == "byte[]" && suspect.class.contains(".Store$");
                    if suspect.class == own || is_array || is_own {
                        found.entry(service).or_insert(now.as_secs());
                    }
                }
                // Whatever the JVM itself keeps is no service's.
                None if suspect.account == "_unaccounted" => {}
                None => assert!(
                    document.horizon_seconds < HONEST_FROM_SECONDS,
                    "{} of {} does not leak: {text}\n{}",
                    suspect.class,
                    suspect.account,
                    jvm.log()
                ),
            }
        }
        for (service, _, within) in leaks {
            assert!(
                found.contains_key(service) || now < Duration::from_secs(*within) + SLACK,
                "{service} was not found in {now:?}; found {found:?} in {judged} looks: {text}\n{}",
                jvm.log()
            );
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    println!(
        "found after seconds: {found:?}, the last document: {}",
        document(jvm)
    );
}

/// The first two leaks by default, all of them with `--long`.
fn known() -> &'static [(&'static str, &'static str, u64)] {
    match is_long() {
        true => &LEAKS,
        false => &LEAKS[..2],
    }
}

#[test]
fn leaks_are_found_in_time_and_nothing_healthy_is_suspected() {
    let vms: Vec<Vm> = if is_long() {
        every_jdk_with(Collector::G1)
    } else {
        one_jdk_with(Collector::G1, 0)
    };
    on_each(&vms, |vm| {
        let jvm = start(vm, known());
        assert_found(&jvm, known());
        assert_published(&jvm);
    });
}

/// The metrics name the suspects, and the log has a line for each.
fn assert_published(jvm: &Jvm) {
    let metrics = jvm.metrics();
    let suspects = |account| metrics.of_account("heapwarden_leak_suspects", account);
    assert!(
        suspects("fastleak") >= Some(1.0),
        "{:?}",
        suspects("fastleak")
    );
    let class = "com.acme.services.fastleak.Store$Entry";
    let labels = [("account", "fastleak"), ("class", class)];
    let growth = metrics.value("heapwarden_leak_growth_bytes_per_second", &labels);
    let growth = growth.expect("the growth of a suspect");
    // The payload is a class of its own.
    assert!(growth > 5e3 && growth < 2e6, "{growth}");
    jvm.until_logged("leak suspected: com.acme.services.fastleak.Store$Entry");
}

/// ZGC takes at most three collections more than it would.
#[test]
fn on_zgc_a_few_collections_are_enough() {
    if !is_long() {
        println!("left out: ZGC (it is in --long)");
        return;
    }
    // Marks of the clock are as far apart as its collections: it takes longer.
    let leaks = [LEAKS[0], LEAKS[1]].map(|(service, class, _)| (service, class, 600));
    on_each(&every_jdk_with(Collector::Z), |vm| {
        let jvm = start(vm, &leaks);
        assert_found(&jvm, &leaks);
        let labels = [("kind", "concurrent")];
        let asked = jvm
            .metrics()
            .value("heapwarden_evidence_collections_total", &labels);
        assert!(asked <= Some(3.0), "{asked:?} collections were asked for");
    });
}

/// A page that registers listeners and never removes them, planted into an application of others. Around each
/// it allocates twenty times as many arrays of bytes, which it drops.
const PLANTED: &str = r#"<%@ page import="java.util.*" %><%!
  static final class Subscriber implements EventListener { final byte[] state = new byte[500]; }
  static final List<Subscriber> SUBSCRIBERS = new ArrayList<>();
  static volatile byte[] sink;
%><%
  for (int k = 0; k < 100; k++) {
    for (int garbage = 0; garbage < 20; garbage++) sink = new byte[500];
    synchronized (SUBSCRIBERS) { SUBSCRIBERS.add(new Subscriber()); }
  }
%>ok"#;

#[test]
fn a_listener_never_removed_in_an_application_of_others_is_named_with_its_line() {
    let subject = subject("rdf4j").expect("it is one of the applications");
    let mut vms = every_jdk_with(Collector::G1);
    vms.truncate(1);
    for vm in &vms {
        let data = tempfile::tempdir().expect("a temporary folder can be made");
        let site = Installation::with_heap("768m").as_in_production();
        let server = subject.application.start(site, vm, data.path(), SAMPLING);
        subject.application.prepare(&server);
        let folder = server.policy().parent().expect("a folder").to_owned();
        let webapp = find(&folder, "rdf4j-server").expect("Tomcat has unpacked it");
        std::fs::write(webapp.join("planted.jsp"), PLANTED).expect("writable");
        let begun = Instant::now();
        let mut number = 0;
        let found = loop {
            // Some real work, of a bounded size, and about a megabyte a second that stays.
            if number % 20 == 0 && number < 400 {
                let answer = subject.application.load(&server, number / 20);
                assert!(answer.is_ok_and(|answer| answer.status < 300));
            }
            let _ = subject.application.read(&server, 0);
            server.ask("/rdf4j-server/planted.jsp");
            number += 1;
            if number % 20 == 0 {
                let text = scrape::get(server.agent(), "/api/v1/leaks").body;
                let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
                let first = document.suspects.first();
                if first.is_some_and(|first| !first.sites.is_empty()) {
                    break text;
                }
                let waited = begun.elapsed();
                assert!(
                    waited < Duration::from_secs(420),
                    "{text}\n{}",
                    server.log()
                );
            }
            std::thread::sleep(Duration::from_millis(60));
        };
        println!("after {:?}, {number} requests: {found}", begun.elapsed());
        let document: Leaks<'_> = serde_json::from_str(&found).expect("the document");
        let first = &document.suspects[0];
        assert_eq!(first.account, "/rdf4j-server", "{found}");
        assert_eq!(
            first.class, "org.apache.jsp.planted_jsp$Subscriber",
            "{found}"
        );
        let frame = &first.sites[0].frames[0];
        assert!(frame.contains("planted_jsp"), "{found}");
        server.finish();
    }
}

/// The first folder of this name in a folder `webapps`.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let folders: Vec<PathBuf> = (entries.flatten())
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    let is_it = |path: &&PathBuf| path.ends_with(Path::new("webapps").join(name));
    if let Some(found) = folders.iter().find(is_it) {
        return Some(found.clone());
    }
    folders.iter().find_map(|folder| find(folder, name))
}
