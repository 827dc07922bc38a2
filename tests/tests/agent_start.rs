//! The agent starts in a JVM, or says in one line why it cannot; the application runs in any case.

use heapwarden_harness::{http, proc_files};
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::{
    Collector, JAR, JAVAC, Jdk, Vm, every_jdk, every_jdk_for, every_jdk_with, on_each,
};
use heapwarden_tests::jvm::{Builder, victim};
use heapwarden_tests::{artifacts, native};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// The lines that the agent prints to standard error begin so.
const PREFIX: &str = "heapwarden";

fn g1() -> Vec<Vm> {
    every_jdk_with(Collector::G1)
}

fn agent_lines(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .filter(|line| line.to_lowercase().contains(PREFIX))
        .collect()
}

/// Runs the plain application and asserts its normal output, exit code 0 and nothing on standard
/// error but the agent's lines, which are returned.
fn run_unharmed(builder: &Builder) -> Vec<String> {
    let finished = builder.run(LIMIT);
    assert!(finished.status.success(), "{finished:?}");
    assert_eq!(
        finished.stdout.trim(),
        "plain application done: 188890",
        "the application's own output\n{}",
        finished.stderr
    );
    let strange: Vec<&str> = finished
        .stderr
        .lines()
        .filter(|line| !line.to_lowercase().contains(PREFIX))
        .filter(|line| !line.starts_with("Picked up ") && !line.starts_with("capability holder"))
        .collect();
    assert!(strange.is_empty(), "{strange:#?}");
    agent_lines(&finished.stderr)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Asserts that there is exactly one line of trouble, and that it mentions `what`.
fn assert_one_line(lines: &[String], what: &str) {
    let trouble: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains(" ERROR ") || line.contains(" WARN "))
        .collect();
    assert!(
        trouble.len() == 1 && trouble[0].contains(what),
        "one line of trouble, about {what}: {lines:#?}"
    );
}

#[test]
fn without_trouble_the_application_runs_and_the_agent_says_little() {
    on_each(&g1(), |vm| {
        let lines = run_unharmed(&victim(vm, "victim.Plain").policy(""));
        assert!(lines.len() <= 3, "{lines:#?}");
    });
}

#[test]
fn a_missing_policy_file_is_one_clear_line() {
    on_each(&g1(), |vm| {
        let builder = victim(vm, "victim.Plain").option("config=/nonexistent/heapwarden.toml");
        assert_one_line(&run_unharmed(&builder), "/nonexistent/heapwarden.toml");
    });
}

#[test]
fn a_bad_policy_file_is_one_clear_line_and_the_agent_observes() {
    on_each(&g1(), |vm| {
        let bad = "[[account]]\nservice = \"a\"\nlimt = \"1MiB\"\n";
        let lines = run_unharmed(&victim(vm, "victim.Plain").policy(bad));
        assert_one_line(&lines, "limt");
        assert!(
            lines.iter().any(|line| line.contains("heapwarden.toml:3")),
            "file and line: {lines:#?}"
        );
        let jvm = victim(vm, "victim.Holder").policy(bad).start();
        assert_eq!(jvm.accounts().0["policy"]["mode"], "observe");
        let good = jvm
            .metrics()
            .value("heapwarden_policy_last_reload_successful", &[]);
        assert_eq!(good, Some(0.0));
        jvm.finish();
    });
}

#[test]
fn an_unknown_option_is_one_clear_line() {
    on_each(&g1(), |vm| {
        let lines = run_unharmed(&victim(vm, "victim.Plain").option("confg=/tmp/x.toml"));
        assert_one_line(&lines, "confg");
    });
}

/// As where both come from the environment, which a tool that is started beside the server has too.
#[test]
fn another_jvm_with_the_same_options_leaves_the_run_file_alone() {
    on_each(&g1(), |vm| {
        let mut first = victim(vm, "victim.Holder").start();
        let address = first.address();
        let second = victim(vm, "victim.Plain")
            .option(&format!("listen={address}"))
            .option(&format!("run-file={}", first.run_file().display()));
        run_unharmed(&second);
        assert_eq!(first.address(), address, "the first one's, still");
        first.ask("gc");
        first.finish();
    });
}

#[test]
fn a_busy_port_is_said_once_and_retried_until_it_is_free_if_the_listener_is_strict() {
    on_each(&g1(), |vm| {
        let busy = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = busy.local_addr().expect("bound");
        let option = format!("listen={address},listen-strict=true");
        let lines = run_unharmed(&victim(vm, "victim.Plain").option(&option));
        assert_one_line(&lines, &address.to_string());

        let mut jvm = victim(vm, "victim.Holder").option(&option).start();
        jvm.ask("hold - bytes:1000*10");
        assert!(!jvm.run_file().exists(), "a run-file before the listener");
        drop(busy);
        let answer = command::poll(LIMIT, || http::get(address, "/-/healthy").ok());
        assert_eq!(answer.expect("bound once free").status, 200);
        assert_eq!(jvm.address(), address);
        jvm.until_logged("in use");
        let about = agent_lines(&jvm.log())
            .iter()
            .filter(|line| line.contains("in use") || line.contains("busy"))
            .count();
        assert_eq!(about, 1, "said once:\n{}", jvm.log());
        jvm.finish();
    });
}

