//! Snapshots and their differences, against programs that know the truth; and the folder of snapshots,
//! whatever happens to it and to the JVM.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::truth::Truth;
use heapwarden_tests::{artifacts, command, java, stats};
use serde_json::Value;

const SAMPLING: &str = "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n";
const ACCOUNTS: &str = "[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n\n\
    [[account]]\nname = \"billing\"\npackages = [\"com.acme.billing\"]\n\n";

fn holder(vm: &Vm, more: &str) -> Builder {
    victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .argument("com.acme.billing")
        .policy(&format!("{SAMPLING}\n{ACCOUNTS}{more}"))
}

fn vms() -> Vec<Vm> {
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(every_jdk_with(Collector::Z));
    vms
}

fn run(arguments: &[&str]) -> command::Finished {
    command::run(Command::new(artifacts::command()).args(arguments), PATIENCE)
}

/// Takes a snapshot by the command, once the accounts have come to rest.
fn snapshot(jvm: &mut Jvm, name: &str) -> PathBuf {
    jvm.settled();
    let file = jvm.folder().join(name);
    let path = file.to_str().expect("a temporary path is text");
    let finished = run(&["snapshot", &jvm.address().to_string(), "-o", path]);
    assert!(finished.status.success(), "{finished:?}");
    file
}

fn diff(old: &Path, new: &Path) -> Value {
    let text = |path: &Path| path.to_str().expect("a temporary path is text").to_owned();
    let finished = run(&["diff", &text(old), &text(new), "--json"]);
    assert!(finished.status.success(), "{finished:?}");
    serde_json::from_str(&finished.stdout).expect("it is JSON")
}

fn number(of: &Value, key: &str) -> f64 {
    let value = &of[key];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is no number in {of}"))
}

