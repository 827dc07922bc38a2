//! The servers, and the policies that they have.

use heapwarden_tests::artifacts;
use std::fs;
use std::time::Duration;

/// Units of one command.
const BATCH: u64 = 16;
pub(super) const REST: Duration = Duration::from_millis(50);
/// The most that a load may leave in an account, of its limit, where it has a door: what is gained until the verdict.
const BEYOND_WITH_DOOR: f64 = 1.5;
/// The same without one: the reserve lets it through.
pub(super) const BEYOND_WITHOUT: f64 = 2.25;

/// A server, and whose memory it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    /// Folder in `tests/doorless`, and shipped policy if there is one.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Its account, where no policy is shipped.
    pub(super) packages: &'static [&'static str],
    /// Lines of that account, such as a door.
    pub(super) account: &'static str,
    /// Names in the shipped policy, and what stands for them here.
    pub(super) renamed: &'static [(&'static str, &'static str)],
    /// Ports that its host is told.
    pub(super) ports: usize,
    /// Whether the host is its own client.
    pub(super) embedded: bool,
    /// Oldest and newest Java that it runs on.
    pub(super) java: u32,
    pub(super) newest_java: u32,
    /// Above what it holds by itself.
    pub(super) limit_mib: u64,
    pub(super) unit_bytes: u64,
    pub(super) batch: u64,
    /// Between two batches.
    pub(super) rest: Duration,
    /// The most that it may hold with a door, of the limit.
    pub(super) most: f64,
    /// Whether units can be let go one by one.
    pub(super) deletes: bool,
    /// Whether what it acknowledged outlives the process.
    pub(super) durable: bool,
    /// Whether it runs without `--long`.
    pub(super) short: bool,
    pub(super) heap: &'static str,
}

/// Values that most of them have in common.
const USUAL: Subject = Subject {
    name: "",
    title: "",
    packages: &[],
    account: "",
    renamed: &[],
    ports: 1,
    embedded: false,
    java: 17,
    newest_java: u32::MAX,
    limit_mib: 32,
    unit_bytes: 32_768,
    batch: BATCH,
    rest: REST,
    most: BEYOND_WITH_DOOR,
    deletes: true,
    durable: false,
    short: false,
    heap: "768m",
};

const DOOR_OF_SHELF: &str = "door = [\"app.Shelf#hold\"]\nrefuse-with = \"exception\"\n";

impl Subject {
    pub(super) fn limit_bytes(&self) -> f64 {
        (self.limit_mib << 20) as f64
    }
}

pub(super) const SUBJECTS: [Subject; 18] = [
    Subject {
        name: "h2",
        // It makes a thread for each connection: docs/limitations.md, many new threads.
        title: "H2 2.3, TCP server",
        ..USUAL
    },
    Subject {
        name: "hsqldb",
        title: "HSQLDB 2.7, server",
        durable: true,
        ..USUAL
    },
    Subject {
        name: "zookeeper",
        title: "ZooKeeper 3.9",
        // Beside the nodes it keeps its latest 500 requests.
        limit_mib: 96,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "kafka",
        title: "Kafka 3.9, KRaft",
        ports: 2,
        // On ZGC, without compressed references, the broker itself holds 34 MB.
        limit_mib: 64,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "artemis",
        title: "Artemis 2.39",
        ..USUAL
    },
    Subject {
        name: "hazelcast",
        title: "Hazelcast 5.3",
        limit_mib: 64,
        ..USUAL
    },
    Subject {
        name: "cassandra",
        title: "Cassandra 5.0",
        ports: 2,
        // It sets a security manager.
        newest_java: 17,
        limit_mib: 96,
        deletes: false,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "quartz",
        title: "Quartz 2.5",
        renamed: &[
            ("com.acme.jobs.ImportJob", "app.Hold"),
            ("com.acme.jobs.*", "app"),
        ],
        ports: 0,
        embedded: true,
        short: true,
        ..USUAL
    },
    Subject {
        name: "webflux",
        title: "Spring WebFlux 6.2, no door",
        packages: &["app"],
        // An `OutOfMemoryError` is fatal to Reactor: it would cut the connection.
        account: "throw = \"error\"\n",
        ..USUAL
    },
    Subject {
        name: "webflux",
        title: "Spring WebFlux 6.2, a door",
        packages: &["app"],
        account: DOOR_OF_SHELF,
        ..USUAL
    },
    Subject {
        name: "helidon",
        title: "Helidon SE 4.2, no door",
        packages: &["app"],
        java: 21,
        ..USUAL
    },
    Subject {
        name: "helidon",
        title: "Helidon SE 4.2, a door",
        packages: &["app"],
        account: DOOR_OF_SHELF,
        java: 21,
        ..USUAL
    },
    Subject {
        name: "activemq",
        title: "ActiveMQ 6.1",
        short: true,
        ..USUAL
    },
    Subject {
        name: "elasticmq",
        title: "ElasticMQ 1.6, no door",
        packages: &["org.elasticmq.*", "org.apache.pekko.*"],
        ..USUAL
    },
    Subject {
        name: "elasticmq",
        title: "ElasticMQ 1.6, a door",
        packages: &["org.elasticmq.*", "org.apache.pekko.*"],
        account: "door = [\"org.elasticmq.rest.sqs.SendMessageDirectives#doSendMessage\"]\nrefuse-with = \"exception\"\n",
        ..USUAL
    },
    Subject {
        name: "flowable",
        title: "Flowable 7.1 with H2",
        ports: 0,
        embedded: true,
        short: true,
        ..USUAL
    },
    Subject {
        name: "fuseki",
        title: "Jena Fuseki 5.2",
        limit_mib: 160,
        unit_bytes: 20 << 20,
        batch: 1,
        rest: Duration::from_secs(1),
        // A probe is a load of its own: while clients go on loading, probes use the reserve up.
        most: BEYOND_WITHOUT,
        heap: "1536m",
        ..USUAL
    },
    Subject {
        name: "connect",
        title: "Kafka Connect 3.9, two sinks",
        packages: &["heavy"],
        account: "door = [\"heavy.HeavyTask#put\"]\nrefuse-with = \"exception\"\n",
        ports: 3,
        embedded: true,
        ..USUAL
    },
];

/// The policy that is shipped for the server, with this limit and in force; if there is none, a limit and what the
/// subject says. The account is called `loaded`.
pub(super) fn policy(subject: &Subject) -> String {
    let shipped = artifacts::repository()
        .join("examples/policies/servers")
        .join(format!("{}.toml", subject.name));
    let Ok(mut text) = fs::read_to_string(&shipped) else {
        return format!(
            "[enforcement]\nmode = \"enforce\"\n\n[[account]]\nname = \"loaded\"\npackages = {:?}\nlimit = \"{}MiB\"\n{}",
            subject.packages, subject.limit_mib, subject.account
        );
    };
    for (shipped, here) in subject.renamed {
        text = text.replace(shipped, here);
    }
    let replaced = |line: &str| match line.split_once(" = ").map(|(key, _)| key) {
        Some("mode") => "mode = \"enforce\"".to_owned(),
        Some("name") => "name = \"loaded\"".to_owned(),
        Some("limit") => format!("limit = \"{}MiB\"", subject.limit_mib),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(replaced).collect();
    lines.join("\n") + "\n"
}
