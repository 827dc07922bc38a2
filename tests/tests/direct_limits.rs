//! `direct-limit`: who holds more native memory than its limit is given no more, and nobody else is refused.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, every_vm, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::server::Installation;
use heapwarden_tests::server_setup;
use std::time::Instant;

const MIB: u64 = 1 << 20;
const ARENAS_SINCE: u32 = 22;

fn policy(mode: &str, limit: &str) -> String {
    format!(
        "[enforcement]\nmode = '{mode}'\n\n[[account]]\nservice = '*'\ndirect-limit = '{limit}'\n"
    )
}

fn server(vm: &Vm, mode: &str) -> Jvm {
    let mut jvm = victim(vm, "victim.NativeBlocks")
        .policy(&policy(mode, "20MiB"))
        // Otherwise the JDK's own limit is that of the heap, and its errors could be taken for refusals.
        .flag("-XX:MaxDirectMemorySize=8g")
        .start();
    jvm.ask("deploy svc-a");
    jvm.ask("deploy svc-b");
    jvm
}

/// How much a service was given and refused, and the last error's message.
#[derive(Debug, Default)]
struct Tried {
    given: u64,
    refused: u64,
    message: String,
}

fn tries(jvm: &mut Jvm, order: &str) -> Tried {
    let said = jvm.ask(order).concat();
    let mut words = said.splitn(5, ' ');
    let mut number = |word: &str| -> u64 {
        assert_eq!(words.next(), Some(word), "{order}: {said}");
        let number = words.next().and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{order}: {said}"))
    };
    Tried {
        given: number("given"),
        refused: number("refused"),
        message: words.next().unwrap_or_default().to_owned(),
    }
}

/// Has a service take blocks of a MiB until one is refused, in all at most 2 GiB of them.
fn until_refused(jvm: &mut Jvm, name: &str, way: &str) -> Tried {
    let mut all = Tried::default();
    while all.refused == 0 && all.given < 2048 {
        let now = tries(jvm, &format!("tries {name} {way} 4 {MIB} 20"));
        all.given += now.given;
        all.refused += now.refused;
        all.message = now.message;
    }
    all
}

fn edit(jvm: &Jvm, policy: &str) {
    std::fs::write(jvm.folder().join("heapwarden.toml"), policy).expect("writable");
}

fn counted(jvm: &Jvm, what: &str, name: &str) -> Option<f64> {
    (jvm.metrics()).of_account(&format!("heapwarden_account_direct_{what}"), name)
}

/// Waits until as many refusals are published as the service has seen.
fn assert_counted(jvm: &Jvm, what: &str, name: &str, times: u64) {
    let agrees = poll(PATIENCE, || {
        (counted(jvm, what, name) == Some(times as f64)).then_some(())
    });
    let now = counted(jvm, what, name);
    assert!(agrees.is_some(), "{what}: {now:?}, {times}: {}", jvm.log());
}

#[test]
fn whoever_holds_more_than_its_limit_is_given_no_more_until_it_lets_go() {
    on_each(every_vm(), |vm| {
        let mut jvm = server(vm, "enforce");
        assert_eq!(
            tries(&mut jvm, &format!("tries svc-b direct 5 {MIB} 0")).refused,
            0
        );
        let first = until_refused(&mut jvm, "svc-a", "direct");
        assert!(
            first.given >= 20 && first.refused > 0,
            "{vm}: {first:?}: {}",
            jvm.log()
        );
        assert_eq!(
            first.message,
            format!("Unable to allocate {MIB} bytes"),
            "{vm}"
        );
        let more = tries(&mut jvm, &format!("tries svc-a direct 10 {MIB} 10"));
        assert_eq!(more.given, 0, "{vm}: {}", jvm.log());
        // At first a method of this way is not known yet.
        let by_unsafe = until_refused(&mut jvm, "svc-a", "unsafe");
        assert!(by_unsafe.refused > 0, "{vm}: {by_unsafe:?}");
        let known = tries(&mut jvm, &format!("tries svc-a unsafe 10 {MIB} 0"));
        assert_eq!((known.given, known.refused), (0, 10), "{vm}");
        let refused = first.refused + more.refused + by_unsafe.refused + known.refused;
        if vm.jdk.feature >= ARENAS_SINCE {
            // The JDK would not undo what it has reserved for it.
            let by_arena = tries(&mut jvm, &format!("tries svc-a arena 3 {MIB} 0"));
            assert_eq!(by_arena.given, 3, "{vm}");
        }
        // Its neighbour is within its limit.
        let neighbour = tries(&mut jvm, &format!("tries svc-b direct 5 {MIB} 0"));
        assert_eq!(neighbour.refused, 0, "{vm}");
        assert_counted(&jvm, "refusals_total", "svc-a", refused);
        assert_counted(&jvm, "refusals_total", "svc-b", 0);
        assert_counted(&jvm, "limit_bytes", "svc-a", 20 * MIB);
        let accounts = jvm.accounts();
        let usage = accounts.find("svc-a").expect("it is there")["usage"].clone();
        let usage = usage.as_array().expect("a list");
        let direct = usage.iter().find(|one| one["resource"] == "direct");
        let direct = direct.expect("it is counted");
        assert_eq!(direct["used"], first.given * MIB, "{vm}");
        assert_eq!(direct["limit"], 20 * MIB, "{vm}");
        assert_eq!(direct["refusals_total"], refused, "{vm}");
        assert!(
            jvm.log().contains("above its direct-limit of 20MiB"),
            "{}",
            jvm.log()
        );
        // Nobody asks for a collection but the agent.
        jvm.ask("drop svc-a svc-b");
        let back = poll(PATIENCE, || {
            let tried = tries(&mut jvm, &format!("tries svc-a direct 1 {MIB} 50"));
            (tried.given == 1).then_some(())
        });
        assert!(back.is_some(), "{vm}: {}", jvm.log());
        jvm.finish();
    });
}

