//! Tests of the findings about the policy and its file.

use super::super::test_inputs::{account, agent, with_file};
use super::*;

#[test]
fn a_rejected_reload_gives_the_agents_own_words() {
    let mut inputs = agent("heapwarden_policy_last_reload_successful 0\n", vec![]);
    let policy = &mut inputs.accounts.as_mut().unwrap().policy;
    policy.last_error = Some("heapwarden.toml:3:1: unknown key".into());
    policy.generation = 4;
    let found = reload_failed(&inputs);
    assert_eq!(found[0].evidence, "heapwarden.toml:3:1: unknown key");
    assert!(
        found[0].remedy.contains("Generation 4 is in force"),
        "{found:?}"
    );
    assert_eq!(
        reload_failed(&agent(
            "heapwarden_policy_last_reload_successful 1\n",
            vec![]
        )),
        []
    );
}

#[test]
fn the_file_on_disk_is_compared_with_what_is_in_force() {
    let mut shop = account("service", "shop");
    shop.limit_bytes = Some(256 << 20);
    let mut inputs = agent("", vec![shop]);
    inputs.accounts.as_mut().unwrap().policy.mode = "observe".into();
    let text = |limit: &str| {
        format!("[[account]]\nname = \"shop\"\nservice = \"/shop\"\nlimit = \"{limit}\"\n")
    };
    let inputs = with_file(inputs, &text("25%"));
    assert_eq!(file_not_in_force(&inputs), [], "25 % of 1 GiB is 256 MiB");
    let inputs = with_file(inputs, &text("128MiB"));
    let found = file_not_in_force(&inputs);
    assert!(
        found[0]
            .evidence
            .contains("128MiB in the file and 256MiB in force"),
        "{found:?}"
    );
    let enforcing =
        text("25%") + "[enforcement]\nmode = \"enforce\"\n[sampling]\ninterval = \"exact\"\n";
    let found = file_not_in_force(&with_file(inputs, &enforcing));
    assert!(found[0].evidence.contains("mode is enforce"), "{found:?}");
    assert!(found[0].evidence.contains("interval"), "{found:?}");
    let bad = with_file(agent("", vec![]), "x");
    assert_eq!(file_rejected(&bad)[0].evidence, "line 1: bad");
    assert_eq!(file_not_in_force(&bad), []);
}

#[test]
fn a_widened_interval_is_no_failed_reload() {
    let in_force = |bytes: u64, text: &str| {
        let mut inputs = agent("", vec![]);
        let accounts = inputs.accounts.as_mut().unwrap();
        accounts.policy.mode = "observe".into();
        accounts.sampling.interval_bytes = bytes;
        let inputs = with_file(inputs, text);
        (
            file_not_in_force(&inputs).len(),
            interval_widened(&inputs).len(),
        )
    };
    let budget = "[sampling]\ninterval = \"64KiB\"\n";
    let none = budget.to_owned() + "cpu-budget = \"none\"\n";
    assert_eq!(in_force(64 << 10, budget), (0, 0));
    assert_eq!(in_force(256 << 10, budget), (0, 1));
    assert_eq!(in_force(100 << 10, budget), (1, 0));
    assert_eq!(
        in_force(8 << 20, budget),
        (1, 0),
        "further than it is widened"
    );
    assert_eq!(in_force(256 << 10, &none), (1, 0));
    // Finer for small limits, if the policy leaves it to the agent.
    assert_eq!(in_force(8 << 10, budget), (1, 0));
    for (bytes, differs) in [(16 << 10, 0), (32 << 10, 0), (8 << 10, 1), (24 << 10, 1)] {
        assert_eq!(in_force(bytes, ""), (differs, 0), "{bytes}");
    }
}

#[test]
fn who_walks_stacks_for_principals_hears_of_it() {
    let remedy = |rest: &str| {
        let mut inputs = agent("", vec![]);
        let accounts = inputs.accounts.as_mut().unwrap();
        accounts.sampling.interval_bytes = 256 << 10;
        let text = format!("[sampling]\ninterval = \"64KiB\"\n{rest}");
        interval_widened(&with_file(inputs, &text)).remove(0).remedy
    };
    let packages = "[[account]]\nname = \"a\"\npackages = [\"a.*\"]\n";
    let payer = format!("principals = \"payer\"\n{packages}");
    let service = "[[account]]\nservice = \"/a\"\n";
    assert!(remedy(packages).contains("principals"));
    assert!(!remedy(&payer).contains("principals"));
    assert!(!remedy(service).contains("principals"));
}

#[test]
fn patterns_that_match_nothing_are_named() {
    let mut orders = account("package", "orders");
    orders.allocated_bytes_total = 0;
    let mut xml = account("library", "xml");
    xml.allocated_bytes_total = 0;
    let inputs = agent("", vec![orders, xml, account("service", "/shop")]);
    let names: Vec<String> = matches_nothing(&inputs)
        .into_iter()
        .map(|one| one.sentence)
        .collect();
    assert_eq!(
        names,
        [
            "nothing was ever charged to account orders",
            "library xml has allocated no live bytes"
        ]
    );
    let rules = "[[account]]\nservice = \"/sho\"\n[[account]]\nservice = \"/sh*\"\n";
    let found = matches_nothing(&with_file(
        agent("", vec![account("service", "/shop")]),
        rules,
    ));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].sentence.contains("/sho"), "{found:?}");
    assert_eq!(found[0].evidence, "services seen: /shop");
}

