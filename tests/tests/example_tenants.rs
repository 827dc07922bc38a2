//! The examples of the Java API, run as their READMEs say: tenants' accounts hold what the tenants
//! hold, the hostile one is refused and nobody else, and without the agent the same programs run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use heapwarden_harness::http::Answer;
use heapwarden_tests::command::{self, Finished, PATIENCE};
use heapwarden_tests::jdk::{Collector, Jdk, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::scrape::{self, Holding, Metrics};
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::{artifacts, examples, jvm_output, stats};

/// Requests of a tenant over its limit that let go of memory, none of which may be refused.
const LETTING_GO: u32 = 20;
/// Rounds after which the neighbours let go of what they hold: on a slow machine there are many.
const ROUNDS_HELD: u32 = 64;
/// MiB that the hostile tenant takes before the verdict: twice its limit. More would fill the heap if
/// a busy machine is late with it.
const MAX_MIB: u32 = 64;
/// Longest that the plain host may take on a busy machine; it takes seconds.
const HOST_LIMIT: Duration = Duration::from_secs(480);

/// A line of the plain host's summary.
#[derive(Debug)]
struct Summary {
    done: u64,
    refused: u64,
    shed: u64,
    holds_mib: f64,
    /// Live MiB, their standard error, and the state.
    account: Option<(f64, f64, String)>,
}

/// `tenant-ada  54  0  0  8.01  7.93 ± 0.27 OPEN`, the account `-` without the agent.
fn summary(finished: &Finished) -> BTreeMap<String, Summary> {
    let text = &finished.stdout;
    let lines = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, done, refused, shed, holds, account @ ..] = words.as_slice() else {
            return None;
        };
        let account = match account {
            ["-"] => None,
            [live, "±", error, state] => {
                Some((live.parse().ok()?, error.parse().ok()?, (*state).to_owned()))
            }
            _ => return None,
        };
        let summary = Summary {
            done: done.parse().ok()?,
            refused: refused.parse().ok()?,
            shed: shed.parse().ok()?,
            holds_mib: holds.parse().ok()?,
            account,
        };
        Some(((*name).to_owned(), summary))
    });
    let found: BTreeMap<String, Summary> = lines.collect();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["tenant-ada", "tenant-bo", "tenant-mallory"],
        "{finished:#?}"
    );
    found
}

fn run_host(vm: &Vm, with_agent: bool) -> Finished {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let tenants = examples::built().join("tenants");
    let mut java = Command::new(vm.jdk.program("java"));
    java.args(vm.collector.flags())
        .args(["-Xmx256m", "-Xcheck:jni"])
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS")
        .current_dir(folder.path());
    if with_agent {
        java.arg(format!(
            "-agentpath:{}=config={},listen=127.0.0.1:0",
            artifacts::library().display(),
            tenants.join("heapwarden.toml").display()
        ));
    }
    java.arg("-jar").arg(tenants.join("target/tenants.jar"));
    let finished = command::run(&mut java, HOST_LIMIT);
    assert!(finished.status.success(), "{vm}: {finished:#?}");
    let complaints = jvm_output::complaints(&format!("{}\n{}", finished.stdout, finished.stderr));
    assert!(complaints.is_empty(), "{vm}: {complaints:#?}");
    finished
}

#[test]
fn the_hostile_tenant_of_a_plain_host_is_refused_and_nobody_else() {
    let scores = Mutex::new(Vec::new());
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let finished = run_host(vm, true);
        let tenants = summary(&finished);
        for (name, tenant) in &tenants {
            let (live, error, _) = tenant.account.as_ref().expect("the agent is there");
            let z = (live - tenant.holds_mib) / error;
            eprintln!("{vm} {name}: {z:+.2} standard errors");
            let mut scores = scores.lock().expect("never held over a panic");
            scores.push((format!("{vm} {name}: {tenant:?}"), z));
        }
        let rounds = tenants["tenant-ada"].done;
        let mallory = &tenants["tenant-mallory"];
        assert!(mallory.refused >= 10, "{finished:#?}");
        assert_eq!(mallory.done + mallory.refused, rounds, "{finished:#?}");
        assert_eq!(mallory.account.as_ref().map(|a| a.2.as_str()), Some("OVER"));
        for neighbour in ["tenant-ada", "tenant-bo"] {
            let tenant = &tenants[neighbour];
            assert_eq!((tenant.refused, tenant.done), (0, rounds), "{finished:#?}");
        }
        assert!(tenants["tenant-bo"].shed >= 1, "{finished:#?}");
        assert!(
            finished.stdout.contains(
                "tenant-mallory is refused: dev.heapwarden.MemoryQuotaExceededError: account \
                 \"tenant-mallory\""
            ),
            "{finished:#?}"
        );
    });
    stats::judge_family(&scores.into_inner().expect("never held over a panic"));
}

