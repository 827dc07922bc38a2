//! Suggestions from periods made up here, read back by the policy file's own parser.

use policy_config::{Limit, Matcher, Mode};
use proptest::prelude::*;

use super::*;
use crate::history::{Account, Jvm, Kind};
use crate::prometheus::Span;

const TERMS: Settings = Settings {
    quantile: 0.99,
    headroom: 0.25,
    horizon_seconds: 7 * 86_400,
    allow_short: false,
};

fn account(name: &str, kind: Kind, service: &str, mebibytes: f64) -> Account {
    let mut account = Account {
        name: name.into(),
        kind,
        service: service.into(),
        ..Account::default()
    };
    for step in 0..288 {
        let live = mebibytes * f64::from(1 << 20);
        account.live_bytes.put(288, step, live);
        account
            .standard_error_bytes
            .put(288, step, (65_536.0 * live).sqrt());
    }
    account
}

fn history(accounts: Vec<Account>) -> History {
    let mut jvm = Jvm {
        labels: vec![("job".into(), "tomcat\n[[account]]".into())],
        accounts,
        ..Jvm::default()
    };
    jvm.heap_max_bytes.put(288, 0, f64::from(1 << 28));
    jvm.sampling_interval_bytes.put(288, 0, 65_536.0);
    History {
        source: "Prometheus at http://p\n[agent]".into(),
        span: Span::covering(1_700_000_100, 86_400, 300),
        jvms: vec![jvm],
        notes: vec!["partial\nanswer".into()],
    }
}

/// The text that would be printed, already checked against `policy`.
fn suggested(history: &History, policy: Option<&str>) -> String {
    let before = policy.map(|text| policy_config::parse(text).policy.unwrap());
    let pool = Pool::of(history, before.as_ref(), &TERMS);
    let preamble = reasons::preamble(history, &pool, &TERMS, false);
    let text = match policy {
        Some(text) => revision::revise(text, &preamble, &pool, &TERMS),
        None => document::build(history, &preamble, &pool, &TERMS),
    };
    let text = text.unwrap();
    check(&text, before.as_ref(), &pool).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    text
}

