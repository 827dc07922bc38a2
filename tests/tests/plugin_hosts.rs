//! Each plugin of a host has an account of its name: of Felix, Equinox, PF4J, Kafka Connect, and of programs with module
//! layers. One that is unloaded while something holds it shows as retired.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::java;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::plugins::hosts;
use heapwarden_tests::truth::Truth;

const EXACT: &str = "[sampling]\ninterval = \"exact\"\n";

/// How the names of the frameworks' jars begin, of which a class path has one.
const FELIX: &str = "org.apache.felix.framework";
const EQUINOX: &str = "org.eclipse.osgi";

/// The plugins of each host.
const PLUGINS: [&str; 2] = ["red", "blue"];

/// A host.
struct Host {
    main: &'static str,
    /// The jars that it does not have.
    without: &'static [&'static str],
    arguments: Vec<std::ffi::OsString>,
    /// The accounts of the plugins.
    accounts: [&'static str; 2],
}

impl Host {
    fn start(&self, vm: &Vm) -> Jvm {
        let mut host = victim(vm, self.main)
            .class_path(hosts().class_path_without(self.without))
            .policy(EXACT);
        for argument in &self.arguments {
            host = host.argument(argument);
        }
        host.start()
    }
}

fn bundles(without: &'static [&'static str]) -> Host {
    Host {
        main: "victim.BundleHost",
        without,
        arguments: vec![
            java::classes().tenant().into(),
            hosts().part("bundle").into(),
        ],
        accounts: ["org.example.red", "org.example.blue"],
    }
}

fn felix() -> Host {
    bundles(&[EQUINOX])
}

fn equinox() -> Host {
    bundles(&[FELIX])
}

fn pf4j() -> Host {
    Host {
        main: "victim.Pf4jHost",
        without: &[],
        arguments: vec![java::classes().tenant().into()],
        accounts: ["red-plugin", "blue-plugin"],
    }
}

fn connect() -> Host {
    Host {
        main: "victim.ConnectHost",
        without: &[],
        arguments: vec![
            java::classes().tenant().into(),
            hosts().part("connector").into(),
        ],
        accounts: ["acme-red", "blue"],
    }
}

fn layers(loaders: &str) -> Host {
    Host {
        main: "victim.LayerHost",
        without: &[],
        arguments: vec![hosts().part("modules").into(), loaders.into()],
        accounts: ["plug.red", "plug.blue"],
    }
}

/// Loads both plugins, and asserts that what each allocates comes to its account to the byte.
fn assert_each_pays_for_itself(host: &Host, jvm: &mut Jvm) {
    for plugin in PLUGINS {
        jvm.ask(&format!("load {plugin}"));
        jvm.ask(&format!("call {plugin} 8 1"));
    }
    // Files that the host has read are closed by cleaners, a collection after nothing needs them.
    for _ in 0..3 {
        jvm.ask("gc");
    }
    for (plugin, account) in PLUGINS.into_iter().zip(host.accounts) {
        let before = jvm.settled();
        let truth = Truth::of(&jvm.ask(&format!("call {plugin} 1000 3000")));
        let after = jvm.settled();
        for each in host.accounts {
            let (was, is) = (before.holding(each), after.holding(each));
            let expected = match each == account {
                true => (truth.bytes as f64, truth.objects as f64),
                false => (0.0, 0.0),
            };
            assert_eq!(
                (
                    is.live_bytes - was.live_bytes,
                    is.live_objects - was.live_objects
                ),
                expected,
                "{plugin} called, {each}: {}",
                after.brief()
            );
        }
        let listed = after.find(account).expect("listed");
        assert_eq!(
            (&listed["kind"], &listed["service"]),
            (&"service".into(), &account.into())
        );
    }
}