#[test]
fn in_mode_observe_every_block_is_given_and_counted() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "observe");
        let mut given = 0;
        let noticed = poll(PATIENCE, || {
            let tried = tries(&mut jvm, &format!("tries svc-a direct 4 {MIB} 20"));
            assert_eq!(tried.refused, 0, "{vm}");
            given += tried.given;
            let counted = counted(&jvm, "would_refuse_total", "svc-a");
            counted.filter(|times| *times > 0.0)
        });
        let before = noticed.unwrap_or_else(|| panic!("{vm}, {given}: {}", jvm.log()));
        assert!(before <= given as f64 - 20.0, "{vm}: {before} of {given}");
        let more = tries(&mut jvm, &format!("tries svc-a direct 7 {MIB} 0"));
        assert_eq!(more.given, 7, "{vm}");
        let grown = poll(PATIENCE, || {
            let now = counted(&jvm, "would_refuse_total", "svc-a")?;
            (now >= before + 7.0).then_some(())
        });
        assert!(grown.is_some(), "{vm}: {}", jvm.log());
        assert_counted(&jvm, "refusals_total", "svc-a", 0);
        jvm.finish();
    });
}

/// Nobody is over a limit by what the next collection and the JDK's cleaner give back.
#[test]
fn buffers_that_nobody_keeps_convict_nobody() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "enforce");
        assert_eq!(
            tries(&mut jvm, &format!("tries svc-a direct 10 {MIB} 0")).refused,
            0
        );
        let tried = tries(&mut jvm, &format!("tries svc-a dropped 1500 {MIB} 4"));
        assert_eq!(tried.refused, 0, "{vm}: {}", jvm.log());
        assert!(!jvm.log().contains("direct-limit"), "{vm}: {}", jvm.log());
        jvm.finish();
    });
}

/// As fast as it can, and above its limit in garbage nearly always: the agent looks, and acquits it.
#[test]
fn buffers_that_are_dropped_at_full_speed_are_acquitted_and_nobody_waits_again() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "enforce");
        let begun = Instant::now();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let tried = tries(&mut jvm, &format!("tries svc-a dropped 4000 {MIB} 0"));
            assert_eq!(tried.refused, 0, "{vm}: {}", jvm.log());
            seen.push((jvm.metrics()).of_account("heapwarden_account_wait_seconds_total", "svc-a"));
        }
        assert!(!jvm.log().contains("direct-limit"), "{vm}: {}", jvm.log());
        // At the first suspicion alone, and once more after a minute.
        let waited = seen.last().copied().flatten();
        assert!(
            waited.is_some_and(
                |seconds| seconds <= 3.0 * (1.0 + begun.elapsed().as_secs_f64() / 60.0)
            ),
            "{vm}: {seen:?}"
        );
        jvm.finish();
    });
}