#[test]
fn a_policy_from_nothing_gives_reasons_and_refuses_nothing() {
    let history = history(vec![
        account("/shop", Kind::Service, "/shop", 200.0),
        account("store", Kind::Service, "/store", 40.0),
        account("/tiny", Kind::Service, "/tiny", 1.0),
        account("orders", Kind::Package, "", 40.0),
        account("tenant-7", Kind::Scope, "", 40.0),
        account("xml", Kind::Library, "", 40.0),
        account("_unaccounted", Kind::Reserved, "", 40.0),
    ]);
    let text = suggested(&history, None);
    let parsed = policy_config::parse(&text);
    assert!(
        parsed.diagnostics.is_empty(),
        "{:?}\n{text}",
        parsed.diagnostics
    );
    let policy = parsed.policy.unwrap();
    assert_eq!(policy.enforcement.mode, Mode::Observe);
    assert_eq!(policy.sampling.interval.bytes(), 65_536);
    let brief: Vec<String> = policy
        .accounts
        .iter()
        .map(|one| {
            format!(
                "{} {} {} {}",
                one.label(),
                one.matcher,
                one.soft_limit,
                one.limit
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            "scope \"tenant-7\" scope \"tenant-7\" 44MiB 56MiB",
            "service \"/shop\" service \"/shop\" 208MiB 288MiB",
            "store service \"/store\" 44MiB 56MiB",
        ]
    );
    for said in [
        "# No limit for /tiny: the standard error at its 1.00 MiB is 25 % of it, above 10 %; interval = \"8KiB\" would do.",
        "# No limit for orders: a package account, whose packages are not recorded; give the policy that has them with --policy.",
        "400.0 MiB, 156 % of its heap of 256.0 MiB: not all",
        "# 0.99 of 288 readings are at most 200.0 MiB",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn a_tenant_of_several_services_is_one_rule_by_its_own_name() {
    let within = |service: &str, mebibytes| Account {
        parent: service.into(),
        ..account(
            &format!("{service}/tenant-42"),
            Kind::Scope,
            service,
            mebibytes,
        )
    };
    let history = history(vec![within("/shop", 40.0), within("/mall", 80.0)]);
    for before in [None, Some("[[account]]\nscope = \"tenant-*\"\n")] {
        let text = suggested(&history, before);
        let policy = policy_config::parse(&text).policy.unwrap();
        let [rule] = &policy.accounts[..] else {
            panic!("one rule for both:\n{text}");
        };
        assert_eq!(rule.name, None, "{text}");
        assert!(matches!(&rule.matcher, Matcher::Scope(glob) if glob.matches("tenant-42")));
        let Limit::Bytes(limit) = rule.limit else {
            panic!("no limit:\n{text}");
        };
        assert!(limit > 80 << 20, "for the larger one:\n{text}");
    }
}

#[test]
fn no_name_of_a_tenant_gets_out_of_its_string() {
    let hostile = [
        "*",
        "/a?",
        "a\"]\n[[account]]\nservice = \"*\"\nlimit = \"1B\"",
        "\u{1b}[31m",
        "#\r# x",
        "\u{202e}",
        "'''",
        "\\",
        " /space ",
        "_unaccounted",
        "größe \"quoted\"",
    ];
    let accounts = hostile.map(|name| account(name, Kind::Service, name, 40.0));
    let text = suggested(&history(accounts.to_vec()), None);
    let policy = policy_config::parse(&text).policy.unwrap();
    let services: Vec<&str> = policy
        .accounts
        .iter()
        .map(|one| match &one.matcher {
            Matcher::Service(glob) => glob.as_str(),
            other => panic!("{other}"),
        })
        .collect();
    let mut expected = vec!["'''", "\\", " /space ", "_unaccounted", "größe \"quoted\""];
    expected.sort_unstable();
    assert_eq!(services, expected, "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text}");
    for excluded in ["No limit for *: no glob", "No limit for /a?: no glob"] {
        assert!(text.contains(excluded), "{excluded}\n{text}");
    }
}

const POLICY: &str = r#"# Ours.
[agent]
listen = "127.0.0.1:0"   # any

[[account]]   # the shop
  name = "shop"
  service = "/shop*"
  # agreed with the team
  limit = "512MiB"       # was 256
  throw = "error"

[[account]]
service = "*"

[[account]]
name = "xml"
packages = ["org.xml.*"]
charge = "caller"

[[account]]
name = "unseen"
packages = ["com.acme.unseen"]
limit = "10%"
"#;

#[test]
fn a_policy_in_use_keeps_its_text() {
    let history = history(vec![
        account("/shop", Kind::Service, "/shop", 100.0),
        account("/shop2", Kind::Service, "/shop2", 100.0),
        account("/a", Kind::Service, "/a", 30.0),
        account("/b", Kind::Service, "/b", 60.0),
    ]);
    let text = suggested(&history, Some(POLICY));
    for kept in [
        "# Ours.\n[agent]\nlisten = \"127.0.0.1:0\"   # any\n",
        "[[account]]   # the shop\n  name = \"shop\"\n  service = \"/shop*\"\n  # agreed with the team\n",
        "  limit = \"288MiB\"       # was 256\n  throw = \"error\"\n",
        "limit = \"10%\"\n",
    ] {
        assert!(text.contains(kept), "{kept}\n---\n{text}");
    }
    assert!(
        text.contains("# suggested: The largest of 2 accounts: /b of"),
        "{text}"
    );
    let accounts = policy_config::parse(&text).policy.unwrap().accounts;
    // Both shops are one account: 200 MiB together.
    assert_eq!(accounts[0].soft_limit, Limit::Bytes(208 << 20));
    assert_eq!(
        accounts[1].soft_limit,
        Limit::Bytes(64 << 20),
        "the larger of /a and /b"
    );
    assert_eq!(accounts[2].limit, Limit::None);
    // Asked again, it replaces what it said before.
    assert_eq!(suggested(&history, Some(&text)), text);
}

#[test]
fn what_scopes_may_have_is_of_their_services() {
    let mut tenant = account("/shop/tenant-7", Kind::Scope, "/shop", 180.0);
    tenant.parent = "/shop".into();
    let shop = || account("/shop", Kind::Service, "/shop", 200.0);
    let sum = |accounts| Pool::of(&history(accounts), None, &TERMS).commitments[0].limits_bytes;
    assert_eq!(sum(vec![shop(), tenant.clone()]), sum(vec![shop()]));
    // By a policy as well.
    let policy = policy_config::parse("[[account]]\nservice = \"*\"\n[[account]]\nscope = \"*\"\n");
    let policy = policy.policy.unwrap();
    let ruled =
        |accounts| Pool::of(&history(accounts), Some(&policy), &TERMS).commitments[0].limits_bytes;
    assert_eq!(ruled(vec![shop(), tenant.clone()]), ruled(vec![shop()]));
    // The same name beneath a service that has none: that one counts.
    let mut other = tenant.clone();
    (other.name, other.parent) = ("/blog/tenant-7".into(), "/blog".into());
    let both = vec![shop(), tenant.clone(), other.clone()];
    assert_eq!(sum(both), sum(vec![shop(), other]));
    tenant.parent = String::new();
    assert!(sum(vec![shop(), tenant.clone()]) > sum(vec![shop()]));
    assert!(ruled(vec![shop(), tenant]) > ruled(vec![shop()]));
}

#[test]
fn accounts_in_one_line_get_limits_too() {
    let policy =
        r#"account = [{ name = "shop", service = "/shop", limit = "1GiB" }, { service = "*" }]"#;
    let history = history(vec![account("shop", Kind::Service, "/shop", 200.0)]);
    let text = suggested(&history, Some(policy));
    let accounts = policy_config::parse(&text).policy.unwrap().accounts;
    assert_eq!(accounts[0].limit, Limit::Bytes(288 << 20));
    assert_eq!(accounts[1].limit, Limit::None);
}

#[test]
fn too_few_readings_of_all_are_no_suggestion() {
    let mut short = account("/shop", Kind::Service, "/shop", 200.0);
    short.live_bytes = history::Column::default();
    for step in 0..99 {
        short.live_bytes.put(288, step, 1e8);
    }
    let history = history(vec![short]);
    assert_eq!(Pool::of(&history, None, &TERMS).only_too_few(), Some(99));
}

proptest! {
    #[test]
    fn whatever_services_are_called_the_policy_is_valid(
        names in prop::collection::vec(any::<String>(), 1..8), kind in 0_usize..2, size in 8.0_f64..5000.0,
    ) {
        let kind = [Kind::Service, Kind::Scope][kind];
        let accounts = names.iter().enumerate();
        let accounts = accounts.map(|(i, name)| account(name, kind, &names[i / 2], size));
        suggested(&history(accounts.collect()), None);
    }
}

/// A place, as an agent would answer it, of a tenant that would like to write the policy.
fn place(
    entry: &str,
    thread: &str,
    never_interrupt: Option<&str>,
) -> heapwarden_client::live::Place {
    heapwarden_client::live::Place {
        frame: "a.Map#put\n[agent]".into(),
        entry: entry.to_owned().into(),
        thread: thread.to_owned().into(),
        unit: "java.util.concurrent.FutureTask#run".into(),
        count: 3,
        never_interrupt: never_interrupt.map(|line| line.to_owned().into()),
    }
}

#[test]
fn places_are_told_beside_the_limit_and_their_line_is_a_comment() {
    let with_places = |name: &str, kind, service: &str| Account {
        places: vec![
            place(
                "a.jobs.Evictor#run",
                "background",
                Some("never-interrupt = [\"a.jobs\"]"),
            ),
            place("a.web.Cart#doPost", "request", None),
        ],
        places_other: 9,
        ..account(name, kind, service, 40.0)
    };
    let history = history(vec![
        with_places("/shop", Kind::Service, "/shop"),
        with_places("orders", Kind::Package, ""),
    ]);
    let before = "[[account]]\nname = \"shop\"\nservice = \"/shop\"\n";
    for (before, mark) in [(None, "# "), (Some(before), "# suggested: ")] {
        let text = suggested(&history, before);
        let section = match before {
            Some(_) => text.split_once("service = ").map(|(_, rest)| rest),
            None => text.split_once("# /shop:").map(|(_, rest)| rest),
        };
        for said in [
            "  3 in a.Map#put\\u{a}[agent], background: a.jobs.Evictor#run in java.util.concurrent.FutureTask#run",
            "  3 in a.Map#put\\u{a}[agent], request: a.web.Cart#doPost in java.util.concurrent.FutureTask#run",
            "  9 at other places",
            "never-interrupt = [\"a.jobs\"]",
        ] {
            let line = format!("{mark}{said}\n");
            assert!(
                section.is_some_and(|text| text.contains(&line)),
                "{line}\n{text}"
            );
        }
        // The account that gets no limit has its places told at the top.
        let (head, _) = text.split_once("\n[[account]]").unwrap();
        assert!(head.contains("orders, which gets no limit here:"), "{text}");
        assert!(head.contains("never-interrupt = [\"a.jobs\"]"), "{text}");
        // Without its mark, the line is policy.
        let line = format!("{mark}never-interrupt");
        let (head, rest) = text.rsplit_once(&line).unwrap();
        let policy = policy_config::parse(&format!("{head}never-interrupt{rest}"))
            .policy
            .unwrap();
        assert!(!policy.accounts[0].interrupts.is_empty(), "{text}");
        assert!(
            policy_config::parse(&text).policy.unwrap().accounts[0]
                .interrupts
                .is_empty()
        );
        let Some(before) = before else { continue };
        // The next suggestion replaces it.
        let history = self::history(vec![account("/shop", Kind::Service, "/shop", 40.0)]);
        assert!(
            !suggested(&history, Some(&text)).contains("Evictor"),
            "{before}"
        );
    }
}

#[test]
fn routes_that_hold_the_most_are_told_beside_the_limit() {
    let route = |name: &str, live: u64| heapwarden_client::live::Route {
        route: name.to_owned().into(),
        calls_total: 70,
        live_bytes: live << 20,
        standard_error_bytes: 3 << 20,
        kept_bytes_per_call: 12 << 10,
        ..heapwarden_client::live::Route::default()
    };
    let shop = |more: Vec<heapwarden_client::live::Route>| {
        let mut routes: Vec<_> = (1..9_u64)
            .map(|n| route(&format!("GET /r{n}"), n % 8))
            .collect();
        routes.push(route("POST /x\nlimit = \"1MiB\"\n\u{202e}", 20));
        routes.push(route(&"POST /long".repeat(30), 9));
        routes.extend(more);
        Account {
            routes,
            ..account("/shop", Kind::Service, "/shop", 40.0)
        }
    };
    let unlimited = Account {
        live_bytes: crate::history::Column::default(),
        ..shop(vec![])
    };
    let mut both = history(vec![
        shop(vec![]),
        Account {
            name: "/cart".into(),
            service: "/cart".into(),
            ..unlimited
        },
    ]);
    // A second JVM with the same account: the same route counts once.
    let mut second = both.jvms[0].clone();
    second.accounts.truncate(1);
    both.jvms.push(second);
    let text = suggested(&both, None);
    let (head, section) = text.split_once("# /shop:").expect("its section");
    let told: Vec<&str> = (section.lines())
        .skip_while(|line| !line.contains("Its requests hold, by route:"))
        .take(7)
        .collect();
    assert_eq!(
        told[1],
        "#   POST /x\\u{a}limit = \"1MiB\"\\u{a}\\u{202e}: 40.0 ± 4.2 MiB, 12.0 KiB kept a call, 140 calls"
    );
    assert!(
        told[2].starts_with("#   POST /longPOST") && told[2].chars().count() < 160,
        "{told:?}"
    );
    assert!(
        told[3].starts_with("#   GET /r7: 14.0 ± 4.2 MiB"),
        "{told:?}"
    );
    assert_eq!(told[6], "#   4 other routes: 20.0 MiB");
    assert!(
        head.contains("/cart, which gets no limit here:") && head.contains("#   GET /r7: 7.0"),
        "{text}"
    );
    let nothing = suggested(
        &history(vec![account("/shop", Kind::Service, "/shop", 40.0)]),
        None,
    );
    assert!(!nothing.contains("by route"), "{nothing}");
}
