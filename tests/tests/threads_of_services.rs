//! The threads of each account: counted by who started them, and those named that an undeployed service left.

use heapwarden_tests::command::{self, PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::{self, Accounts};
use heapwarden_tests::server::Installation;
use heapwarden_tests::{artifacts, java, server_setup};
use serde_json::Value;
use std::process::Command;

fn server(vm: &Vm, policy: &str) -> Jvm {
    victim(vm, "victim.StartedThreads")
        .argument(java::classes().tenant())
        .policy(policy)
        .start()
}

/// The threads of an account; `None` while there is no such account, or nobody has counted.
fn threads(account: &Value) -> Option<u64> {
    let mut usage = account["usage"].as_array()?.iter();
    usage.find(|one| one["resource"] == "threads")?["used"].as_u64()
}

fn threads_of(accounts: &Accounts, name: &str) -> Option<u64> {
    threads(accounts.find(name)?)
}

fn until_threads(jvm: &Jvm, name: &str, count: u64) {
    let what = format!("{name} has {count} threads");
    jvm.until(PATIENCE, &what, |accounts| {
        threads_of(accounts, name) == Some(count)
    });
    let published = jvm.metrics().of_account("heapwarden_account_threads", name);
    assert_eq!(published, Some(count as f64), "{what}, as a metric");
}

#[test]
fn a_thread_is_the_accounts_that_started_it() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "");
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        for (count, way) in [(7, "plain"), (5, "pool"), (3, "task"), (2, "own")] {
            jvm.ask(&format!("start svc-a {way} {count}"));
        }
        until_threads(&jvm, "svc-a", 17);
        // Neither what serves a request at the moment, nor what all share, is a service's.
        jvm.ask("start svc-b serving 4");
        jvm.ask("start svc-b shared 1");
        jvm.ask("start svc-b plain 1");
        until_threads(&jvm, "svc-b", 1);
        // Each thread is one account's: by the JVM's own count.
        let mut sums = (0, 0);
        let agree = poll(PATIENCE, || {
            let total = jvm.ask("total").concat();
            let by_jvm: u64 = total["total ".len()..].parse().expect("a number");
            let by_accounts = jvm.accounts().list().iter().filter_map(threads).sum();
            sums = (by_accounts, by_jvm);
            (by_accounts == by_jvm).then_some(())
        });
        assert!(agree.is_some(), "{vm}: accounts, JVM: {sums:?}");
        jvm.ask("end svc-a");
        until_threads(&jvm, "svc-a", 0);
        until_threads(&jvm, "svc-b", 1);
        jvm.ask("end svc-b");
        jvm.finish();
    });
}

#[test]
fn threads_of_packages_follow_the_policy_in_force() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "");
        jvm.ask("deploy svc-a");
        jvm.ask("start svc-a task 3");
        jvm.ask("start svc-a plain 2");
        until_threads(&jvm, "svc-a", 5);
        std::fs::write(
            jvm.folder().join("heapwarden.toml"),
            "[[account]]\nname = \"waiting\"\npackages = [\"tenant\"]\n",
        )
        .expect("the policy can be written");
        until_threads(&jvm, "waiting", 3);
        until_threads(&jvm, "svc-a", 2);
        jvm.ask("end svc-a");
        jvm.finish();
    });
}

/// To find a field by the class of such a thread would wait for the initialiser of that class.
#[test]
fn a_thread_whose_class_is_not_initialised_stops_neither_counts_nor_names() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "");
        jvm.ask("unready");
        jvm.ask("deploy svc-a");
        jvm.ask("start svc-a plain 2");
        until_threads(&jvm, "svc-a", 2);
        jvm.ask("end svc-a");
        until_threads(&jvm, "svc-a", 0);
        jvm.ask("ready");
        jvm.finish();
    });
}

/// A page that starts what applications forget: a thread of their own, a pool and a timer. The JDK ends the thread of
/// `newSingleThreadExecutor` once nobody refers to it, and that of a timer without tasks.
const FORGETFUL: &str = r#"<%@ page session="false" %><%!
  static final class Poller implements Runnable {
    public void run() {
      while (true) {
        try { Thread.sleep(1_000_000); } catch (InterruptedException again) { /* and goes on */ }
      }
    }
  }
%><%
  Thread poller = new Thread(new Poller(), "poller");
  poller.setDaemon(true);
  poller.start();
  java.util.concurrent.Executors.newFixedThreadPool(1).submit(() -> { });
  new java.util.Timer("reminders", true).schedule(
      new java.util.TimerTask() { public void run() { } }, 100_000_000L);
%>done"#;

#[test]
fn threads_that_a_reload_has_left_in_a_tomcat_are_named() {
    for vm in &one_jdk_with(Collector::G1, 1) {
        let site = Installation::new().collector(vm.collector);
        let prepared = server_setup::tomcat(&site, &vm.jdk, "apache-tomcat-10.1.44", "64KiB");
        let shop = prepared.base.join("webapps/shop");
        let descriptor = shop.join("WEB-INF/web.xml");
        std::fs::create_dir_all(shop.join("WEB-INF")).expect("writable");
        let web_xml = |name: &str| {
            let text = format!(
                "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\"><display-name>{name}</display-name></web-app>"
            );
            std::fs::write(&descriptor, text).expect("writable");
        };
        web_xml("first");
        std::fs::write(shop.join("forgetful.jsp"), FORGETFUL).expect("writable");
        let server = site.start(prepared.command, "/shop/forgetful.jsp");
        let until = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
            let shop = poll(PATIENCE, || {
                let accounts = scrape::accounts(server.agent());
                accounts
                    .find("/shop")
                    .filter(|account| is_so(account))
                    .cloned()
            });
            shop.unwrap_or_else(|| {
                panic!("{vm}: {what}: {}", scrape::accounts(server.agent()).brief())
            })
        };
        // The first request may be made several times: each starts three.
        let three = |count: Option<u64>| count.is_some_and(|count| count > 0 && count % 3 == 0);
        let deployed = until("its threads", &|account| three(threads(account)));
        assert_eq!(deployed["threads_left_behind"], 0, "{deployed}");
        web_xml("second");
        let left = until("they are left", &|account| {
            three(account["threads_left_behind"].as_u64())
        });
        let left: Vec<(&str, bool, &str)> = (left["left_threads"].as_array())
            .expect("a list")
            .iter()
            .map(|thread| {
                let text = |key: &str| thread[key].as_str().unwrap_or_default();
                (text("name"), thread["daemon"] == true, text("runs"))
            })
            .collect();
        let runs_of = |named: &str, is_daemon| {
            let of = |(name, daemon, _): &&(&str, bool, &str)| {
                name.starts_with(named) && *daemon == is_daemon
            };
            left.iter()
                .find(of)
                .unwrap_or_else(|| panic!("{named}: {left:?}"))
                .2
        };
        let runs = runs_of("poller", true);
        assert!(
            runs.starts_with("org.apache.jsp.forgetful_jsp$Poller.run("),
            "{runs}"
        );
        // These run nothing of the application's.
        assert!(runs_of("pool-", false).contains("park"), "{left:?}");
        assert!(runs_of("reminders", true).contains("wait"), "{left:?}");
        let doctor = command::run(
            Command::new(artifacts::command()).args(["doctor", &server.id().to_string()]),
            PATIENCE,
        );
        let says = "threads of an undeployed version of /shop still run";
        assert!(doctor.stdout.contains(says), "{doctor:#?}");
        server.finish();
    }
}