#[test]
fn a_plain_host_runs_without_the_agent() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let tenants = summary(&run_host(vm, false));
        for (name, tenant) in &tenants {
            assert!(tenant.account.is_none(), "{vm} {name}: {tenant:?}");
            assert_eq!((tenant.refused, tenant.done), (0, 96), "{vm} {name}");
        }
        assert!(tenants["tenant-mallory"].holds_mib > 96.0, "{tenants:?}");
    });
}

/// The Spring Boot example, up.
fn start_boot(jdk: &Jdk, with_agent: bool) -> Server {
    let site = Installation::new();
    let example = examples::built().join("spring-boot");
    let policy = fs::read_to_string(example.join("heapwarden.toml")).expect("it is readable");
    let mut java = Command::new(jdk.program("java"));
    java.args(if with_agent {
        site.jvm_flags_with(&policy)
    } else {
        site.jvm_flags_without_agent()
    })
    .arg("-jar")
    .arg(example.join("target/shop.jar"))
    .arg("--server.address=127.0.0.1")
    .arg(format!("--server.port={}", site.http_port()));
    site.start(java, "/basket/account")
}

fn asked(server: &Server, method: &str, path: &str, tenant: &str) -> Answer {
    server
        .send(method, path, &[("X-Tenant", tenant)])
        .unwrap_or_else(|error| panic!("{tenant}: {method} {path}: {error}\n{}", server.log()))
}

/// The body of an answer that must be a 200.
fn told(server: &Server, method: &str, path: &str, tenant: &str) -> String {
    let answer = asked(server, method, path, tenant);
    assert_eq!(
        answer.status,
        200,
        "{tenant}: {method} {path}: {answer:?}\n{}",
        server.log()
    );
    answer.body.trim().to_owned()
}

/// Bytes that the tenant knows it holds.
fn held_bytes(server: &Server, tenant: &str) -> f64 {
    told(server, "GET", "/basket", tenant)
        .parse()
        .expect("a number")
}

/// Asserts that names which no tenant may have are rejected, and that the service pays where no tenant is named.
fn assert_strangers(server: &Server, service: &str) {
    for stranger in ["evil", "acme/../globex", "_other", " "] {
        let answer = asked(server, "GET", "/basket/account", stranger);
        assert_eq!(answer.status, 400, "{stranger:?}: {answer:?}");
    }
    let answer = server.get("/basket/account").expect("it answers");
    assert_eq!((answer.status, answer.body.trim()), (200, service));
}

/// Lets a tenant hold 16 MiB that `path` makes; z-score of what came to the account.
fn held_z(server: &Server, jdk: &Jdk, tenant: &str, path: &str) -> f64 {
    let account = format!("shop/{tenant}");
    let collect = || {
        let jcmd = Command::new(jdk.program("jcmd"))
            .args([&server.id().to_string(), "GC.run"])
            .output()
            .expect("a JDK has jcmd");
        assert!(jcmd.status.success(), "{jcmd:?}\n{}", server.log());
    };
    // Loads and compiles what the request needs before the account is read.
    for _ in 0..20 {
        told(server, "POST", &format!("{path}?kib=4"), tenant);
    }
    let before = server.settled_by(collect, &account);
    let held = held_bytes(server, tenant);
    told(server, "POST", &format!("{path}?kib=16384"), tenant);
    let after = server.settled_by(collect, &account);
    let truth = held_bytes(server, tenant) - held;
    assert!(truth > 16.0 * 1024.0 * 1024.0, "{truth}");
    z_score(before, after, truth)
}

fn z_score(before: Holding, after: Holding, truth: f64) -> f64 {
    let variance = after.standard_error_bytes.powi(2) - before.standard_error_bytes.powi(2);
    (after.live_bytes - before.live_bytes - truth) / variance.sqrt()
}

/// Each byte is in one account's own figure: a plain sum counts none twice, and the tree of the service
/// is its own and its scopes'.
fn assert_sums(metrics: &Metrics) {
    let live = "heapwarden_account_live_bytes";
    let own = metrics.of_account(live, "shop").expect("the service");
    let scopes: f64 = ["acme", "globex"]
        .iter()
        .map(|tenant| {
            metrics
                .of_account(live, &format!("shop/{tenant}"))
                .expect("a tenant")
        })
        .sum();
    let tree = metrics.of_account("heapwarden_account_tree_live_bytes", "shop");
    assert_eq!(tree, Some(own + scopes), "own {own}, scopes {scopes}");
    let unaccounted = metrics.of_account(live, "_unaccounted").expect("always");
    assert_eq!(metrics.sum(live), unaccounted + own + scopes);
    for tenant in ["acme", "globex"] {
        let account = format!("shop/{tenant}");
        let info = [
            ("account", account.as_str()),
            ("kind", "scope"),
            ("parent", "shop"),
            ("service", "shop"),
        ];
        assert_eq!(metrics.value("heapwarden_account_info", &info), Some(1.0));
        let tree = metrics.of_account("heapwarden_account_tree_live_bytes", &account);
        assert_eq!(tree, None, "nothing lies beneath {account}");
    }
}

