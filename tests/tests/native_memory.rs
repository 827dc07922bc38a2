//! Native memory of each account, to the byte: each way of taking it, whoever gives it back. Sizes here are multiples of 8:
//! the JDK rounds others up before it takes them.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::{self, Accounts};
use heapwarden_tests::server::Installation;
use heapwarden_tests::server_setup;
use serde_json::Value;

const ARENAS_SINCE: u32 = 22;
const VIRTUAL_THREADS_SINCE: u32 = 21;

fn server(vm: &Vm) -> Jvm {
    victim(vm, "victim.NativeBlocks").policy("").start()
}

/// How much an account uses of a resource. `None`: there is no such account, or it is not counted.
fn used(accounts: &Accounts, name: &str, resource: &str) -> Option<u64> {
    used_of(accounts.find(name)?, resource)
}

fn used_of(account: &Value, resource: &str) -> Option<u64> {
    let mut usage = account["usage"].as_array()?.iter();
    usage.find(|one| one["resource"] == resource)?["used"].as_u64()
}

/// Waits until an account uses so much direct and other native memory.
fn until(jvm: &Jvm, name: &str, direct: u64, native: u64) {
    let what = format!("{name} has {direct} direct bytes and {native} others");
    jvm.until(PATIENCE, &what, |accounts| {
        let of = |resource| used(accounts, name, resource);
        (of("direct"), of("native")) == (Some(direct), Some(native))
    });
    let metrics = jvm.metrics();
    let published = ["direct", "native"]
        .map(|kind| metrics.of_account(&format!("heapwarden_account_{kind}_bytes"), name));
    assert_eq!(
        published,
        [Some(direct as f64), Some(native as f64)],
        "{what}"
    );
}

fn said(jvm: &mut Jvm, order: &str, word: &str) -> u64 {
    let said = jvm.ask(order).concat();
    let number = said.strip_prefix(word).map(str::trim);
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{order}: {said}"))
}

#[test]
fn each_way_of_taking_native_memory_is_counted_to_the_byte() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm);
        let release = vm.jdk.feature;
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        let (mut direct, mut native) = (70_000, 11 * 40 + 4 * 400);
        jvm.ask("take svc-a direct 70 1000");
        if release >= ARENAS_SINCE {
            jvm.ask("take svc-a arena 3 4096");
            native += 3 * 4096;
        }
        if release >= VIRTUAL_THREADS_SINCE {
            jvm.ask("take svc-a virtual 5 2000");
            direct += 5 * 2000;
        }
        jvm.ask("take svc-a unsafe 11 40");
        jvm.ask("take svc-a grown 4 400");
        jvm.ask("take svc-b direct 1 5000000");
        jvm.ask("take svc-b grown 1 8");
        until(&jvm, "svc-a", direct, native);
        until(&jvm, "svc-b", 5_000_000, 8);
        // All of the JVM's direct memory is somebody's.
        let mut sums = (0, 0);
        let agree = poll(PATIENCE, || {
            let by_jvm = said(&mut jvm, "pool", "pool");
            let accounts = jvm.accounts();
            let direct = accounts
                .list()
                .iter()
                .filter_map(|one| used_of(one, "direct"));
            sums = (direct.sum(), by_jvm);
            (sums.0 == sums.1).then_some(())
        });
        assert!(agree.is_some(), "{vm}: accounts, JVM: {sums:?}");
        // Whoever gives it back: another service's thread, and the JDK's own for buffers that nobody refers to.
        jvm.ask("drop svc-a svc-b");
        jvm.ask("gc");
        until(&jvm, "svc-a", 0, 0);
        until(&jvm, "svc-b", 5_000_000, 8);
        jvm.ask("drop svc-b svc-a");
        jvm.ask("gc");
        until(&jvm, "svc-b", 0, 0);
        let output = jvm.finish();
        assert!(!output.contains("Re-registering"), "{vm}: {output}");
    });
}

#[test]
fn no_byte_is_lost_under_a_thousand_threads() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        let left = ["svc-a", "svc-b"].map(|name| {
            (
                name,
                said(&mut jvm, &format!("storm {name} 1000 500"), "left"),
            )
        });
        for (name, left) in left {
            assert!(left > 1_000_000, "{vm}: {left}");
            until(&jvm, name, 0, left);
        }
        jvm.ask("drop svc-a svc-b");
        jvm.ask("drop svc-b svc-a");
        until(&jvm, "svc-a", 0, 0);
        until(&jvm, "svc-b", 0, 0);
        let unentered = jvm
            .metrics()
            .sum("heapwarden_native_blocks_unentered_total");
        assert_eq!(unentered, 0.0);
        jvm.finish();
    });
}