#[test]
fn a_second_load_is_one_clear_line() {
    on_each(&g1(), |vm| {
        let again = format!("-agentpath:{}=listen=off", artifacts::library().display());
        let lines = run_unharmed(&victim(vm, "victim.Plain").flag(&again));
        assert_one_line(&lines, "already");
    });
}

#[test]
fn a_capability_held_by_another_agent_is_named_and_shown() {
    let library = native::capability_holder();
    on_each(&g1(), |vm| {
        let holder = format!("-agentpath:{}", library.display());
        let lines = run_unharmed(&victim(vm, "victim.Plain").flag(&holder));
        assert_one_line(&lines, "another agent holds the JVM's allocation sampling");

        let mut jvm = victim(vm, "victim.Holder").flag(&holder).start();
        jvm.until_logged("capability holder: taken");
        jvm.ask("hold - bytes:1000*1000");
        let metrics = jvm.metrics();
        let enabled: Vec<f64> = metrics
            .series("heapwarden_capability_enabled")
            .filter(|(labels, _)| labels["capability"].contains("sampl"))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(enabled, [0.0], "the metric says that sampling is off");
        assert_eq!(metrics.sum("heapwarden_samples_total"), 0.0);
        jvm.finish();
    });
}

/// Before JDK 25 the agent sets a flag of the JVM, if nobody has an opinion.
#[test]
fn buffers_are_refilled_unless_somebody_says_otherwise() {
    const FLAG: &str = "TLABRefillWasteFraction";
    let of = |vm: &Vm, given: Option<u32>, option: &str| {
        let mut builder = victim(vm, "victim.Holder").option(option);
        if let Some(value) = given {
            builder = builder.flag(&format!("-XX:{FLAG}={value}"));
        }
        let mut jvm = builder.start();
        let value = jvm.ask(&format!("flag {FLAG}")).remove(0);
        let is_right = jvm.metrics().value(
            "heapwarden_capability_enabled",
            &[("capability", "tlab_refill")],
        );
        jvm.finish();
        (value, is_right)
    };
    let told = |value: u32, is_right: f64| (format!("flag {value}"), Some(is_right));
    on_each(&g1(), |vm| {
        if vm.jdk.feature >= 25 {
            assert_eq!(of(vm, None, "tlab-refill=auto"), told(64, 1.0), "{vm}");
            return;
        }
        assert_eq!(of(vm, None, "tlab-refill=auto"), told(1, 1.0), "{vm}");
        assert_eq!(of(vm, None, "tlab-refill=keep"), told(64, 0.0), "{vm}");
        assert_eq!(of(vm, Some(64), "tlab-refill=auto"), told(64, 0.0), "{vm}");
        assert_eq!(of(vm, Some(32), "tlab-refill=auto"), told(32, 0.0), "{vm}");
        assert_eq!(of(vm, Some(1), "tlab-refill=keep"), told(1, 1.0), "{vm}");
    });
}

/// Arrays half as large as buffers waste much of them.
#[test]
fn a_program_that_would_waste_its_buffers_has_its_flag_back() {
    const FLAG: &str = "TLABRefillWasteFraction";
    let is_biased = |vm: &Vm| vm.jdk.feature < 25;
    on_each(
        &g1().into_iter().filter(is_biased).collect::<Vec<_>>(),
        |vm| {
            let mut jvm = victim(vm, "victim.Holder")
                .heap("256m")
                .flag("-XX:TLABSize=32k")
                .flag("-XX:-ResizeTLAB")
                .start();
            jvm.ask("churn - bytes:1000*20000");
            assert_eq!(
                jvm.ask(&format!("flag {FLAG}")),
                ["flag 1"],
                "small ones waste little"
            );
            let is_back = command::poll(LIMIT, || {
                jvm.ask("churn - bytes:18000*2000");
                (jvm.ask(&format!("flag {FLAG}")) == ["flag 64"]).then_some(())
            });
            assert!(is_back.is_some(), "{vm}: {}", jvm.log());
            jvm.until_logged("TLABRefillWasteFraction is 64 again");
            let labels = [("capability", "tlab_refill")];
            let is_right = jvm
                .metrics()
                .value("heapwarden_capability_enabled", &labels);
            assert_eq!(is_right, Some(0.0), "{vm}");
            jvm.finish();
        },
    );
}