/// An error there would break a class for ever, or leak a file.
#[test]
fn where_an_error_would_do_harm_a_block_is_given_and_counted() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "enforce");
        let first = until_refused(&mut jvm, "svc-a", "direct");
        assert!(first.refused > 0, "{}", jvm.log());
        assert_eq!(jvm.ask("io svc-a"), ["done"]);
        // And what was asked for before all methods on the stack were known.
        let before = counted(&jvm, "deferred_total", "svc-a").expect("it is counted");
        assert_eq!(jvm.ask("initialise svc-a"), ["initialised"]);
        let more = poll(PATIENCE, || {
            let now = counted(&jvm, "deferred_total", "svc-a");
            now.filter(|now| *now > before)
        });
        assert!(more.is_some(), "{vm}: {before}: {}", jvm.log());
        let again = tries(&mut jvm, &format!("tries svc-a direct 1 {MIB} 0"));
        assert_eq!(again.refused, 1, "{vm}: it is over its limit still");
        assert_counted(&jvm, "refusals_total", "svc-a", first.refused + 1);
        jvm.finish();
    });
}

#[test]
fn an_edit_of_the_limit_takes_effect_while_the_server_runs() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, "enforce");
        let first = until_refused(&mut jvm, "svc-a", "direct");
        assert!(first.refused > 0, "{vm}: {}", jvm.log());
        let given_one = |jvm: &mut Jvm| {
            let tried = tries(jvm, &format!("tries svc-a direct 1 {MIB} 20"));
            (tried.given == 1).then_some(())
        };
        let more = (first.given + 20) * MIB;
        edit(&jvm, &policy("enforce", &more.to_string()));
        assert!(
            poll(PATIENCE, || given_one(&mut jvm)).is_some(),
            "{}",
            jvm.log()
        );
        let again = until_refused(&mut jvm, "svc-a", "direct");
        assert!(again.refused > 0, "{vm}: {}", jvm.log());
        edit(&jvm, &policy("enforce", "none"));
        assert!(
            poll(PATIENCE, || given_one(&mut jvm)).is_some(),
            "{}",
            jvm.log()
        );
        let is_gone = poll(PATIENCE, || {
            counted(&jvm, "limit_bytes", "svc-a")
                .is_none()
                .then_some(())
        });
        assert!(is_gone.is_some(), "{vm}");
        // Below what it holds: no new block is needed for the verdict, but one is refused.
        edit(&jvm, &policy("enforce", "1MiB"));
        let refused = poll(PATIENCE, || match given_one(&mut jvm) {
            None => Some(()),
            Some(()) => None,
        });
        assert!(refused.is_some(), "{}", jvm.log());
        jvm.finish();
    });
}

/// A page that keeps direct buffers, or lets go of them all.
const KEEPING: &str = r#"<%@ page session="false" %><%!
  static final java.util.List<java.nio.ByteBuffer> KEPT = new java.util.ArrayList<>();
%><%
  String bytes = request.getParameter("bytes");
  synchronized (KEPT) {
    if (bytes == null) { KEPT.clear(); } else { KEPT.add(java.nio.ByteBuffer.allocateDirect(Integer.parseInt(bytes))); }
    out.print(KEPT.size());
  }
%>"#;

/// Over its limit an application gets errors for what asks for more, and its neighbour answers all the while.
#[test]
fn in_a_tomcat_an_application_over_its_direct_limit_fails_alone() {
    for vm in &one_jdk_with(Collector::G1, 2) {
        let site = Installation::new().collector(vm.collector);
        let prepared = server_setup::tomcat(&site, &vm.jdk, "apache-tomcat-10.1.44", "64KiB");
        let limited = policy("enforce", "20MiB");
        std::fs::write(site.folder().join("heapwarden.toml"), limited).expect("writable");
        for shop in ["shop", "cart"] {
            let folder = prepared.base.join("webapps").join(shop);
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(folder.join("keeping.jsp"), KEEPING).expect("writable");
        }
        let server = site.start(prepared.command, "/shop/keeping.jsp");
        let status = |path: &str| server.get(path).map_or(0, |answer| answer.status);
        let more = format!("/shop/keeping.jsp?bytes={MIB}");
        let mut given = 0;
        let refused = poll(PATIENCE, || {
            assert_eq!(status("/cart/keeping.jsp?bytes=1024"), 200, "{vm}");
            match status(&more) {
                200 => given += 1,
                _ => return Some(()),
            }
            (given > 500).then_some(())
        });
        assert!(refused.is_some(), "{vm}: {}", server.log());
        assert!(
            (20..500).contains(&given),
            "{vm}: {given}: {}",
            server.log()
        );
        for _ in 0..10 {
            assert_eq!(status("/cart/keeping.jsp?bytes=1024"), 200, "{vm}");
        }
        // A request that needs no more is answered, and lets go.
        assert_eq!(status("/shop/keeping.jsp"), 200, "{vm}: {}", server.log());
        let back = poll(PATIENCE, || (status(&more) == 200).then_some(()));
        assert!(back.is_some(), "{vm}: {}", server.log());
        server.finish();
    }
}