/// Whose each block is lags behind a thread that takes blocks much faster than it can be found out. That is counted,
/// and no byte is lost.
#[test]
fn a_thread_that_takes_blocks_at_full_speed_has_some_charged_as_the_one_before() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        jvm.ask("turns svc-a svc-b 200000");
        let what = "both have 20,800,000 bytes";
        jvm.until(PATIENCE, what, |accounts| {
            let of = |name| used(accounts, name, "native").unwrap_or(0);
            of("svc-a") + of("svc-b") == 20_800_000
        });
        let assumed = jvm.metrics().sum("heapwarden_native_blocks_assumed_total");
        assert!(assumed > 50_000.0, "{vm}: {assumed}");
        jvm.ask("drop svc-a svc-a");
        until(&jvm, "svc-a", 0, 0);
        until(&jvm, "svc-b", 0, 0);
        jvm.finish();
    });
}

/// Its number would be another account's when the blocks are given back.
#[test]
fn an_undeployed_service_keeps_its_account_until_its_native_memory_is_given_back() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        jvm.ask("take svc-a unsafe 10 1000");
        jvm.ask("take svc-b unsafe 1 8");
        until(&jvm, "svc-a", 0, 10_000);
        jvm.ask("undeploy svc-a");
        for turn in 0..5 {
            jvm.ask("gc");
            jvm.ask(&format!("deploy new-{turn}"));
            jvm.ask(&format!("take new-{turn} unsafe 1 {}", 8 * (turn + 1)));
            until(&jvm, &format!("new-{turn}"), 0, 8 * (turn + 1));
            until(&jvm, "svc-a", 0, 10_000);
        }
        jvm.ask("drop svc-a svc-b");
        jvm.until(PATIENCE, "svc-a is gone", |accounts| {
            let left = used(accounts, "svc-a", "native");
            left.is_none_or(|left| left == 0)
        });
        for turn in 0..5 {
            until(&jvm, &format!("new-{turn}"), 0, 8 * (turn + 1));
        }
        jvm.finish();
    });
}

/// A page that keeps direct buffers, and says what the JVM has.
const KEEPING: &str = r#"<%@ page session="false" %><%!
  static final java.util.List<java.nio.ByteBuffer> KEPT = new java.util.ArrayList<>();
%><%
  String bytes = request.getParameter("bytes");
  if (bytes != null) {
    synchronized (KEPT) { KEPT.add(java.nio.ByteBuffer.allocateDirect(Integer.parseInt(bytes))); }
  }
  for (java.lang.management.BufferPoolMXBean pool :
      java.lang.management.ManagementFactory.getPlatformMXBeans(java.lang.management.BufferPoolMXBean.class)) {
    if (pool.getName().equals("direct")) { out.print(pool.getMemoryUsed()); }
  }
%>"#;

#[test]
fn the_buffers_that_a_page_keeps_are_its_applications_in_a_tomcat() {
    for vm in &one_jdk_with(Collector::G1, 2) {
        let site = Installation::new().collector(vm.collector);
        let prepared = server_setup::tomcat(&site, &vm.jdk, "apache-tomcat-10.1.44", "64KiB");
        for shop in ["shop", "cart"] {
            let folder = prepared.base.join("webapps").join(shop);
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(folder.join("keeping.jsp"), KEEPING).expect("writable");
        }
        let server = site.start(prepared.command, "/shop/keeping.jsp");
        let page = |path: &str| -> u64 {
            let answer = server.get(path).expect("an answer");
            let number = answer.body.trim().parse();
            number.unwrap_or_else(|_| panic!("{path}: {answer:?}\n{}", server.log()))
        };
        for _ in 0..20 {
            page("/shop/keeping.jsp?bytes=100000");
        }
        page("/cart/keeping.jsp?bytes=776");
        let mut seen = (0, 0, 0, 0);
        let right = poll(PATIENCE, || {
            let by_jvm = page("/cart/keeping.jsp");
            let accounts = scrape::accounts(server.agent());
            let of = |name| used(&accounts, name, "direct").unwrap_or(0);
            let direct = accounts
                .list()
                .iter()
                .filter_map(|one| used_of(one, "direct"));
            seen = (of("/shop"), of("/cart"), direct.sum(), by_jvm);
            let (shop, cart, sum, _) = seen;
            // A worker keeps a buffer of its own for what it sends, and it is made while it serves some application.
            let is_sum = sum.abs_diff(by_jvm) * 100 <= by_jvm;
            ((2_000_000..2_200_000).contains(&shop) && (776..200_776).contains(&cart) && is_sum)
                .then_some(())
        });
        assert!(right.is_some(), "{vm}: shop, cart, sum, JVM: {seen:?}");
        server.finish();
    }
}
