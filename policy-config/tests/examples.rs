//! The starting policies in `examples/policies`, which users copy.

use std::collections::BTreeMap;
use std::path::Path;

use policy_config::{Matcher, Mode, Policy, Throw, WorkPattern, parse};

fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/policies");
    std::fs::read_to_string(folder.join(name).with_extension("toml")).expect("a readable example")
}

fn examples() -> BTreeMap<String, Policy> {
    policies_in("../examples/policies")
}

fn policies_in(folder: &str) -> BTreeMap<String, Policy> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("the examples");
    entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a readable example");
            let parsed = parse(&text);
            let name = path.file_stem().expect("a name").display().to_string();
            let problems: Vec<_> = parsed
                .diagnostics
                .iter()
                .map(|one| one.render(&name, &text))
                .collect();
            assert!(problems.is_empty(), "{problems:#?}");
            (name, parsed.policy.expect("no problems"))
        })
        .collect()
}

#[test]
fn every_example_is_accepted_without_a_warning() {
    let names: Vec<_> = examples().into_keys().collect();
    assert_eq!(
        names,
        [
            "observe-first",
            "observe-suggest-enforce",
            "packages-and-libraries",
            "servlet-container",
            "tenants"
        ]
    );
}

/// The policies for servers.
const SERVERS: [&str; 14] = [
    "activemq",
    "artemis",
    "cassandra",
    "flowable",
    "fuseki",
    "h2",
    "hazelcast",
    "hsqldb",
    "kafka",
    "kafka-connect",
    "mockserver",
    "quartz",
    "zipkin",
    "zookeeper",
];

/// Words for what lets go: no door may stand before it.
const FREEING: [&str; 11] = [
    "delete", "drop", "truncate", "remove", "clear", "reset", "ack", "rollback", "close", "flush",
    "stop",
];

/// Users copy these policies for a server that they run: each measures first, turns work away at methods of the
/// server's own, and says what leaves them.
#[test]
fn the_servers_policies_observe_and_have_doors_of_methods() {
    let servers = policies_in("../examples/policies/servers");
    let names: Vec<_> = servers.keys().map(String::as_str).collect();
    assert_eq!(names, SERVERS);
    for (name, policy) in &servers {
        assert_eq!(policy.enforcement.mode, Mode::Observe, "{name}");
        assert!(!policy.accounts.is_empty(), "{name}");
        for account in &policy.accounts {
            let label = format!("{name}: {}", account.label());
            let Matcher::Packages(packages) = &account.matcher else {
                panic!("{label} is not an account of packages");
            };
            let own = |class: &str| {
                let package = class.rsplit_once('.').expect("a package").0;
                packages.iter().any(|pattern| pattern.matches(package))
            };
            assert!(!account.door.methods().is_empty(), "{label} has no door");
            assert!(account.refuse_with.is_some(), "{label}: by chance only");
            for door in account.door.methods() {
                assert!(own(&door.class), "{label}: {door} is not the server's");
                let (class, method) = (&door.class, &door.method);
                let words = format!("{}.{method}", class.rsplit_once('.').expect("a package").1);
                let words = words.to_lowercase();
                let frees = FREEING.iter().find(|word| words.contains(*word));
                assert_eq!(frees, None, "{label}: what frees would pass {door}");
            }
            for work in &account.interrupts.work {
                let WorkPattern::Method { class, .. } = work else {
                    panic!("{label}: {work} is not a method");
                };
                assert!(own(class), "{label}: {work} is not the server's");
            }
            for never in &account.interrupts.never {
                assert!(own(&format!("{}.X", never.prefix())), "{label}: {never}");
            }
        }
    }
}

/// Where an `OutOfMemoryError` is taken for the end, none is thrown, at a door or elsewhere.
#[test]
fn servers_that_end_at_an_out_of_memory_error_see_none() {
    let servers = policies_in("../examples/policies/servers");
    for name in ["cassandra", "h2", "hazelcast"] {
        for account in &servers[name].accounts {
            assert_eq!(account.throw, Throw::Exception, "{name}");
            assert_eq!(account.refuse_with, Some(Throw::Exception), "{name}");
        }
    }
}

