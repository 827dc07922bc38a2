//! Leaks: services with known truth in one JVM. What leaks is suspected in time, class first; what does not leak
//! is not suspected. And leaks that are planted into an application of others.
//!
//! By default the services live twice as fast, and old memory is collected every few seconds. With
//! `HEAPWARDEN_TEST_LONG` they live at their own pace, and it is the agent that asks for collections.

use heapwarden_tests::application::subject;
use heapwarden_tests::command;
use heapwarden_tests::jdk::{
    Collector, Vm, every_jdk_with, is_long, on_each, on_each_at_once, one_jdk_with,
};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;
use heapwarden_tests::server::Installation;
use policy_report::Leaks;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
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
/// Services that leak, the class that names each leak, and how many seconds after the start it must be found at the
/// latest. The class is a thirtieth of the bytes. Where that is too little to be proved in the time, its arrays are
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
/// The sampling under which the times are promised, on a busy machine too.
const SAMPLING: &str = "[sampling]\ninterval = \"64KiB\"\ncpu-budget = \"none\"\n";
/// The part of the policy by which the agent finds out what keeps a suspect alive.
const PATHS: &str = "[leaks]\npaths = \"forked\"\npaths-per-day = 50\n";
/// Longest that such a walk may take on a busy machine: its child has the lowest priority.
const WALKED_WITHIN: Duration = Duration::from_secs(240);
/// Within what time the metrics name the suspect by its own class.
const NAMED_WITHIN: Duration = Duration::from_secs(30);
/// How much later than promised a verdict may come on a busy machine.
const SLACK: Duration = Duration::from_secs(60);

/// How the services live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// At their own pace. Nobody collects old memory unless the agent asks for it.
    Own,
    /// Rates are this many times as high and lifetimes this many times as short. Old memory is collected each
    /// three seconds.
    Times(u64),
}

impl Pace {
    fn speed(self) -> u64 {
        match self {
            Pace::Own => 1,
            Pace::Times(speed) => speed,
        }
    }

    /// From what window on no healthy service may be suspected.
    fn honest_from_seconds(self) -> u64 {
        HONEST_FROM_SECONDS / self.speed()
    }

    /// By default and with `--long`.
    fn usual() -> Pace {
        match is_long() {
            true => Pace::Own,
            false => Pace::Times(2),
        }
    }
}

fn account(service: &str) -> String {
    format!("[[account]]\nname = \"{service}\"\npackages = [\"com.acme.services.{service}\"]\n")
}