#[test]
fn a_rule_may_name_the_deployment() {
    for rule in ["shop", "sh*"] {
        let rules = format!("[[account]]\nservice = \"{rule}\"\n");
        let shop = account("service", "/shop");
        assert_eq!(
            matches_nothing(&with_file(agent("", vec![shop]), &rules)),
            []
        );
    }
}

#[test]
fn a_named_account_of_a_service_is_a_match() {
    let mut store = account("service", "store");
    store.service = "/shop".into();
    let rules = "[[account]]\nname = \"store\"\nservice = \"shop.war\"\n";
    assert_eq!(
        matches_nothing(&with_file(agent("", vec![store]), rules)),
        []
    );
}

#[test]
fn a_heap_of_nobody_is_said() {
    let mut nobody = account("reserved", "_unaccounted");
    nobody.charged_bytes = 90 << 20;
    let mut orders = account("package", "orders");
    orders.charged_bytes = 10 << 20;
    let mut inputs = agent("", vec![nobody, orders]);
    let found = services_not_recognised(&inputs);
    assert_eq!(found[0].evidence, "_unaccounted 90MiB of 100MiB charged");
    inputs.accounts.as_mut().unwrap().accounts[1].charged_bytes = 100 << 20;
    assert_eq!(services_not_recognised(&inputs), []);
}

#[test]
fn a_heap_of_nobody_beside_limits_is_said() {
    let mut nobody = account("reserved", "_unaccounted");
    nobody.charged_bytes = 300 << 20;
    let mut shop = account("service", "/shop");
    shop.charged_bytes = 10 << 20;
    let mut inputs = agent("", vec![nobody, shop]);
    assert_eq!(services_not_recognised(&inputs), [], "nothing is limited");
    let accounts = &mut inputs.accounts.as_mut().unwrap().accounts;
    accounts[1].limit_bytes = Some(1 << 30);
    accounts[0].charged_bytes = 90 << 20;
    assert_eq!(services_not_recognised(&inputs), [], "a server's own code");
    inputs.accounts.as_mut().unwrap().accounts[0].charged_bytes = 300 << 20;
    let found = services_not_recognised(&inputs);
    assert!(
        found[0].sentence.contains("no limit bounds it"),
        "{found:?}"
    );
}

#[test]
fn a_rule_for_every_service_that_binds_nobody_is_told_where_services_are_recognised() {
    let rules = "[[account]]\nservice = \"*\"\nlimit = \"1MiB\"\n";
    let found = matches_nothing(&with_file(agent("", vec![]), rules));
    assert!(found[0].remedy.contains("docs/install.md"), "{found:?}");
    let rules = "[[account]]\nservice = \"/shop*\"\nlimit = \"1MiB\"\n";
    let found = matches_nothing(&with_file(agent("", vec![]), rules));
    assert!(found[0].remedy.contains("context path"), "{found:?}");
}

/// The JSON lists accounts that the policy names before anything matches them.
#[test]
fn a_named_account_without_a_service_is_no_match() {
    let mut store = account("service", "store");
    store.allocated_bytes_total = 0;
    let rules = "[[account]]\nname = \"store\"\nservice = \"shop.war\"\nlimit = \"1MiB\"\n";
    let found = matches_nothing(&with_file(agent("", vec![store]), rules));
    assert_eq!(found.len(), 1);
    assert!(found[0].sentence.contains("shop.war"), "{found:?}");
}

#[test]
fn limits_are_compared_with_the_heap() {
    let limited = |name: &str, mib: u64| {
        let mut one = account("service", name);
        one.limit_bytes = Some(mib << 20);
        one
    };
    let found = limits_above_heap(&agent("", vec![limited("/a", 2048)]));
    assert_eq!(found[0].name, "limit-above-heap");
    let found = limits_above_heap(&agent("", vec![limited("/a", 600), limited("/b", 600)]));
    assert_eq!((found.len(), found[0].name), (1, "limits-overcommitted"));
    assert_eq!(limits_above_heap(&agent("", vec![limited("/a", 600)])), []);
    let mut tenant = limited("/a/tenant-1", 600);
    tenant.parent = Some("/a".into());
    let both = agent("", vec![limited("/a", 600), tenant]);
    assert_eq!(limits_above_heap(&both), [], "it is of the service's");
}

#[test]
fn observing_is_said_where_there_are_limits() {
    let mut one = account("service", "/a");
    one.limit_bytes = Some(1 << 20);
    one.would_refuse_total = 7;
    let mut inputs = agent("", vec![one]);
    assert_eq!(observes(&inputs), []);
    inputs.accounts.as_mut().unwrap().policy.mode = "observe".into();
    assert!(
        observes(&inputs)[0]
            .evidence
            .contains("7 refusals would have been")
    );
}