/// Unloads the second plugin, which the host still holds, and asserts that its account tells, until nothing holds it.
fn assert_an_unloaded_one_is_retired(host: &Host, jvm: &mut Jvm) {
    let [_, account] = host.accounts;
    let retired = |jvm: &Jvm| {
        let metrics = jvm.metrics();
        (metrics.of_account("heapwarden_account_retired_loaders", account)).unwrap_or(0.0)
    };
    assert_eq!(retired(jvm), 0.0, "it is loaded");
    jvm.ask("unload blue");
    let shows = poll(PATIENCE, || {
        jvm.ask("gc");
        (retired(jvm) == 1.0).then_some(())
    });
    assert!(shows.is_some(), "{} retired loaders", retired(jvm));
    jvm.ask("forget blue");
    let goes = poll(PATIENCE, || {
        jvm.ask("gc");
        (retired(jvm) == 0.0).then_some(())
    });
    assert!(goes.is_some(), "its loader is held");
}

#[test]
fn bundles_of_felix_have_accounts_until_they_are_uninstalled() {
    on_each(&every_jdk_with(Collector::Serial), |vm| {
        let host = felix();
        let mut jvm = host.start(vm);
        assert_each_pays_for_itself(&host, &mut jvm);
        assert_an_unloaded_one_is_retired(&host, &mut jvm);
        assert_a_library_has_none(&mut jvm);
        jvm.finish();
    });
}

#[test]
fn bundles_of_equinox_have_accounts_until_they_are_uninstalled() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let host = equinox();
        let mut jvm = host.start(vm);
        assert_each_pays_for_itself(&host, &mut jvm);
        assert_an_unloaded_one_is_retired(&host, &mut jvm);
        assert_a_library_has_none(&mut jvm);
        jvm.finish();
    });
}

/// A bundle that only others call has no account: the program, which calls it, pays.
fn assert_a_library_has_none(jvm: &mut Jvm) {
    jvm.ask("load library");
    jvm.ask("call library 8 1");
    let before = jvm.settled().holding("victim.BundleHost").live_bytes;
    let truth = Truth::of(&jvm.ask("call library 1000 30000")).bytes as f64;
    let after = jvm.settled();
    assert!(after.find("org.example.library").is_none());
    // The framework's threads move it a little.
    let came = after.holding("victim.BundleHost").live_bytes - before;
    assert!(
        (came - truth).abs() < 0.05 * truth,
        "{came} of {truth}: {}",
        after.brief()
    );
}

#[test]
fn plugins_of_pf4j_have_accounts_until_they_are_unloaded() {
    on_each(&every_jdk_with(Collector::Parallel), |vm| {
        let host = pf4j();
        let mut jvm = host.start(vm);
        assert_each_pays_for_itself(&host, &mut jvm);
        assert_an_unloaded_one_is_retired(&host, &mut jvm);
        jvm.finish();
    });
}

#[test]
fn plugins_of_kafka_connect_have_accounts() {
    on_each(&one_jdk_with(Collector::Serial, 0), |vm| {
        let host = connect();
        let mut jvm = host.start(vm);
        assert_each_pays_for_itself(&host, &mut jvm);
        jvm.finish();
    });
}

#[test]
fn layers_of_modules_have_accounts_with_one_loader_and_with_many() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        for loaders in ["one", "many"] {
            let host = layers(loaders);
            let mut jvm = host.start(vm);
            assert_each_pays_for_itself(&host, &mut jvm);
            jvm.finish();
        }
    });
}

/// Classes of an application that are called as PF4J's, and layers below its loader, are the application's.
#[test]
fn an_application_cannot_pose_as_a_plugin_or_escape_into_a_layer() {
    on_each(&every_jdk_with(Collector::Serial), |vm| {
        let host = Host {
            main: "victim.ForgerHost",
            without: &["pf4j"],
            arguments: vec![
                hosts().part("forger").into(),
                java::classes().tenant().into(),
                hosts().part("modules").into(),
            ],
            accounts: ["svc-a", "svc-a"],
        };
        let mut jvm = host.start(vm);
        assert_each_pays_for_itself(&host, &mut jvm);
        let accounts = jvm.accounts();
        for other in ["neighbour", "plug.blue"] {
            assert!(accounts.find(other).is_none(), "{}", accounts.brief());
        }
        jvm.finish();
    });
}