/// A tenant that hoards is refused with 503, on the request's thread and on another; its neighbours
/// are answered all the while; when it lets go it is admitted again.
fn assert_hostile(server: &Server) {
    let rounds = Cell::new(0_u32);
    let neighbours = || {
        rounds.set(rounds.get() + 1);
        for (tenant, path) in [("acme", "/basket"), ("globex", "/basket/elsewhere")] {
            told(server, "POST", &format!("{path}?kib=64"), tenant);
            if rounds.get().is_multiple_of(ROUNDS_HELD) {
                told(server, "DELETE", "/basket", tenant);
            }
        }
    };
    let mut taken_mib = 0;
    for path in ["/basket", "/basket/elsewhere"] {
        let refused = command::poll(PATIENCE, || {
            neighbours();
            if taken_mib >= MAX_MIB && !server.accounts().is_in_state("shop/initech", "over") {
                return None;
            }
            taken_mib += 1;
            let answer = asked(server, "POST", &format!("{path}?kib=1024"), "initech");
            assert!(
                [200, 503].contains(&answer.status),
                "{answer:?}\n{}",
                server.log()
            );
            // Not faster than evidence can follow: else it holds the heap before the verdict.
            std::thread::sleep(Duration::from_millis(50));
            (answer.status == 503).then_some(answer)
        });
        let answer = refused.unwrap_or_else(|| {
            panic!(
                "{path} never refused: {}\n{}",
                server.accounts().brief(),
                server.log()
            )
        });
        assert_eq!(answer.headers["retry-after"], "10", "{answer:?}");
        assert!(answer.body.is_empty(), "{answer:?}");
    }
    // Its account stays over its limit until a collection: one such request in three would be refused
    // if it could be.
    for _ in 0..LETTING_GO {
        told(server, "DELETE", "/basket", "initech");
    }
    let admitted = command::poll(PATIENCE, || {
        neighbours();
        let answer = asked(server, "POST", "/basket?kib=1024", "initech");
        let open = server.accounts().is_in_state("shop/initech", "open");
        if answer.status == 200 && !open {
            // Else it would be over again by the time that a slow machine tells.
            told(server, "DELETE", "/basket", "initech");
        }
        (answer.status == 200 && open).then_some(())
    });
    assert!(
        admitted.is_some(),
        "{}\n{}",
        server.accounts().brief(),
        server.log()
    );
    let metrics = scrape::metrics(server.agent());
    let refusals = |account: &str| {
        metrics
            .of_account("heapwarden_account_refusals_total", account)
            .expect("it is published")
    };
    assert!(refusals("shop/initech") >= 2.0);
    for account in ["shop", "shop/acme", "shop/globex"] {
        assert_eq!(refusals(account), 0.0, "{account}");
    }
}

#[test]
fn tenants_of_a_spring_boot_application_have_accounts() {
    let scores = Mutex::new(Vec::new());
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let server = start_boot(&vm.jdk, true);
        assert_strangers(&server, "shop");
        for (tenant, path) in [("acme", "/basket"), ("globex", "/basket/elsewhere")] {
            assert_eq!(
                told(&server, "GET", "/basket/account", tenant),
                format!("shop/{tenant}")
            );
            let z = held_z(&server, &vm.jdk, tenant, path);
            eprintln!("{vm} {tenant} by {path}: {z:+.2} standard errors");
            let mut scores = scores.lock().expect("never held over a panic");
            scores.push((format!("{vm} {tenant} by {path}"), z));
        }
        assert_sums(&scrape::metrics(server.agent()));
        assert_hostile(&server);
        server.finish();
    });
    stats::judge_family(&scores.into_inner().expect("never held over a panic"));
}

#[test]
fn a_spring_boot_application_runs_without_the_agent() {
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let server = start_boot(&vm.jdk, false);
        assert_strangers(&server, "_unaccounted");
        for path in ["/basket", "/basket/elsewhere"] {
            // More than the policy would allow it.
            told(&server, "POST", &format!("{path}?kib=40960"), "initech");
        }
        assert!(held_bytes(&server, "initech") > 80.0 * 1024.0 * 1024.0);
        told(&server, "DELETE", "/basket", "initech");
        assert_eq!(held_bytes(&server, "initech"), 0.0);
        server.finish();
    });
}
