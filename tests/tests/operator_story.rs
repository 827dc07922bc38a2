//! The whole story on real parts: two Tomcats with the agent, a real Prometheus that scrapes both and
//! has the shipped alert rules, and a service that grows. Its limit is suggested from what was seen,
//! the alert fires for it and for nobody else, and the advice is to move it.
//!
//! Nothing is recorded beforehand and no rule is altered: the minutes that the test takes are the
//! whole history. So scrapes, rules and steps come once a second, the commands are told that so
//! short a period is meant (`--allow-short`), and horizons are seconds and minutes. The alerts that
//! need hours of history have their cases in `deploy/prometheus/heapwarden.rules.test.yml`.
//!
//! The commands, their outputs and the alerts that an operator would have seen are left in `target/story.txt`;
//! `docs/story.md` shows it.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::newest;
use heapwarden_tests::prometheus::{Prometheus, shipped_configuration};
use heapwarden_tests::scrape::Holding;
use heapwarden_tests::server::{Installation, Server, installed};
use heapwarden_tests::server_setup;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const TOMCAT: &str = "apache-tomcat-11.0.10";
/// Its account, wherever it is, and the JVM that it is too much for.
const GROWING: (&str, &str) = ("/shop", "shop-a");
/// The JVM with room.
const ROOMY: &str = "shop-b";
const INTERVAL: &str = "8KiB";
const MIB: f64 = 1_048_576.0;
/// Bytes that a service holds vary by this share of what it holds at first, up and down.
const NOISE: f64 = 0.08;
/// From which limits are suggested.
const OBSERVED: Duration = Duration::from_secs(70);
/// Longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// A service, and what it holds.
struct Service {
    name: &'static str,
    mib: f64,
    growth_mib_per_second: f64,
}

const fn steady(name: &'static str, mib: f64) -> Service {
    Service {
        name,
        mib,
        growth_mib_per_second: 0.0,
    }
}

const A: [Service; 4] = [
    steady("/blog", 30.0),
    steady("/mail", 40.0),
    steady("/wiki", 24.0),
    Service {
        name: GROWING.0,
        mib: 32.0,
        growth_mib_per_second: 0.5,
    },
];
/// Heap of the first. From the 220th second on nothing but the move of the growing one relieves it in
/// five minutes, and it is full after the 550th: a busy machine has time to see enough.
const A_HEAP: &str = "416m";
const B: [Service; 2] = [steady("/blog", 36.0), steady("/docs", 28.0)];

/// A Tomcat, and what its services know of themselves.
struct Jvm {
    name: &'static str,
    server: Server,
    services: &'static [Service],
    /// Of each service, before it held anything.
    before: BTreeMap<&'static str, Holding>,
    /// Bytes that each holds now, as it says.
    held: BTreeMap<&'static str, u64>,
    /// The most that each has held.
    most: BTreeMap<&'static str, u64>,
}

impl Jvm {
    fn start(name: &'static str, heap: &'static str, services: &'static [Service]) -> Self {
        let site = Installation::with_heap(heap);
        let prepared = server_setup::tomcat(&site, newest(), TOMCAT, INTERVAL);
        for service in services {
            let archive = format!("webapps{}.war", service.name);
            fs::copy(
                installed().join("shop/shop.war"),
                prepared.base.join(archive),
            )
            .expect("built by Maven");
        }
        let last = services.last().expect("it has services").name;
        let server = site.start(prepared.command, &format!("{last}/shelf?do=gc"));
        let mut jvm = Self {
            name,
            server,
            services,
            before: BTreeMap::new(),
            held: BTreeMap::new(),
            most: BTreeMap::new(),
        };
        for service in services {
            let path = format!("{}/shelf?do=gc", service.name);
            let up = command::poll(command::PATIENCE, || {
                let answer = jvm.server.get(&path).ok()?;
                (answer.status == 200).then_some(())
            });
            assert!(up.is_some(), "{path}:\n{}", jvm.server.log());
            // Loads and compiles what a request needs.
            for crates in (0..20).rev() {
                jvm.level(service.name, crates * 70_000);
            }
            let before = jvm.server.settled(&path, service.name);
            jvm.before.insert(service.name, before);
        }
        jvm
    }

