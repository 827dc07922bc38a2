//! `heapwarden status` and `heapwarden top` on two real JVMs; `top` in a real terminal (tmux).

use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::{artifacts, command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(60);

const POLICY: &str = r#"
[sampling]
interval = "8KiB"

[[account]]
name = "orders"
packages = ["com.acme.orders"]
limit = "64MiB"

[[account]]
name = "billing"
packages = ["com.acme.billing"]
"#;

/// A JVM in which one account holds 10 MB and more, the other nothing yet.
fn jvm(package: &str, listen: &str) -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.Holder")
        .argument("com.acme.orders")
        .argument("com.acme.billing")
        .policy(POLICY)
        .option(&format!("listen={listen}"))
        .start();
    jvm.ask(&format!("hold {package} bytes:100000*100"));
    jvm.settled();
    jvm
}

fn two() -> (Jvm, Jvm) {
    (
        jvm("com.acme.orders", "127.0.0.1:0"),
        jvm("com.acme.billing", "127.0.0.1:0"),
    )
}

fn heapwarden(arguments: &[&str]) -> command::Finished {
    command::run(Command::new(artifacts::command()).args(arguments), LIMIT)
}

/// The words of the first line that begins with `name`.
fn line_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect());
    lines
        .find(|words: &Vec<&str>| words.first() == Some(&name))
        .unwrap_or_else(|| panic!("no line of {name}:\n{text}"))
}