fn start(vm: &Vm, leaks: &[(&str, &str, u64)], pace: Pace) -> Jvm {
    let services = HEALTHY.into_iter().chain(leaks.iter().map(|leak| leak.0));
    let accounts: String = services.clone().map(account).collect();
    let policy = format!("{SAMPLING}{PATHS}{accounts}");
    // Room for what leaks, two megabytes a second, until the last of what is waited for may come.
    let mut builder = victim(vm, "victim.leaks.Services")
        .heap("1536m")
        .flag("-Xms1g")
        .policy(&policy);
    if vm.collector != Collector::Z {
        builder = builder.flag("-Xmn64m");
    }
    if let Pace::Times(speed) = pace {
        builder = builder
            .flag("-XX:+ExplicitGCInvokesConcurrent")
            .argument(format!("speed={speed}"))
            .argument("collect=3");
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

/// Counts of looks at the healthy services.
#[derive(Debug, Default)]
struct Looks {
    /// Looks at windows that are long enough.
    honest: u32,
}

/// Waits until all of these are found and a window was long enough for the healthy ones, and checks at every look
/// that none of those is suspected.
fn assert_found(jvm: &Jvm, leaks: &[(&str, &str, u64)], pace: Pace) {
    let begun = Instant::now();
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut looks = Looks::default();
    let mut judged = 0;
    while found.len() < leaks.len() || looks.honest == 0 {
        let text = document(jvm);
        let now = begun.elapsed();
        let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
        judged += u32::from(document.undecided.is_none());
        looks.honest += u32::from(document.horizon_seconds >= pace.honest_from_seconds());
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
                    document.horizon_seconds < pace.honest_from_seconds(),
                    "{} of {} does not leak: {text}\n{}",
                    suspect.class,
                    suspect.account,
                    jvm.log()
                ),
            }
        }
        for (service, _, within) in leaks {
            let within = Duration::from_secs(within / pace.speed()) + SLACK;
            assert!(
                found.contains_key(service) || now < within,
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

#[test]
fn leaks_are_found_in_time_and_nothing_healthy_is_suspected() {
    // The first two leaks by default.
    let known = if is_long() { &LEAKS[..] } else { &LEAKS[..2] };
    let vms: Vec<Vm> = if is_long() {
        every_jdk_with(Collector::G1)
    } else {
        [
            one_jdk_with(Collector::G1, 0),
            one_jdk_with(Collector::Z, 1),
        ]
        .concat()
    };
    let pace = Pace::usual();
    on_each(&vms, |vm| {
        let jvm = start(vm, known, pace);
        assert_found(&jvm, known, pace);
        assert_published(&jvm, vm);
    });
}

/// The metrics name the suspects, and the log has a line for each.
fn assert_published(jvm: &Jvm, vm: &Vm) {
    let class = "com.acme.services.fastleak.Store$Entry";
    // Every look decides anew which of an account's classes a suspect is told by: it may be its array for a moment.
    let growth = command::poll(NAMED_WITHIN, || {
        let metrics = jvm.metrics();
        let suspects = metrics.of_account("heapwarden_leak_suspects", "fastleak");
        let labels = [("account", "fastleak"), ("class", class)];
        let growth = metrics.value("heapwarden_leak_growth_bytes_per_second", &labels)?;
        assert!(suspects >= Some(1.0), "{suspects:?}");
        Some(growth)
    });
    let growth = growth.unwrap_or_else(|| panic!("{class} has no growth: {}", document(jvm)));
    // The payload is a class of its own.
    assert!(growth > 5e3 && growth < 4e6, "{growth}");
    jvm.until_logged("leak suspected: com.acme.services.fastleak.Store$Entry");
    if matches!(vm.collector, Collector::Z | Collector::GenerationalZ) {
        // It cannot be forked there, and nobody has accepted a pause.
        jvm.until_logged("alive is not known: the heap is shared memory");
        return;
    }
    let chain = command::poll(WALKED_WITHIN, || {
        let text = document(jvm);
        let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
        let mut suspects = document.suspects.into_iter();
        let found = suspects.find(|one| one.account == "fastleak" && !one.kept_by.is_empty())?;
        Some(found.kept_by[0].to_string())
    });
    let chain = chain.unwrap_or_else(|| panic!("no chain: {}\n{}", document(jvm), jvm.log()));
    println!("kept by {chain}");
    assert!(
        chain.contains("com.acme.services.fastleak"),
        "{chain}\n{}",
        jvm.log()
    );
    let scrape = jvm.metrics();
    let told = scrape.sum("heapwarden_leak_kept_by_info");
    assert!(told >= 1.0, "{told} suspects have a chain in the metrics");
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
        let jvm = start(vm, &leaks, Pace::Own);
        assert_found(&jvm, &leaks, Pace::Own);
        let labels = [("kind", "concurrent")];
        let asked = jvm
            .metrics()
            .value("heapwarden_evidence_collections_total", &labels);
        assert!(asked <= Some(3.0), "{asked:?} collections were asked for");
    });
}

/// How often something is run with `--long`: `HEAPWARDEN_TEST_RUNS`, or this.
fn runs(long: u32) -> u32 {
    let chosen = std::env::var("HEAPWARDEN_TEST_RUNS").ok();
    let number = |text: String| text.parse().expect("HEAPWARDEN_TEST_RUNS is a number");
    chosen.map_or(long, number)
}

/// With 95 % confidence a rate is below this if it was never seen in so many trials.
fn bound(trials: u32) -> f64 {
    1.0 - 0.05f64.powf(1.0 / f64::from(trials.max(1)))
}

/// Services that do not leak, in many JVMs.
#[test]
fn in_many_runs_nothing_healthy_is_suspected() {
    if !is_long() {
        println!("left out: thirty runs (they are in --long)");
        return;
    }
    let pace = Pace::Times(2);
    let every: Vec<Vm> = [every_jdk_with(Collector::G1), every_jdk_with(Collector::Z)].concat();
    let runs = runs(30);
    let vms: Vec<Vm> = every.iter().cycle().take(runs as usize).cloned().collect();
    let looks = AtomicU32::new(0);
    // They mostly wait.
    on_each_at_once(3, &vms, |vm| {
        let jvm = start(vm, &[], pace);
        // Three windows that are long enough.
        let until = Duration::from_secs(3 * pace.honest_from_seconds() + 20);
        let begun = Instant::now();
        let mut at = String::new();
        let mut honest = 0;
        while begun.elapsed() < until || honest == 0 {
            let text = document(&jvm);
            let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
            let mut suspects = document.suspects.iter();
            let is_honest = document.horizon_seconds >= pace.honest_from_seconds();
            let wrong = suspects.find(|one| HEALTHY.contains(&&*one.account));
            assert!(
                !is_honest || wrong.is_none(),
                "{vm}: {wrong:?}: {text}\n{}",
                jvm.log()
            );
            if is_honest && at != document.at {
                honest += 1;
                at = document.at.into_owned();
            }
            assert!(
                begun.elapsed() < 4 * until,
                "{vm}: too few looks\n{}",
                jvm.log()
            );
            std::thread::sleep(Duration::from_secs(1));
        }
        looks.fetch_add(honest, Ordering::Relaxed);
    });
    let (services, looks) = (runs * HEALTHY.len() as u32, looks.into_inner());
    println!(
        "0 of {runs} runs suspected, 0 of {services} services at {looks} looks at windows of twice the longest \
         lifetime; 95 % bound of a run {:.1} %, of a service {:.2} %",
        bound(runs) * 100.0,
        bound(services) * 100.0
    );
}

/// A leak that is planted into an application of others, on a page of its own.
#[derive(Debug, Clone, Copy)]
struct Planted {
    /// The class that leaks.
    class: &'static str,
    /// Where it is kept.
    keeps: &'static str,
    /// The statement that leaks one.
    leaks: &'static str,
}

/// A listener that is never removed, a thread-local in a pool, a cache without bound.
const PLANTED: [Planted; 3] = [
    Planted {
        class: "Subscriber",
        keeps: "static final List<Subscriber> SUBSCRIBERS = Collections.synchronizedList(new ArrayList<>());",
        leaks: "SUBSCRIBERS.add(new Subscriber());",
    },
    Planted {
        class: "Visit",
        keeps: "static final ThreadLocal<List<Visit>> VISITS = ThreadLocal.withInitial(ArrayList::new);",
        leaks: "VISITS.get().add(new Visit());",
    },
    Planted {
        class: "Result",
        keeps: "static final Map<Long, Result> CACHE = new java.util.concurrent.ConcurrentHashMap<>();",
        leaks: "CACHE.put(System.nanoTime(), new Result());",
    },
];

impl Planted {
    fn page(self) -> String {
        self.class.to_lowercase()
    }

    fn java_class(self) -> String {
        format!("org.apache.jsp.{}_jsp${}", self.page(), self.class)
    }

    /// The page. Around each object that leaks it allocates twenty times as many arrays of bytes, which it drops.
    fn source(self) -> String {
        let Planted {
            class,
            keeps,
            leaks,
        } = self;
        format!(
            r#"<%@ page session="false" import="java.util.*" %><%!
  static final class {class} implements EventListener {{ final byte[] state = new byte[500]; }}
  {keeps}
  static volatile byte[] sink;
%><%
  for (int k = 0; k < 100; k++) {{
    for (int garbage = 0; garbage < 20; garbage++) sink = new byte[500];
    {leaks} // planted
  }}
%>done"#
        )
    }

    /// The frame of the planted line, by the Java source that the server has made of the page.
    fn line(self, server: &Path) -> String {
        let file = format!("{}_jsp.java", self.page());
        let path = find(server, &file).expect("the server keeps its sources");
        let source = std::fs::read_to_string(path).expect("a source");
        let number = source.lines().position(|line| line.ends_with("// planted"));
        let number = number.expect("the line is there") + 1;
        let class = format!("org.apache.jsp.{}_jsp", self.page());
        format!("{class}._jspService({file}:{number})")
    }
}

/// Leaks this in an application of others under load, and waits until a class is suspected and its places are
/// known. Says what is wrong with the answer.
fn plant(vm: &Vm, planted: Planted) -> Result<Duration, String> {
    let subject = subject("rdf4j").expect("it is one of the applications");
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let site = Installation::with_heap("768m").as_in_production();
    let server = subject.application.start(site, vm, data.path(), SAMPLING);
    subject.application.prepare(&server);
    let folder = server.policy().parent().expect("a folder").to_owned();
    let webapp = find(&folder, "webapps/rdf4j-server").expect("Tomcat has unpacked it");
    let page = format!("{}.jsp", planted.page());
    std::fs::write(webapp.join(&page), planted.source()).expect("writable");
    let begun = Instant::now();
    let mut number = 0;
    let text = loop {
        // Some real work, of a bounded size, and about a megabyte a second that stays.
        if number % 20 == 0 && number < 400 {
            let answer = subject.application.load(&server, number / 20);
            assert!(answer.is_ok_and(|answer| answer.status < 300));
        }
        let _ = subject.application.read(&server, 0);
        server.ask(&format!("/rdf4j-server/{page}"));
        number += 1;
        if number % 20 == 0 {
            let text = scrape::get(server.agent(), "/api/v1/leaks").body;
            let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
            let first = document.suspects.first();
            if first.is_some_and(|first| !first.sites.is_empty()) {
                break text;
            }
            if begun.elapsed() > Duration::from_secs(600) {
                return Err(format!("not found: {text}\n{}", server.log()));
            }
        }
        // However long it takes, it leaks less than the heap has room for.
        let pause_ms = if number < 6_000 { 60 } else { 600 };
        std::thread::sleep(Duration::from_millis(pause_ms));
    };
    let took = begun.elapsed();
    let document: Leaks<'_> = serde_json::from_str(&text).expect("the document");
    let first = &document.suspects[0];
    let (class, line) = (planted.java_class(), planted.line(&folder));
    let is_right = first.account == "/rdf4j-server"
        && first.class == class
        && first.sites[0].frames[0] == line;
    server.finish();
    if is_right {
        Ok(took)
    } else {
        Err(format!("{class} at {line} is not first: {text}"))
    }
}

#[test]
fn a_leak_in_an_application_of_others_is_named_with_its_line() {
    let vms = one_jdk_with(Collector::G1, 2);
    let took = plant(&vms[0], PLANTED[0]).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{}: found after {took:?}", vms[0]);
}

/// Each kind alone, again and again.
#[test]
fn in_many_runs_the_planted_class_and_line_come_first() {
    if !is_long() {
        println!("left out: 21 runs of single leaks (they are in --long)");
        return;
    }
    let every = every_jdk_with(Collector::G1);
    let runs = runs(21) as usize;
    let vms: Vec<Vm> = every.iter().cycle().take(runs).cloned().collect();
    let turn = AtomicU32::new(0);
    let wrong = Mutex::new(Vec::new());
    on_each_at_once(3, &vms, |vm| {
        let kind = PLANTED[turn.fetch_add(1, Ordering::Relaxed) as usize % PLANTED.len()];
        match plant(vm, kind) {
            Ok(took) => println!("{vm}: {} found after {took:?}", kind.class),
            Err(why) => wrong.lock().expect("never held over a panic").push(why),
        }
    });
    let wrong = wrong.into_inner().expect("never held over a panic");
    println!("{} of {runs} right", runs - wrong.len());
    assert!(
        wrong.len() as f64 <= 0.05 * runs as f64,
        "{}",
        wrong.join("\n")
    );
}

/// The first file or folder below a folder whose path ends like this.
fn find(folder: &Path, end: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if let Some(found) = paths.iter().find(|path| path.ends_with(end)) {
        return Some(found.clone());
    }
    let mut folders = paths
        .iter()
        .filter(|path| path.is_dir() && !path.is_symlink());
    folders.find_map(|folder| find(folder, end))
}