fn account<'a>(found: &'a Value, name: &str) -> &'a Value {
    let accounts = found["accounts"].as_array().expect("a list");
    let named = accounts.iter().find(|one| one["account"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {found}"))
}

fn class<'a>(account: &'a Value, name: &str) -> &'a Value {
    let classes = account["classes"].as_array().expect("a list");
    let named = classes.iter().find(|one| one["class"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {account}"))
}

/// That the classes add up to the account, in every column of bytes.
fn assert_sums(account: &Value) {
    for key in [
        "change_bytes",
        "came_bytes",
        "went_bytes",
        "old_bytes",
        "new_bytes",
    ] {
        let classes = account["classes"].as_array().expect("a list").iter();
        let sum: f64 = classes.map(|one| number(one, key)).sum();
        assert_eq!(sum, number(account, key), "{key}: {account}");
    }
}

#[test]
fn what_stays_cancels_and_what_grew_is_within_the_error_of_the_difference() {
    let scores = Mutex::new(Vec::new());
    on_each(&vms(), |vm| {
        let mut jvm = holder(vm, "").heap("512m").start();
        jvm.ask("hold com.acme.orders bytes:1000*60000 longs:100*20000");
        jvm.ask("hold com.acme.billing bytes:500*60000");
        let first = snapshot(&mut jvm, "1.json.gz");
        let second = snapshot(&mut jvm, "2.json");

        let found = diff(&first, &second);
        assert_eq!(
            (&found["same_run"], &found["cancels"]),
            (&true.into(), &true.into()),
            "{vm}"
        );
        for name in ["orders", "billing"] {
            let account = account(&found, name);
            for key in [
                "change_bytes",
                "standard_error_bytes",
                "came_bytes",
                "went_bytes",
                "change_objects",
            ] {
                assert_eq!(number(account, key), 0.0, "{vm}: {key} of {account}");
            }
            assert!(number(account, "new_bytes") > 25e6, "{vm}: {account}");
        }

        let ints = Truth::of(&jvm.ask("hold com.acme.orders ints:250*3000"));
        let doubles = Truth::of(&jvm.ask("hold com.acme.billing doubles:100*5000"));
        let third = snapshot(&mut jvm, "3.json.gz");
        let found = diff(&second, &third);
        for (name, kind, truth) in [
            ("orders", "int[]", &ints),
            ("billing", "double[]", &doubles),
        ] {
            let account = account(&found, name);
            assert_sums(account);
            let grown = class(account, kind);
            assert_eq!(grown["significant"], true, "{vm}: {grown}");
            assert_eq!(number(grown, "went_bytes"), 0.0, "{vm}: {grown}");
            let error = number(grown, "standard_error_bytes");
            let z = (number(grown, "change_bytes") - truth.bytes as f64) / error;
            // The error is that of the change alone: as the truth says, within what chance does to it.
            let expected = truth.variance(16384.0).sqrt();
            assert!(
                (0.7..1.4).contains(&(error / expected)),
                "{vm}: {error} of {expected}"
            );
            scores
                .lock()
                .expect("never held over a panic")
                .push((format!("{vm} {kind}"), z));
            // Nothing else came: whatever the JDK did in the account's name is smaller by far.
            let rest = number(account, "change_bytes") - number(grown, "change_bytes");
            assert!(rest.abs() < 200_000.0, "{vm}: {account}");
            let births = account["births"].as_array().expect("a list");
            let came = births.iter().find(|one| number(one, "came_bytes") > 0.0);
            let newest = births.last().expect("there is one");
            assert_eq!(came, Some(newest), "{vm}: {account}");
        }

        let held = number(account(&found, "orders"), "new_bytes");
        jvm.ask("drop");
        let fourth = snapshot(&mut jvm, "4.json.gz");
        let found = diff(&third, &fourth);
        let gone = account(&found, "orders");
        assert_sums(gone);
        assert!(
            number(gone, "went_bytes") > held - 200_000.0,
            "{vm}: {gone}"
        );

        let printed = run(&[
            "diff",
            first.to_str().unwrap(),
            third.to_str().unwrap(),
            "--ages",
        ]);
        assert!(
            printed.stdout.contains("int[]") && printed.stdout.contains("BORN BEFORE"),
            "{printed:?}"
        );
        assert!(
            printed
                .stdout
                .lines()
                .any(|line| line.starts_with("* billing")),
            "{printed:?}"
        );
        let live = run(&[
            "diff",
            third.to_str().unwrap(),
            &jvm.address().to_string(),
            "--csv",
        ]);
        assert!(
            live.status.success() && live.stdout.starts_with("account,class,"),
            "{live:?}"
        );
        jvm.finish();
    });
    stats::judge_family(&scores.into_inner().expect("never held over a panic"));
}

#[test]
fn a_redeployed_service_is_one_account_and_what_it_left_went() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = victim(vm, "victim.ServiceHost")
            .argument(java::classes().tenant())
            .policy("[sampling]\ninterval = \"exact\"\n")
            .start();
        jvm.ask("deploy svc-a");
        jvm.ask("call svc-a own 1000 100");
        let old = snapshot(&mut jvm, "old.json.gz");
        jvm.ask("undeploy svc-a");
        jvm.ask("release svc-a");
        jvm.ask("deploy svc-a");
        jvm.ask("call svc-a own 1000 300");
        let new = snapshot(&mut jvm, "new.json.gz");
        let found = diff(&old, &new);
        let service = account(&found, "svc-a");
        assert_sums(service);
        let arrays = class(service, "byte[]");
        assert_eq!(number(arrays, "went_bytes"), 101_600.0, "{vm}: {service}");
        assert_eq!(number(arrays, "came_bytes"), 304_800.0, "{vm}: {service}");
        assert_eq!(number(arrays, "change_objects"), 200.0, "{vm}: {service}");
        assert_eq!(
            number(arrays, "standard_error_bytes"),
            0.0,
            "every allocation is sampled"
        );
        jvm.finish();
    });
}

/// The finished files in a folder, oldest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".json.gz") && !is_hidden(path))
        .collect();
    files.sort_by_key(|path| path.to_string_lossy().rsplit('-').next().map(str::to_owned));
    files
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.')
}

fn snapshots(folder: &Path, every: &str, keep: u32, at_exit: bool) -> String {
    format!(
        "[snapshots]\ndirectory = \"{}\"\nevery = \"{every}\"\nkeep = {keep}\nat-exit = {at_exit}\n",
        folder.display()
    )
}

/// Every file is a whole snapshot: it can be subtracted from itself.
fn assert_whole(files: &[PathBuf]) {
    for file in files {
        let found = diff(file, file);
        assert_eq!(
            number(&found["total"], "change_bytes"),
            0.0,
            "{}",
            file.display()
        );
    }
}