#[test]
fn status_once_as_text_and_as_json() {
    let (one, other) = two();
    let run_file = one.run_file().display().to_string();
    let address = other.address().to_string();
    let finished = heapwarden(&["status", &run_file, &address]);
    assert!(finished.status.success(), "{finished:?}");
    let text = &finished.stdout;
    assert!(text.contains(&format!("{address}: heap ")), "{text}");
    let words = line_of(text, "orders");
    // orders package 9.6 ± 0.3 MiB 9.6 MiB 64 MiB 15% open 0 0 0 100
    let live_mib: f64 = words[2].parse().expect("a number");
    assert!((8.5..10.6).contains(&live_mib), "10 MB is 9.5 MiB: {text}");
    assert_eq!((words[1], words[5]), ("package", "MiB"), "{text}");
    assert_eq!(&words[8..10], ["64", "MiB"], "{text}");
    assert_eq!(words[11], "open", "{text}");

    let finished = heapwarden(&["status", "--json", &run_file, "127.0.0.1:1"]);
    assert_eq!(finished.status.code(), Some(1), "one cannot be read");
    let json: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(json[0]["reachable"], true);
    assert_eq!(json[1]["reachable"], false);
    let reason = json[1]["error"].as_str().expect("a reason");
    assert!(reason.contains("nothing listens"), "{reason}");
    let accounts = json[0]["answer"]["accounts"].as_array().expect("a list");
    let orders = accounts.iter().find(|one| one["name"] == "orders");
    let orders = orders.expect("listed");
    assert_eq!(orders["limit_bytes"], 64 << 20);
    assert!(
        orders["classes"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    one.finish();
    other.finish();
}

#[test]
fn status_by_class_has_sums_ages_and_sizes() {
    let mut one = jvm("com.acme.orders", "127.0.0.1:0");
    let address = one.address().to_string();
    let arguments = [
        "status",
        "--classes",
        "--ages",
        "--account",
        "orders",
        &address,
    ];
    // Ages are read after a collection of all memory, a moment later.
    let found = command::poll(LIMIT, || {
        one.ask("gc");
        let finished = heapwarden(&arguments);
        assert!(finished.status.success(), "{finished:?}");
        let text = finished.stdout;
        text.contains("live bytes by size").then_some(text)
    });
    let text = found.unwrap_or_else(|| panic!("no ages\n{}", one.log()));
    // byte[] - 100 0 100 97.7 KiB 9.5 ± 0.1 MiB 0 B 9.5 MiB 1
    let words = line_of(&text, "byte[]");
    assert_eq!(words[1], "-", "all samples are kept: {text}");
    let live: f64 = words[2].parse().expect("a number");
    assert!((90.0..110.0).contains(&live), "{text}");
    let (freed, total): (f64, f64) = (words[3].parse().unwrap(), words[4].parse().unwrap());
    assert!((total - freed - live).abs() <= 1.0, "{text}");
    let each: f64 = words[5].parse().expect("a number");
    assert!((96.0..100.0).contains(&each) && words[6] == "KiB", "{text}");
    let sum = line_of(&text, "sum");
    let of_all: f64 = sum[2].parse().expect("a number");
    assert!(of_all >= live, "{text}");
    let sizes = text
        .split("live bytes by size")
        .nth(1)
        .expect("it is there");
    assert!(
        sizes
            .lines()
            .nth(1)
            .is_some_and(|head| head.contains("128 KiB")),
        "{text}"
    );
    let ages = text.split("live bytes by age").nth(1).expect("it is there");
    let (_, row) = ages.split_once("byte[]").expect("a row");
    let row = row.lines().next().unwrap_or_default();
    assert!(row.contains("MiB"), "{text}");

    let finished = heapwarden(&["leaks", &address]);
    assert_eq!(
        finished.status.code(),
        Some(0),
        "what stands still is no leak: {finished:?}"
    );
    assert!(
        finished.stdout.contains("no verdict yet") || finished.stdout.contains("no suspects"),
        "{finished:?}"
    );
    one.finish();
}

/// Other JVMs of the machine may be listed as well.
#[test]
fn status_without_an_address_lists_the_jvms_of_this_machine() {
    let (one, other) = two();
    let text = heapwarden(&["status"]).stdout;
    let mut lines = text.lines();
    let head: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(&head[..4], ["PID", "JVM", "JDK", "ADDRESS"], "{text}");
    for jvm in [&one, &other] {
        let (id, address) = (jvm.id().to_string(), jvm.address().to_string());
        let row = line_of(&text, &id);
        assert_eq!(row[1], "victim.Holder", "{text}");
        assert!(
            row[2].starts_with(|first: char| first.is_ascii_digit()),
            "{text}"
        );
        assert_eq!(row[3], address, "{text}");
        // And its accounts, with the process again.
        assert!(text.contains(&format!("{address}: heap ")), "{text}");
        assert!(
            text.contains(&format!("PID {id}, victim.Holder, OpenJDK ")),
            "{text}"
        );
    }
    let json = heapwarden(&["status", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let all = json.as_array().expect("a list");
    for jvm in [&one, &other] {
        let entry = all.iter().find(|entry| entry["pid"] == jvm.id());
        let entry = entry.unwrap_or_else(|| panic!("{} is not listed: {json}", jvm.id()));
        assert_eq!(entry["address"], jvm.address().to_string());
        let process = &entry["answer"]["jvm"];
        assert_eq!(process["pid"], jvm.id());
        assert_eq!(process["name"], "victim.Holder", "without its arguments");
        assert_eq!(process["loaded_at_start"], true);
        assert!(
            process["vm"].as_str().is_some_and(|vm| vm.contains("VM")),
            "{process}"
        );
    }
    one.finish();
    other.finish();
}

#[test]
fn top_in_a_pipe_writes_a_table_for_each_interval() {
    let (one, other) = two();
    let addresses = [one.address().to_string(), other.address().to_string()];
    let finished = heapwarden(&[
        "top",
        "--iterations",
        "2",
        "--interval",
        "0.5",
        &addresses[0],
        &addresses[1],
    ]);
    assert!(finished.status.success(), "{finished:?}");
    let text = &finished.stdout;
    let heads = text
        .lines()
        .filter(|line| line.trim_start().starts_with("JVM "));
    assert_eq!(heads.count(), 2, "{text}");
    assert!(!text.contains('\u{1b}'), "no control sequence: {text}");
    let (first, second) = text.split_once("\n\n").expect("two tables");
    for address in &addresses {
        assert_eq!(
            text.matches(&format!("{address}: heap ")).count(),
            2,
            "{text}"
        );
    }
    // The rate is that of two readings.
    let orders = |table: &str| {
        let mut rows = table.lines().filter(|line| line.contains(&addresses[0]));
        let found = rows.rfind(|line| line.contains(" orders "));
        found
            .expect("a row")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let state = |words: &[String]| words.iter().position(|word| word == "open").expect("open");
    let (before, after) = (orders(first), orders(second));
    assert_eq!(before[state(&before) + 1], "-", "{text}");
    assert_ne!(after[state(&after) + 1], "-", "{text}");
    one.finish();
    other.finish();
}

/// A terminal with `top` in it; its tmux server ends with the handle.
struct Terminal {
    folder: TempDir,
}

impl Terminal {
    fn start(addresses: &[String]) -> Terminal {
        let terminal = Terminal {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        // The settings in which `top` leaves the terminal are printed behind it.
        let script = "sh -c 'echo $$ > \"$0\"; exec \"$@\"' \"$@\"; echo \"ended with $?\"; \
                      stty -a | tr ' ;' '\\n\\n' | grep -x -e '-*icanon' -e '-*echo' | tr '\\n' ' '; \
                      exec cat";
        let mut command = terminal.tmux(&["-u", "new-session", "-d", "-x", "150", "-y", "24"]);
        command
            .env("LC_ALL", "C.UTF-8")
            .args(["sh", "-c", script, "sh"])
            .arg(terminal.pid_file())
            .arg(artifacts::command())
            .args(["top", "--interval", "0.5"])
            .args(addresses);
        let finished = command::run(&mut command, LIMIT);
        assert!(finished.status.success(), "tmux: {finished:?}");
        terminal
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-f", "/dev/null", "-S"])
            .arg(self.folder.path().join("socket"))
            .args(arguments)
            .env_remove("TMUX")
            .env_remove("NO_COLOR");
        command
    }

    fn press(&self, keys: &[&str]) {
        let mut command = self.tmux(&["send-keys"]);
        let finished = command::run(command.args(keys), LIMIT);
        assert!(finished.status.success(), "{keys:?}: {finished:?}");
    }

    fn screen(&self) -> String {
        command::run(&mut self.tmux(&["capture-pane", "-p"]), LIMIT).stdout
    }

    /// Waits until the screen is as `holds` wants it, and returns it.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let found = command::poll(LIMIT, || Some(self.screen()).filter(|text| holds(text)));
        found.unwrap_or_else(|| panic!("never: {what}\n{}", self.screen()))
    }

    fn process(&self) -> Pid {
        let text = std::fs::read_to_string(self.pid_file()).expect("top was started");
        let id = text.trim().parse().expect("a process id");
        Pid::from_raw(id).expect("a process id")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
    }
}

/// Whether a row of that account is on the screen.
fn has_row(screen: &str, account: &str) -> bool {
    screen
        .lines()
        .any(|line| line.split_whitespace().any(|word| word == account))
}

#[test]
fn top_in_a_terminal_filters_sorts_opens_and_quits() {
    let (one, other) = two();
    let addresses = [one.address().to_string(), other.address().to_string()];
    let terminal = Terminal::start(&addresses);
    let screen = terminal.until("both JVMs are read", |text| {
        text.matches(" of 256 MiB").count() == 2 && has_row(text, "orders")
    });
    assert!(screen.starts_with("heapwarden top  2 JVMs"), "{screen}");
    for jvm in [&one, &other] {
        let process = format!("PID {} Holder, JDK ", jvm.id());
        assert!(screen.contains(&process), "{process}: {screen}");
    }
    assert!(screen.contains("LIVE ± ERROR▼"), "{screen}");

    terminal.press(&["/"]);
    terminal.press(&["-l", "ORD"]);
    terminal.until("only what contains the filter", |text| {
        text.contains("filter: ORD_") && has_row(text, "orders") && !has_row(text, "billing")
    });
    terminal.press(&["Enter"]);
    terminal.press(&[">"]);
    terminal.until("sorted by the next column", |text| {
        text.contains("CHARGED▼") && text.contains("sorted by charged")
    });
    terminal.press(&["<"]);
    terminal.until("sorted by live bytes again", |text| {
        text.contains("LIVE ± ERROR▼")
    });

    terminal.press(&["Enter"]);
    let screen = terminal.until("the account is open", |text| text.contains("> CLASS"));
    assert!(screen.contains("orders (package) in "), "{screen}");
    assert!(
        has_row(&screen, "byte[]") && screen.contains("PRINCIPAL"),
        "{screen}"
    );
    terminal.press(&["Escape"]);
    terminal.until("the list again", |text| text.contains("filter: ORD "));
    terminal.press(&["Escape"]);
    terminal.until("all accounts again", |text| has_row(text, "billing"));
    terminal.press(&["?"]);
    terminal.until("the keys are told", |text| {
        text.contains("any key closes it")
    });
    terminal.press(&["Escape"]);

    terminal.press(&["q"]);
    let screen = terminal.until("top has ended", |text| text.contains("ended with"));
    assert!(screen.contains("ended with 0"), "{screen}");
    terminal.until("the terminal is as it was", |text| {
        text.contains("icanon echo")
    });
    one.finish();
    other.finish();
}

#[test]
fn a_jvm_that_dies_is_told_and_comes_back() {
    let one = jvm("com.acme.orders", "127.0.0.1:0");
    let other = jvm("com.acme.billing", "127.0.0.1:0");
    let address = other.address().to_string();
    let terminal = Terminal::start(&[one.address().to_string(), address.clone()]);
    terminal.until("both are read", |text| {
        text.matches(" of 256 MiB").count() == 2
    });
    other.finish();
    terminal.until("one is down", |text| {
        text.contains("1 of 2 JVMs down") && text.contains("DOWN for") && has_row(text, "stale")
    });
    let other = jvm("com.acme.billing", &address);
    assert_eq!(other.address().to_string(), address);
    terminal.until("it is back", |text| {
        text.starts_with("heapwarden top  2 JVMs") && !has_row(text, "stale")
    });
    // A signal ends it, and the terminal is given back.
    kill_process(terminal.process(), Signal::TERM).expect("it runs");
    terminal.until("it has ended by the signal", |text| {
        text.contains("ended with 143")
    });
    terminal.until("the terminal is as it was", |text| {
        text.contains("icanon echo")
    });
    one.finish();
    other.finish();
}