    /// Has a service hold so many bytes.
    fn level(&mut self, service: &'static str, bytes: u64) {
        let path = format!("{service}/shelf?do=level&bytes={bytes}");
        let answer = self.server.get(&path);
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        let held = answer.body.trim().strip_prefix("done ");
        let held: u64 = held
            .and_then(|held| held.parse().ok())
            .unwrap_or_else(|| panic!("{path}: {answer:?}\n{}", self.server.log()));
        self.held.insert(service, held);
        let most = self.most.entry(service).or_default();
        *most = held.max(*most);
    }

    /// A second of the services' lives. Collections come by themselves in a JVM that runs for days.
    fn live(&mut self, age: Duration) {
        for service in self.services {
            let noise = NOISE * noise(service.name, age.as_millis() as u64);
            let grown = service.growth_mib_per_second * age.as_secs_f64();
            let mib = service.mib * (1.0 + noise) + grown;
            self.level(service.name, (mib * MIB) as u64);
        }
        let first = self.services[0].name;
        self.server.ask(&format!("{first}/shelf?do=gc"));
    }

    /// Every account against what its service says that it holds.
    fn assert_truthful(&self) {
        for service in self.services {
            let name = service.name;
            let path = format!("{name}/shelf?do=gc");
            let (before, now) = (self.before[name], self.server.settled(&path, name));
            let came = now.live_bytes - before.live_bytes;
            let truth = self.held[name] as f64;
            let error = now.standard_error_bytes.hypot(before.standard_error_bytes);
            let off = (came - truth) / error;
            eprintln!("{} {name}: {off:+.2} standard errors", self.name);
            // By chance one of six is beyond four in one run of 2,600.
            assert!(
                off.abs() <= 4.0,
                "{name} holds {truth}, and {came} came to its account: {off:+.2} standard errors"
            );
        }
    }
}

/// From -1 to 1, by SplitMix64's mixing function.
fn noise(name: &str, moment: u64) -> f64 {
    let seed = name.bytes().fold(moment, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    let bits = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Both JVMs, who watches them, and what was seen.
struct Fleet {
    jvms: [Jvm; 2],
    prometheus: Prometheus,
    url: String,
    begun: Instant,
    /// Alert and account of all that were pending or firing at any time.
    raised: BTreeSet<(String, String)>,
}

impl Fleet {
    fn start(folder: &Path) -> Self {
        let jvms = std::thread::scope(|scope| {
            let starting = [(GROWING.1, A_HEAP, &A[..]), (ROOMY, "1g", &B[..])]
                .map(|(name, heap, services)| scope.spawn(|| Jvm::start(name, heap, services)));
            starting.map(|jvm| jvm.join().expect("it starts"))
        });
        let targets = jvms.each_ref().map(|jvm| (jvm.name, jvm.server.agent()));
        let prometheus = Prometheus::start(&shipped_configuration(&targets), folder);
        Self {
            jvms,
            url: format!("http://{}", prometheus.address()),
            prometheus,
            begun: Instant::now(),
            raised: BTreeSet::new(),
        }
    }

    /// Lets the services live on until there is a value.
    fn live_until<T>(&mut self, what: &str, mut value: impl FnMut(&Self) -> Option<T>) -> T {
        const SECOND: Duration = Duration::from_secs(1);
        let end = Instant::now() + LIMIT;
        loop {
            let begun = Instant::now();
            for jvm in &mut self.jvms {
                jvm.live(self.begun.elapsed());
            }
            for alert in self.prometheus.alerts() {
                let label = |name: &str| alert["labels"][name].as_str().unwrap_or("").to_owned();
                self.raised.insert((label("alertname"), label("account")));
            }
            if let Some(value) = value(self) {
                return value;
            }
            let (log, raised) = (self.prometheus.log(), &self.raised);
            assert!(begun < end, "{what}: not in {LIMIT:?}; {raised:?}\n{log}");
            std::thread::sleep(SECOND.saturating_sub(begun.elapsed()));
        }
    }

    /// Since the services have begun to live, in whole seconds, as commands take it.
    fn range(&self) -> String {
        format!("{}s", self.begun.elapsed().as_secs())
    }

    /// `heapwarden` with these arguments, in `folder`.
    fn heapwarden(&self, folder: &Path, arguments: &str) -> Finished {
        let mut command = Command::new(artifacts::command());
        command
            .args(arguments.split(' '))
            .env("HEAPWARDEN_PROMETHEUS", &self.url)
            .current_dir(folder);
        command::run(&mut command, LIMIT)
    }

    /// Bytes that a service has held at the most, in all JVMs, as it says itself.
    fn most(&self, service: &str) -> u64 {
        let most = self.jvms.iter().filter_map(|jvm| jvm.most.get(service));
        most.copied().max().expect("it is deployed")
    }

    fn growing(&self) -> u64 {
        self.jvms[0].held[GROWING.0]
    }
}

fn label<'a>(of: &'a Value, name: &str) -> &'a str {
    of["labels"][name].as_str().unwrap_or_default()
}