/// The table of the documentation has each of them, with the version whose source was read.
#[test]
fn the_documentation_has_every_servers_policy() {
    let table = document("docs/servers.md");
    for name in SERVERS {
        let row = (table.lines())
            .find(|line| line.contains(&format!("servers/{name}.toml")))
            .unwrap_or_else(|| panic!("docs/servers.md has no row of {name}"));
        let policy = text(&format!("servers/{name}"));
        let (_, read) = policy.split_once("read: ").expect("a version was read");
        let version = &read[..read.find(')').expect("its end")];
        assert!(row.contains(version), "{name}: {version} was read");
    }
}

#[test]
fn the_first_examples_refuse_nothing() {
    let examples = examples();
    for name in ["observe-first", "observe-suggest-enforce"] {
        assert_eq!(examples[name].enforcement.mode, Mode::Observe, "{name}");
    }
}

/// The part that the file tells its reader to uncomment is a policy as well, and goes before the rest.
#[test]
fn the_second_step_is_accepted_too() {
    let text = text("observe-suggest-enforce");
    let begin = text.find("# [[account]]").expect("the second step");
    let length = text[begin..].find("\n\n").expect("its end");
    let commented = text[begin..begin + length].lines();
    let step = commented.map(|line| line.trim_start_matches("# ").to_owned() + "\n");
    let step: String = step.collect();
    let text = [&text[..begin], &step, &text[begin + length..]].concat();
    let text = text.replace("mode = \"observe\"", "mode = \"enforce\"");
    let parsed = parse(&text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    let policy = parsed.policy.expect("no problems");
    assert_eq!(policy.enforcement.mode, Mode::Enforce);
    let label = |name| {
        policy
            .service_account(&[name])
            .map(|index| policy.accounts[index].label())
    };
    assert_eq!(label("/shop").as_deref(), Some("shop"));
    assert_eq!(label("/blog").as_deref(), Some("service \"*\""));
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The metrics that the file's queries name are those that the documentation describes.
#[test]
fn its_queries_name_metrics_of_the_documentation() {
    let metrics = document("docs/metrics.md");
    let text = text("observe-suggest-enforce");
    let names: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("heapwarden_"))
        .collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        assert!(metrics.contains(&format!("`{name}`")), "{name}");
    }
}

/// Whatever a reader copies out of the documentation is a policy that is accepted.
#[test]
fn policies_in_the_documentation_are_accepted_without_a_warning() {
    let mut found = 0;
    for path in ["README.md", "docs/policy.md", "docs/java-api.md"] {
        let text = document(path);
        for block in text.split("```toml\n").skip(1) {
            let (policy, _) = block.split_once("```").expect("the block ends");
            let parsed = parse(policy);
            assert_eq!(parsed.diagnostics, [], "{path}:\n{policy}");
            found += 1;
        }
    }
    assert!(found >= 3, "only {found} policies found");
}

#[test]
fn the_examples_do_what_their_comments_say() {
    let examples = examples();
    let label = |example: &str, index: Option<usize>| {
        index.map(|index| examples[example].accounts[index].label())
    };
    let service = |names: &[&str]| {
        let policy = &examples["servlet-container"];
        label("servlet-container", policy.service_account(names)).unwrap()
    };
    assert_eq!(service(&["/shop", "shop", "shop.war"]), "shop");
    assert_eq!(service(&["/reports-eu"]), "reports");
    assert_eq!(service(&["/host-manager"]), "consoles");
    assert_eq!(service(&["/blog"]), "service \"*\"");

    let packages = examples["packages-and-libraries"].package_table();
    let package = |name| label("packages-and-libraries", packages.lookup(name));
    assert_eq!(package("com.acme.orders.web").as_deref(), Some("orders"));
    assert_eq!(
        package("com/acme/orders/export/csv").as_deref(),
        Some("order-export")
    );
    assert_eq!(package("com.acme.cache").as_deref(), Some("caches"));
    assert_eq!(package("com.acme.cache.disk"), None);
    assert_eq!(package("javax.xml.parsers").as_deref(), Some("xml"));

    let scope = |name| label("tenants", examples["tenants"].scope_account(name));
    assert_eq!(scope("tenant-premium-7").as_deref(), Some("premium"));
    assert_eq!(scope("tenant-7").as_deref(), Some("scope \"tenant-*\""));
    assert_eq!(scope("system"), None);
}