#[test]
fn files_are_written_so_many_are_kept_and_the_last_is_of_the_end() {
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(one_jdk_with(Collector::Z, 2));
    on_each(&vms, |vm| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        fs::write(folder.path().join("notes.txt"), "of somebody else").unwrap();
        let mut jvm = holder(vm, &snapshots(folder.path(), "1s", 2, true)).start();
        jvm.ask("hold com.acme.orders bytes:1000*5000");
        let first = poll(PATIENCE, || files(folder.path()).first().cloned());
        let first = first.unwrap_or_else(|| panic!("{vm}: no file: {}", jvm.log()));
        let mode = fs::metadata(&first).map_or(0o600, |about| about.permissions().mode());
        assert_eq!(mode & 0o777, 0o600, "{vm}");
        let replaced = poll(PATIENCE, || (!first.exists()).then_some(()));
        assert!(
            replaced.is_some(),
            "{vm}: the oldest stays: {:?}",
            files(folder.path())
        );
        assert!(files(folder.path()).len() <= 3, "{vm}");
        let labels = [("outcome", "written")];
        let written = || jvm.metrics().value("heapwarden_snapshots_total", &labels);
        let counted = poll(PATIENCE, || (written() >= Some(3.0)).then_some(()));
        assert!(counted.is_some(), "{vm}: {:?}", written());
        jvm.settled();
        jvm.finish();
        let left = files(folder.path());
        assert_eq!(left.len(), 2, "{vm}: {left:?}");
        assert_whole(&left);
        let found = diff(&left[0], &left[1]);
        assert_eq!(found["same_run"], true, "{vm}: {found}");
        assert_eq!(found["new"]["why"], "exit", "{vm}: {found}");
        assert!(
            number(account(&found, "orders"), "new_bytes") > 4e6,
            "{vm}: {found}"
        );
        let all = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(
            all, 3,
            "{vm}: no lock is left, and what is not ours is there"
        );
    });
}

#[test]
fn a_jvm_that_is_killed_leaves_whole_files_and_the_next_run_removes_what_is_too_much() {
    on_each(&one_jdk_with(Collector::G1, 3), |vm| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let policy = snapshots(folder.path(), "1s", 3, true);
        for _ in 0..3 {
            let mut jvm = holder(vm, &policy).start();
            jvm.ask("hold com.acme.orders object*20000 bytes:100*20000");
            let before = files(folder.path()).len();
            let written = poll(PATIENCE, || {
                (files(folder.path()).len() > before.min(5)).then_some(())
            });
            assert!(written.is_some(), "{vm}: {}", jvm.log());
            // By its id, in whatever it does just now.
            let killed = Command::new("kill")
                .args(["-9", &jvm.id().to_string()])
                .status();
            assert!(killed.expect("there is a kill").success());
            drop(jvm);
        }
        assert_whole(&files(folder.path()));
        let mut jvm = holder(vm, &snapshots(folder.path(), "1s", 1, false)).start();
        // One of its own, and one of all that have ended.
        let pruned = poll(PATIENCE, || {
            let left = files(folder.path());
            (left.len() == 2).then_some(left)
        });
        assert!(
            pruned.is_some(),
            "{vm}: {:?}\n{}",
            files(folder.path()),
            jvm.log()
        );
        jvm.ask("gc");
        jvm.finish();
    });
}

#[test]
fn a_folder_that_is_missing_or_no_folder_loses_the_snapshot_and_nothing_else() {
    on_each(&one_jdk_with(Collector::G1, 4), |vm| {
        let parent = tempfile::tempdir().expect("a temporary folder can be made");
        let folder = parent.path().join("snapshots");
        let mut jvm = holder(vm, &snapshots(&folder, "1s", 3, true)).start();
        let lost = |jvm: &Jvm| {
            jvm.metrics()
                .value("heapwarden_snapshots_total", &[("outcome", "lost")])
        };
        let twice = poll(PATIENCE, || (lost(&jvm) >= Some(2.0)).then_some(()));
        assert!(twice.is_some(), "{vm}: {}", jvm.log());
        jvm.ask("hold com.acme.orders bytes:1000*1000");
        jvm.until_logged("a snapshot cannot be written to");
        // A file where the folder should be.
        fs::write(&folder, "").unwrap();
        let before = lost(&jvm);
        assert!(poll(PATIENCE, || (lost(&jvm) > before).then_some(())).is_some());
        let lines = jvm.log().matches("a snapshot cannot be written to").count();
        assert_eq!(lines, 1, "{vm}: it is told once: {}", jvm.log());
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        jvm.until_logged("are written to");
        assert_whole(&files(&folder));
        // The policy no longer wants any.
        let path = jvm.folder().join("heapwarden.toml");
        fs::write(&path, format!("{SAMPLING}\n{ACCOUNTS}")).unwrap();
        jvm.until_logged("snapshots removed");
        let locks = poll(PATIENCE, || {
            let entries = fs::read_dir(&folder).unwrap().flatten();
            let hidden = entries.filter(|entry| is_hidden(&entry.path())).count();
            (hidden == 0).then_some(())
        });
        assert!(locks.is_some(), "{vm}: the folder is given up");
        let count = files(&folder).len();
        jvm.finish();
        assert_eq!(files(&folder).len(), count, "{vm}: no last one");
    });
}