/// Columns in which an alert's text is shown.
const COLUMNS: usize = 100;

/// The commands, their outputs and the alerts, in the order in which an operator sees them.
#[derive(Default)]
struct Transcript(String);

impl Transcript {
    fn command(&mut self, arguments: &str, finished: &Finished) {
        let _ = write!(self.0, "$ heapwarden {arguments}\n{}\n", finished.stdout);
    }

    fn alert(&mut self, alert: &Value) {
        let annotations = &alert["annotations"];
        let name = label(alert, "alertname");
        let _ = write!(self.0, "Prometheus: {name}, firing:");
        for part in ["summary", "description"] {
            let mut column = usize::MAX;
            let text = annotations[part].as_str().unwrap_or_default();
            for word in text.split_whitespace() {
                let gap = if column > COLUMNS - word.len() {
                    column = 1;
                    "\n  "
                } else {
                    " "
                };
                column += 1 + word.len();
                let _ = write!(self.0, "{gap}{word}");
            }
        }
        self.0.push_str("\n\n");
    }
}

#[track_caller]
fn assert_code(finished: &Finished, code: i32) {
    assert_eq!(
        finished.status.code(),
        Some(code),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
}

/// Soft limit and limit by service, in bytes.
fn limits(policy: &str) -> BTreeMap<String, (u64, u64)> {
    let table: toml::Table = policy.parse().expect("TOML");
    let accounts = table["account"].as_array().expect("accounts");
    let bytes = |account: &toml::Value, key: &str| {
        let size = account[key].as_str().expect("text");
        let mib: u64 = size
            .strip_suffix("MiB")
            .expect("in MiB")
            .parse()
            .expect("whole");
        mib << 20
    };
    accounts
        .iter()
        .map(|account| {
            let service = account["service"].as_str().expect("of a service");
            let both = (bytes(account, "soft-limit"), bytes(account, "limit"));
            (service.to_owned(), both)
        })
        .collect()
}

#[test]
fn a_service_grows_is_noticed_and_is_advised_to_move() {
    artifacts::command();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut fleet = Fleet::start(folder.path());
    let mut seen = Transcript::default();

    // A while without limits.
    fleet.live_until("the observed period", |fleet| {
        (fleet.begun.elapsed() >= OBSERVED).then_some(())
    });
    let limits = suggest(&mut fleet, folder.path(), &mut seen);

    // The operator puts the suggestion in force, and the service goes on growing.
    for jvm in &fleet.jvms {
        let suggested = folder.path().join("suggested.toml");
        fs::copy(suggested, jvm.server.policy()).expect("writable");
    }
    notice(&mut fleet, &limits, &mut seen);
    replay_all(&fleet, folder.path(), &mut seen);
    advise(&mut fleet, folder.path(), &mut seen);

    for jvm in &fleet.jvms {
        jvm.assert_truthful();
    }
    let target = artifacts::repository().join("target");
    fs::create_dir_all(&target).expect("the repository is writable");
    fs::write(target.join("story.txt"), &seen.0).expect("target is writable");
    eprintln!("{}", seen.0);
    for jvm in fleet.jvms {
        jvm.server.finish();
    }
}

/// The suggestion is a policy that gives every service what it has held, and some room; nobody would
/// have been refused under it so far.
fn suggest(
    fleet: &mut Fleet,
    folder: &Path,
    seen: &mut Transcript,
) -> BTreeMap<String, (u64, u64)> {
    let range = fleet.range();
    let arguments = format!(
        "suggest --range {range} --step 1s --quantile 0.95 --horizon 10s --allow-short -o suggested.toml"
    );
    let suggested = fleet.heapwarden(folder, &arguments);
    assert_code(&suggested, 0);
    let policy = fs::read_to_string(folder.join("suggested.toml")).expect("it was written");
    let check = fleet.heapwarden(folder, "check suggested.toml");
    assert_code(&check, 0);
    assert!(check.stdout.contains(": ok\n"), "{}{policy}", check.stdout);
    let arguments_of_replay = format!("replay suggested.toml --range {range} --step 1s");
    let replay = fleet.heapwarden(folder, &arguments_of_replay);
    assert_code(&replay, 0);

    let limits = limits(&policy);
    let services: BTreeSet<&str> = limits.keys().map(String::as_str).collect();
    let deployed = fleet.jvms.iter().flat_map(|jvm| jvm.services);
    let deployed: BTreeSet<&str> = deployed.map(|service| service.name).collect();
    assert_eq!(services, deployed, "{policy}");
    for (service, (_, limit)) in &limits {
        let most = fleet.most(service) as f64;
        let limit = *limit as f64;
        // Headroom of a quarter, up to an eighth of rounding twice, growth of ten seconds.
        assert!(
            (most..1.9 * most).contains(&limit),
            "{service} has held {most}, and {limit} is suggested:\n{policy}"
        );
    }
    seen.command(&arguments, &suggested);
    let _ = write!(seen.0, "$ cat suggested.toml\n{policy}\n");
    seen.command(&arguments_of_replay, &replay);
    limits
}

/// The alerts fire for the one that outgrows its limit, once it truly has, and no steady service has
/// ever had any.
fn notice(fleet: &mut Fleet, limits: &BTreeMap<String, (u64, u64)>, seen: &mut Transcript) {
    const EXPECTED: [&str; 2] = ["HeapwardenAccountFull", "HeapwardenAccountWouldBeRefused"];
    let limit = limits[GROWING.0].1;
    let mut held_at_first = None;
    let firing = fleet.live_until("both alerts", |fleet| {
        let is_firing = |alert: &Value| alert["state"] == "firing";
        let firing: Vec<Value> = fleet
            .prometheus
            .alerts()
            .into_iter()
            .filter(is_firing)
            .collect();
        if !firing.is_empty() {
            held_at_first.get_or_insert_with(|| fleet.most(GROWING.0));
        }
        (firing.len() >= EXPECTED.len()).then_some(firing)
    });
    let firing: BTreeMap<&str, &Value> = firing
        .iter()
        .map(|alert| (label(alert, "alertname"), alert))
        .collect();
    assert!(firing.keys().copied().eq(EXPECTED), "{firing:?}");
    for alert in firing.values() {
        assert_eq!(label(alert, "account"), GROWING.0, "{alert}");
        assert_eq!(label(alert, "instance"), GROWING.1, "{alert}");
    }
    let held = held_at_first.expect("one was seen first");
    // Its account is larger than what it knows of by what the container made for it, and by chance.
    assert!(
        held as f64 > 0.97 * limit as f64,
        "an alert for {held} bytes at a limit of {limit}"
    );
    for jvm in &fleet.jvms {
        for service in jvm.services.iter().filter(|one| one.name != GROWING.0) {
            let (soft_limit, _) = limits[service.name];
            let most = jvm.most[service.name];
            assert!(
                most < soft_limit,
                "{}: the test's own arithmetic",
                service.name
            );
            let alerts = fleet.raised.iter().filter(|(_, of)| of == service.name);
            assert_eq!(alerts.count(), 0, "{:?}", fleet.raised);
        }
    }
    // On its way it was noticed before.
    let almost = (
        "HeapwardenAccountAlmostFull".to_owned(),
        GROWING.0.to_owned(),
    );
    assert!(fleet.raised.contains(&almost), "{:?}", fleet.raised);
    for alert in firing.values() {
        seen.alert(alert);
    }
}

/// Over everything that was recorded, only the growing one hits its limit.
fn replay_all(fleet: &Fleet, folder: &Path, seen: &mut Transcript) {
    let arguments = format!("replay suggested.toml --range {} --step 1s", fleet.range());
    let replay = fleet.heapwarden(folder, &arguments);
    assert_code(&replay, 3);
    seen.command(&arguments, &replay);
    let json = fleet.heapwarden(folder, &format!("{arguments} --json"));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let refused = json["refused"].as_array().expect("a list");
    assert_eq!(refused.len(), 1, "{json:#}");
    assert_eq!(refused[0]["account"], GROWING.0);
    assert_eq!(refused[0]["jvm"]["instance"], GROWING.1);
}

/// The growing one moves to the JVM with room, and what that frees is what it will truly hold.
fn advise(fleet: &mut Fleet, folder: &Path, seen: &mut Transcript) {
    const HORIZON_SECONDS: f64 = 300.0;
    let (arguments, table, json) = fleet.live_until("advice", |fleet| {
        let arguments = format!(
            "advise --range {} --step 1s --horizon 5m --allow-short",
            fleet.range()
        );
        let json = fleet.heapwarden(folder, &format!("{arguments} --format json"));
        // Too little is known of one of them so far: an operator who is told to wait waits.
        let advice: Value = serde_json::from_str(&json.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", json.stdout, json.stderr));
        let missing = |of: &Value| {
            of["unassessed"]
                .as_array()
                .is_some_and(|list| !list.is_empty())
        };
        let mut jvms = advice["jvms"].as_array().into_iter().flatten();
        if missing(&advice) || jvms.any(missing) {
            eprintln!(
                "{} {} {}",
                advice["unassessed"], advice["jvms"], json.stderr
            );
            return None;
        }
        // While little is to be freed, another service's move is enough.
        let steady = A.iter().filter(|one| one.name != GROWING.0);
        let largest_mib = steady.map(|one| one.mib).fold(0.0, f64::max);
        let excess_bytes = advice["plan"]["excess_bytes"].as_f64().unwrap_or(0.0);
        if excess_bytes < 1.3 * largest_mib * MIB {
            return None;
        }
        let table = fleet.heapwarden(folder, &arguments);
        Some((arguments, table, advice))
    });
    assert_code(&table, 0);
    seen.command(&arguments, &table);
    assert_eq!(json["verdict"], "move", "{json:#}");
    assert_eq!(json["plan"]["is_optimal"], true, "{json:#}");
    let [only] = json["moves"].as_array().expect("a list").as_slice() else {
        panic!("one move is enough: {json:#}");
    };
    assert_eq!(only["service"], GROWING.0, "{json:#}");
    assert_eq!(only["from"]["instance"], GROWING.1, "{json:#}");
    assert_eq!(only["to"]["instance"], ROOMY, "{json:#}");
    let growing = &A[3];
    let truth = fleet.growing() as f64 + growing.growth_mib_per_second * HORIZON_SECONDS * MIB;
    let frees = only["frees"]["bytes"].as_f64().expect("a number");
    assert!(
        (0.85..1.15).contains(&(frees / truth)),
        "it will hold {truth} bytes, of which {frees} are told: {json:#}"
    );
}