#[test]
fn disabled_means_inert() {
    on_each(&g1(), |vm| {
        let builder = victim(vm, "victim.Plain").option("enabled=false");
        let lines = run_unharmed(&builder);
        assert!(lines.len() <= 1, "{lines:#?}");
        let jvm = victim(vm, "victim.Holder").option("enabled=false").start();
        std::thread::sleep(Duration::from_millis(500));
        assert!(!jvm.run_file().exists(), "no listener");
        let threads = proc_files::threads(jvm.id(), "comm").into_iter();
        let threads = threads
            .filter(|name| name.to_lowercase().contains(PREFIX))
            .count();
        assert_eq!(threads, 0, "no threads of the agent");
        jvm.finish();
    });
}

#[test]
fn the_environment_gives_what_no_option_gives() {
    on_each(&g1(), |vm| {
        let builder = victim(vm, "victim.Holder");
        let policy = builder.folder().join("by-environment.toml");
        std::fs::write(
            &policy,
            "[[account]]\nname = \"seen\"\npackages = [\"a.b\"]\n",
        )
        .expect("writable");
        let jvm = builder.environment("HEAPWARDEN_CONFIG", &policy).start();
        jvm.until(LIMIT, "the account is there", |accounts| {
            accounts.find("seen").is_some()
        });
        jvm.finish();
    });
}

#[test]
fn tools_started_with_the_flag_print_what_they_print_without() {
    const TEST: &str = "tools_started_with_the_flag_print_what_they_print_without";
    for jdk in every_jdk() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let source = folder.path().join("Hello.java");
        std::fs::write(&source, "class Hello {}").expect("writable");
        let no_store = folder.path().join("no-store");
        let path = |path: &Path| path.display().to_string();
        let source = path(&source);
        let no_store = path(&no_store);
        let tools: [(&str, Vec<&str>); 4] = [
            ("keytool", vec!["-list", "-keystore", &no_store]),
            ("jcmd", vec!["-h"]),
            ("javac", vec!["-verbose", "-version", &source]),
            ("jar", vec!["--version"]),
        ];
        for (tool, arguments) in tools {
            let needs = [("javac", JAVAC), ("jar", JAR)];
            if let Some((_, needs)) = needs.iter().find(|(name, _)| *name == tool)
                && !every_jdk_for(&format!("{TEST}: {tool}"), *needs).contains(&jdk)
            {
                continue;
            }
            let run = |options: &str| {
                let mut command = Command::new(jdk.program(tool));
                command.env("JAVA_TOOL_OPTIONS", options).args(&arguments);
                without_times(command::run(&mut command, LIMIT))
            };
            let flag = format!(
                "-agentpath:{}=listen=127.0.0.1:0,run-file={}",
                artifacts::library().display(),
                folder.path().join("run.json").display()
            );
            assert_eq!(run(&flag), run("-Dnothing=1"), "{jdk} {tool}");
        }
    }
}

/// Exit code and output, without the JVM's line about the variable and without times.
fn without_times(finished: Finished) -> (Option<i32>, String, String) {
    let clean = |text: &str| -> String {
        text.lines()
            .filter(|line| !line.starts_with("Picked up "))
            .filter(|line| !line.ends_with("ms]") && !line.ends_with("ms"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    (
        finished.status.code(),
        clean(&finished.stdout),
        clean(&finished.stderr),
    )
}

#[test]
fn the_agent_can_be_attached_while_the_program_runs() {
    on_each(&g1(), |vm| {
        let builder = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .without_agent()
            .policy("[sampling]\ninterval = \"exact\"\n[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n");
        let options = builder.agent_options();
        let mut jvm = builder.start();
        jvm.ask("hold com.acme.orders bytes:1000*100");
        let attached = attach(&vm.jdk, jvm.id(), &options);
        assert!(attached.status.success(), "{attached:?}");
        assert!(
            attached.stdout.contains("return code: 0"),
            "{}",
            attached.stdout
        );
        // A buffer that a thread had before is not sampled: use it up.
        jvm.ask("churn - bytes:10000*3000");
        jvm.ask("hold com.acme.orders bytes:984*500");
        let holding = jvm.settled().holding("orders");
        assert_eq!(
            (holding.live_bytes, holding.live_objects),
            (500_000.0, 500.0),
            "what was allocated after the attachment: {}\n{}",
            jvm.accounts().brief(),
            jvm.log()
        );
        // A second attachment is refused politely.
        let again = attach(&vm.jdk, jvm.id(), &options);
        assert!(again.stdout.contains("return code: 0"), "{}", again.stdout);
        jvm.until_logged("already");
        jvm.finish();
    });
}

fn attach(jdk: &Jdk, id: u32, options: &str) -> Finished {
    // jcmd splits its command at blanks, and quotes protect the commas of the options.
    command::run(
        Command::new(jdk.program("jcmd"))
            .arg(id.to_string())
            .arg("JVMTI.agent_load")
            .arg(artifacts::library())
            .arg(format!("\"{options}\"")),
        LIMIT,
    )
}