/// A disk that is full: a file system of four pages in a mount namespace of the JVM's own.
#[test]
fn a_full_disk_loses_the_snapshot_and_nothing_else() {
    const IN_A_SMALL_FOLDER: &str = "mount -t tmpfs -o size=16k small \"$0\" && \
        { head -c 16384 /dev/zero > \"$0/filler\" || true; } && \
        { \"$@\"; code=$?; ls -A \"$0\"; exit $code; }";
    let can = Command::new("unshare").args(["-rm", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "note: this user may not make a mount namespace (unshare -rm): no full disk is tested"
        );
        return;
    }
    on_each(&one_jdk_with(Collector::G1, 5), |vm| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let builder = holder(vm, &snapshots(folder.path(), "1s", 3, true));
        let java = builder.command();
        let mut wrapped = Command::new("unshare");
        wrapped
            .args(["-rm", "sh", "-c", IN_A_SMALL_FOLDER])
            .arg(folder.path())
            .arg(java.get_program())
            .args(java.get_args())
            .current_dir(builder.folder());
        // Without orders the program ends at once, and so comes the last snapshot.
        let finished = command::run(&mut wrapped, PATIENCE);
        assert!(finished.status.success(), "{vm}: {finished:?}");
        let told = "is lost (No space left on device";
        let log = format!("{}{}", finished.stdout, finished.stderr);
        assert_eq!(log.matches(told).count(), 1, "{vm}: {log}");
        assert!(log.lines().any(|line| line == "filler"), "{vm}: {log}");
        assert!(!log.contains(".json.gz"), "{vm}: something is left: {log}");
    });
}

#[test]
fn the_endpoint_answers_plain_and_as_gzip_and_others_are_served_meanwhile() {
    on_each(&one_jdk_with(Collector::G1, 6), |vm| {
        let mut jvm = holder(vm, "").start();
        jvm.ask("hold com.acme.orders bytes:1000*5000");
        jvm.settled();
        let address = jvm.address();
        let plain = heapwarden_tests::scrape::get(address, "/api/v1/snapshot");
        assert_eq!(plain.status, 200, "{vm}");
        let document: Value = serde_json::from_str(&plain.body).expect("it is JSON");
        assert_eq!(document["heapwarden_snapshot"], 1);
        let orders = document["accounts"].as_array().expect("a list").iter();
        let orders = orders
            .clone()
            .find(|one| one["name"] == "orders")
            .expect("it is listed");
        let sum: f64 = (orders["classes"].as_array().expect("a list").iter())
            .map(|class| number(class, "live_bytes"))
            .sum();
        assert_eq!(sum, number(orders, "live_bytes"), "{vm}: classes add up");
        let held = |class: &Value| -> f64 {
            let cohorts = class["cohorts"].as_array().map_or(&[][..], Vec::as_slice);
            cohorts.iter().map(|one| number(one, "live_bytes")).sum()
        };
        for class in orders["classes"].as_array().expect("a list") {
            assert_eq!(held(class), number(class, "live_bytes"), "{vm}: {class}");
        }
        // Many readers of snapshots, and the scrape is served.
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| heapwarden_harness::http::get(address, "/api/v1/snapshot"));
            }
            for _ in 0..20 {
                let answer = heapwarden_tests::scrape::get(address, "/metrics");
                assert_eq!(answer.status, 200, "{vm}");
            }
        });
        let wrong = heapwarden_tests::scrape::get(address, "/api/v1/snapshot?x");
        assert_eq!(wrong.status, 400);
        std::thread::sleep(Duration::from_millis(10));
        jvm.finish();
    });
}
