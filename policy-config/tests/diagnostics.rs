//! Tests of the messages that a user reads: every rule of the policy file, its place and its hint.

use policy_config::{
    Charge, Door, Interrupt, Interval, Limit, Listen, MAX_CONTEXTS, MAX_DOOR_METHODS, MAX_SITES,
    Matcher, Mode, Policy, Principals, Reserve, Severity, Tasks, Throw, When, parse, parse_bytes,
};

/// All diagnostics of `text`, one rendered line each.
fn lines(text: &str) -> Vec<String> {
    let parsed = parse(text);
    let rejected = parsed.diagnostics.iter().any(|one| one.is_error());
    assert_eq!(parsed.policy.is_none(), rejected, "{text}");
    parsed
        .diagnostics
        .iter()
        .map(|one| one.render("p", text))
        .collect()
}

#[track_caller]
fn assert_lines(text: &str, expected: &[&str]) {
    assert_eq!(lines(text), expected, "{text}");
}

#[track_caller]
fn assert_line(text: &str, expected: &str) {
    assert_lines(text, &[expected]);
}

/// The text that each diagnostic underlines.
fn underlined(text: &str) -> Vec<&str> {
    parse(text)
        .diagnostics
        .iter()
        .map(|one| &text[one.span.clone()])
        .collect()
}

fn policy(text: &str) -> Policy {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.policy.expect("no diagnostics")
}

/// The example of the contract.
const CONTRACT: &str = r#"
[agent]
listen = "127.0.0.1:9464"      # host:port, port 0 picks one, "off" for none

[sampling]
interval = "64KiB"             # mean bytes between samples; "exact" = every allocation

[enforcement]
mode = "enforce"               # "observe" (default): count what would be refused

[[account]]
name = "shop"
service = "/shop"              # glob over context path or deployment name
soft-limit = "200MiB"
limit = "256MiB"               # "25%" of the maximum heap, or "none"
throw = "oom"                  # "oom" | "error" | "exception"

[[account]]                    # no name: one account for each service matched, named after it
service = "*"
limit = "25%"

[[account]]
name = "orders"
packages = ["com.acme.orders.*"]   # a.b = that package; a.b.* = it and all below

[[account]]
name = "xml"
packages = ["org.apache.xerces.*"]
charge = "caller"              # a library: whoever called it pays ("self" is the default)

[[account]]
scope = "tenant-*"             # names given through the Java API
limit = "64MiB"
"#;

#[test]
fn the_contract_example_is_read_whole() {
    let policy = policy(CONTRACT);
    assert_eq!(policy.agent.listen, Listen::default());
    assert_eq!(policy.sampling.interval, Interval::Bytes(65_536));
    assert_eq!(policy.enforcement.mode, Mode::Enforce);
    let [shop, services, orders, xml, tenants] = policy.accounts.as_slice() else {
        panic!("{:?}", policy.accounts);
    };
    assert_eq!(shop.name.as_deref(), Some("shop"));
    assert_eq!(shop.soft_limit, Limit::Bytes(200 << 20));
    assert_eq!(shop.limit, Limit::Bytes(256 << 20));
    assert_eq!(shop.throw, Throw::Oom);
    assert_eq!(services.name, None);
    assert_eq!(services.limit, Limit::PercentOfMaxHeap(25.0));
    assert_eq!(orders.charge, Charge::SelfPays);
    assert_eq!(orders.limit, Limit::None);
    assert_eq!(xml.charge, Charge::Caller);
    assert!(matches!(&tenants.matcher, Matcher::Scope(glob) if glob.as_str() == "tenant-*"));

    assert_eq!(policy.service_account(&["/shop", "shop.war"]), Some(0));
    assert_eq!(policy.service_account(&["/other"]), Some(1));
    assert_eq!(policy.scope_account("tenant-7"), Some(4));
    assert_eq!(policy.scope_account("/shop"), None);
    let packages = policy.package_table();
    assert_eq!(packages.lookup("org/apache/xerces/dom"), Some(3));
    assert_eq!(packages.lookup("com.acme.orders"), Some(2));
    assert_eq!(packages.lookup("com.acme"), None);
}

#[test]
fn an_empty_file_is_the_default_policy() {
    assert_eq!(policy(""), Policy::default());
    assert_eq!(policy("\u{feff}# only a comment\r\n"), Policy::default());
    assert_eq!(
        policy("[agent]\n[sampling]\n[enforcement]"),
        Policy::default()
    );
}

#[test]
fn every_setting_is_taken() {
    let policy = policy(
        "[agent]\nlisten = 'off'\nlisten-strict = true\n\
         [sampling]\ninterval = 'exact'\nprincipals = 'payer'\nmax-tracked = 4_096\n\
         [enforcement]\nevidence-budget = '12.5%'\nreserve = '20%'\nwhen = 'heap-is-short'\n\
         [[account]]\nservice = '/a*'\nlimit = 'none'\nthrow = 'exception'\n\
         door = 'auto'\nadmit = ['DELETE *', '* /logout']\nstatus = 429\ntasks = 'interrupt'\n\
         [[account]]\nscope = '*'\nlimit = '1MiB'\npriority = 2.5\n\
         door = ['a.C#m', 'a.C$D#n']\nrefuse-with = 'exception'\n\
         [[account]]\nname = 'off'\nservice = '/off'\ndoor = 'off'\n\
         [[leak]]\naccount = 'shop'\nclass = 'com.acme.Catalogue$Entry'",
    );
    assert_eq!(policy.enforcement.evidence_budget_percent, 12.5);
    assert_eq!(policy.enforcement.reserve, Reserve::Share(0.2));
    assert_eq!(policy.enforcement.when, When::HeapIsShort);
    assert_eq!(policy.agent.listen, Listen::Off);
    assert!(policy.agent.listen_strict && !Policy::default().agent.listen_strict);
    assert_eq!(policy.sampling.interval, Interval::Exact);
    assert_eq!(policy.sampling.principals, Principals::Payer);
    assert_eq!(policy.sampling.max_tracked, 4096);
    assert_eq!(policy.accounts[0].limit, Limit::None);
    assert_eq!(policy.accounts[0].throw, Throw::Exception);
    assert_eq!(policy.accounts[0].door, Door::Auto);
    let admit = &policy.accounts[0].admit;
    assert_eq!(admit.len(), 2);
    assert!(admit[0].matches("delete", "/cart/7") && admit[1].matches("POST", "/logout"));
    let [first, second, third] = policy.accounts.as_slice() else {
        panic!("{:?}", policy.accounts);
    };
    assert_eq!((first.status, first.tasks), (429, Tasks::Interrupt));
    assert_eq!((first.priority, first.refuse_with), (1.0, None));
    let methods: Vec<String> = (second.door.methods().iter())
        .map(ToString::to_string)
        .collect();
    assert_eq!(methods, ["a.C#m", "a.C$D#n"]);
    assert_eq!(second.door.methods()[1].class, "a.C$D");
    assert_eq!(second.refuse_with, Some(Throw::Exception));
    assert_eq!((second.priority, second.tasks), (2.5, Tasks::Spare));
    assert_eq!((second.status, second.admit.len()), (503, 0));
    assert_eq!(third.door, Door::Off);
    assert_eq!(policy.leaks.len(), 1);
    assert!(policy.leaks[0].matches("shop", "com.acme.Catalogue$Entry"));
}

#[test]
fn all_mistakes_are_found_in_one_pass() {
    let text = "\
[agent]
listen = 9464
[samplng]
[enforcement]
mode = \"enforced\"
[[account]]
name = \"shop\"
service = \"/shop\"
soft-limit = \"512MiB\"
limit = \"256MB\"
[[account]]
name = \"shop\"
packages = [\"com.acme*\", 7]
trow = \"oom\"
";
    assert_lines(
        text,
        &[
            "p:2:10: `listen` must be a string, not a whole number (write listen = \"127.0.0.1:9464\")",
            "p:3:2: unknown key `samplng` in the policy file (did you mean `sampling`?)",
            "p:5:8: `enforced` is no value of `mode` (did you mean \"enforce\"?)",
            "p:10:9: the unit `MB` is ambiguous (write MiB: sizes are in powers of 1024)",
            "p:12:8: the name `shop` is already taken (choose another, or merge the two accounts)",
            "p:13:13: `com.acme*`: `*` may only stand alone as the last part (\"com.acme.*\" matches that package and all below)",
            "p:13:26: `packages` must hold strings, not a whole number (write packages = [\"com.acme.orders.*\"])",
            "p:14:1: unknown key `trow` in [[account]] (did you mean `throw`?)",
        ],
    );
    assert_eq!(
        underlined(text),
        [
            "9464",
            "samplng",
            "\"enforced\"",
            "\"256MB\"",
            "\"shop\"",
            "\"com.acme*\"",
            "7",
            "trow"
        ]
    );
}

#[test]
fn syntax_errors_are_diagnostics() {
    assert_line(
        "[agent\nlisten = \"off\"",
        "p:1:7: unclosed table, expected `]`",
    );
    assert_line("a = 1\na = 2", "p:2:1: duplicate key");
    let two = lines("[sampling]\ninterval = 'x\n[agent]\nlisten = \"y\n");
    assert_eq!(two.len(), 2, "{two:?}");
    assert!(
        two[0].starts_with("p:2:") && two[1].starts_with("p:4:"),
        "{two:?}"
    );
}

#[test]
fn wrong_shapes_of_tables() {
    assert_line(
        "agent = 3",
        "p:1:9: `agent` must be a table, not a whole number (write [agent] on a line of its own, its keys below)",
    );
    assert_line(
        "[[agent]]",
        "p:1:1: `agent` must be one table, not an array (write [agent] in single brackets, once)",
    );
    assert_line(
        "[account]\nservice = '*'",
        "p:1:1: `account` must be an array of tables, not a table (write [[account]] in double brackets before each)",
    );
    assert_line(
        "account = [{service = '*'}, 'x']",
        "p:1:29: `account` must hold tables, not a string (write [[account]] in double brackets before each)",
    );
}

#[test]
fn keys_in_the_wrong_place_are_sent_home() {
    assert_lines(
        "limit = '1MiB'\n[agent]\nmode = 'observe'",
        &[
            "p:1:1: unknown key `limit` in the policy file (it belongs below [[account]])",
            "p:3:1: unknown key `mode` in [agent] (it belongs below [enforcement])",
        ],
    );
    assert_line(
        "[agent]\ncolour = 1",
        "p:2:1: unknown key `colour` in [agent] (the keys here are `listen` and `listen-strict`)",
    );
}

#[test]
fn unprintable_text_of_the_user_is_escaped() {
    assert_line(
        "\"a\\nforged: line\" = 1",
        "p:1:1: unknown key `a\\nforged: line` in the policy file (the keys here are `agent`, `sampling`, `enforcement`, `leaks`, `snapshots`, `privacy`, `exact`, `account` and `leak`)",
    );
}

#[test]
fn sampling_bounds() {
    let bounds = "the interval must be from 64B to 64MiB (\"64KiB\" suits most; \"exact\" takes every allocation)";
    for size in ["63B", "0", "64.5MiB", "1GiB"] {
        assert_line(
            &format!("[sampling]\ninterval = '{size}'"),
            &format!("p:2:12: {bounds}"),
        );
    }
    policy("[sampling]\ninterval = '64B'");
    policy("[sampling]\ninterval = '64MiB'");
    assert_line(
        "[sampling]\ninterval = 65536",
        "p:2:12: `interval` must be a string with a unit, not a whole number (write interval = \"65536B\" for that many bytes)",
    );
    assert_lines(
        "[sampling]\ninterval = 'exat'\nprincipals = 'none'",
        &[
            "p:2:12: `exat` is not a size (did you mean \"exact\"?)",
            "p:3:14: `none` is no value of `principals` (the choices are `full` and `payer`)",
        ],
    );
    for number in ["1023", "16000001", "-1", "99999999999999999999"] {
        assert_line(
            &format!("[sampling]\nmax-tracked = {number}"),
            "p:2:15: `max-tracked` is out of range (write a whole number from 1024 to 16000000)",
        );
    }
    assert_line(
        "[sampling]\nmax-tracked = '4096'",
        "p:2:15: `max-tracked` must be a whole number, not a string (write a whole number from 1024 to 16000000)",
    );
}

#[test]
fn the_evidence_budget_has_bounds() {
    let policy_with = |value: &str| format!("[enforcement]\nevidence-budget = {value}");
    for (value, percent) in [("'5%'", 5.0), ("'0.01%'", 0.01), ("' 50 %'", 50.0)] {
        let read = policy(&policy_with(value)).enforcement;
        assert_eq!(read.evidence_budget_percent, percent);
        assert_eq!(read.mode, Mode::Observe);
    }
    let hint =
        "write the share of wall time that collections for evidence may take, such as \"5%\"";
    for value in ["'0%'", "'0.009%'", "'50.1%'", "'101%'"] {
        assert_line(
            &policy_with(value),
            &format!("p:2:19: `evidence-budget` must be from 0.01% to 50% ({hint})"),
        );
    }
    for value in ["5", "none", "-1%", ""] {
        assert_line(
            &policy_with(&format!("'{value}'")),
            &format!("p:2:19: `{value}` is not a percentage ({hint})"),
        );
    }
    assert_line(
        &policy_with("5"),
        "p:2:19: `evidence-budget` must be a string, not a whole number (write evidence-budget = \"5%\")",
    );
    assert_lines(
        "[enforcement]\nevidence_budget = '5%'\n[sampling]\nevidence-budget = '5%'",
        &[
            "p:2:1: unknown key `evidence_budget` in [enforcement] (did you mean `evidence-budget`?)",
            "p:4:1: unknown key `evidence-budget` in [sampling] (it belongs below [enforcement])",
        ],
    );
}

#[test]
fn the_reserve_has_bounds() {
    let policy_with = |value: &str| format!("[enforcement]\nreserve = {value}");
    for (value, reserve) in [
        ("'auto'", Reserve::Auto),
        ("'12.5%'", Reserve::Share(0.125)),
        ("'0%'", Reserve::Share(0.0)),
        ("'100%'", Reserve::Share(1.0)),
    ] {
        let read = policy(&policy_with(value)).enforcement;
        assert_eq!(read.reserve, reserve);
    }
    let hint = "write the share of a limit that an account may use beyond it while its door is shut, \
                such as \"12.5%\", or \"auto\" for what the heap can give";
    for value in ["100.1%", "200%"] {
        assert_line(
            &policy_with(&format!("'{value}'")),
            &format!("p:2:11: `reserve` must be from 0% to 100% ({hint})"),
        );
    }
    // A share of the limit, not a size.
    for value in ["12.5", "8MiB", "none", "-1%"] {
        assert_line(
            &policy_with(&format!("'{value}'")),
            &format!("p:2:11: `{value}` is not a percentage ({hint})"),
        );
    }
    assert_line(
        &policy_with("12.5"),
        "p:2:11: `reserve` must be a string, not a decimal number (write reserve = \"auto\")",
    );
    assert_lines(
        "[enforcement]\nreserved = '5%'\n[[account]]\nservice = '*'\nreserve = '5%'",
        &[
            "p:2:1: unknown key `reserved` in [enforcement] (did you mean `reserve`?)",
            "p:5:1: unknown key `reserve` in [[account]] (it belongs below [enforcement])",
        ],
    );
}

#[test]
fn the_cpu_budget_has_bounds_and_can_be_none() {
    let policy_with = |value: &str| format!("[sampling]\ncpu-budget = {value}");
    for (value, percent) in [
        ("'1%'", Some(1.0)),
        ("'0.01%'", Some(0.01)),
        ("'50%'", Some(50.0)),
        ("'none'", None),
    ] {
        assert_eq!(
            policy(&policy_with(value)).sampling.cpu_budget_percent,
            percent
        );
    }
    let hint = "write the share of the process's CPU time that samples may take, such as \"0.5%\", \
                or \"none\" to keep the interval as it is";
    for value in ["'0%'", "'51%'"] {
        assert_line(
            &policy_with(value),
            &format!("p:2:14: `cpu-budget` must be from 0.01% to 50% ({hint})"),
        );
    }
    assert_line(
        &policy_with("'off'"),
        &format!("p:2:14: `off` is not a percentage ({hint})"),
    );
}

#[test]
fn a_switch_is_true_or_false() {
    assert_line(
        "[agent]\nlisten-strict = 'yes'",
        "p:2:17: `listen-strict` must be true or false, not a string (write listen-strict = true or listen-strict = false, without quotes)",
    );
}

#[test]
fn listen_addresses() {
    assert_line(
        "[agent]\nlisten = ':9464'",
        "p:2:10: `:9464` has no host (write \"127.0.0.1:9464\" for this machine only or \"0.0.0.0:9464\" for all)",
    );
    assert_line(
        "[agent]\nlisten = 'localhost:http'",
        "p:2:10: `http` is not a port (a port is a number from 0 (any free one) to 65535)",
    );
}

/// A service account with one more line.
fn account(line: &str) -> String {
    format!("[[account]]\nservice = '/a'\n{line}")
}

#[test]
fn limits() {
    assert_line(
        &account("limit = '101%'"),
        "p:3:9: a percentage of the heap must be above 0 and at most 100 (write a share of the maximum heap such as \"25%\")",
    );
    assert_line(
        &account("limit = '%'"),
        "p:3:9: `%` is not a percentage (write a share of the maximum heap such as \"25%\")",
    );
    assert_line(
        &account("limit = '0'"),
        "p:3:9: `limit` is zero (write \"none\" for no limit)",
    );
    assert_line(
        &account("limit = 'None'"),
        "p:3:9: `None` is not a size (did you mean \"none\"?)",
    );
    assert_line(
        &account("limit = 1.5"),
        "p:3:9: `limit` must be a string, not a decimal number (write limit = \"256MiB\")",
    );
    assert_line(
        &account("soft-limit = '2MiB'\nlimit = '1MiB'"),
        "p:4:9: the limit of 1MiB is below the soft limit of 2MiB (the soft limit warns before the limit refuses: exchange the two)",
    );
    assert_line(
        &account("limit = '10%'\nsoft-limit = '10.5%'"),
        "p:3:9: the limit of 10% is below the soft limit of 10.5% (the soft limit warns before the limit refuses: exchange the two)",
    );
    // Equal, or not comparable before the heap is known.
    for lines in [
        "limit = '1MiB'\nsoft-limit = '1MiB'",
        "limit = '1MiB'\nsoft-limit = '50%'",
        "limit = 'none'\nsoft-limit = '50%'",
        "limit = '1MiB'\nsoft-limit = 'none'",
    ] {
        policy(&account(lines));
    }
}

#[test]
fn names() {
    for (name, complaint) in [
        (
            "''",
            "the name is empty (give it a name, or remove the key to name the account after what it matches)",
        ),
        (
            "'_other'",
            "names that begin with `_` are reserved (choose a name without the underscore)",
        ),
        (
            "\"a\\tb\"",
            "the name contains control or invisible characters (remove them: it appears in logs and dashboards)",
        ),
        (
            "\"a\\u202eb\"",
            "the name contains control or invisible characters (remove them: it appears in logs and dashboards)",
        ),
        (
            "' a'",
            "the name begins or ends with a space (remove the space)",
        ),
    ] {
        assert_line(
            &account(&format!("name = {name}")),
            &format!("p:3:8: {complaint}"),
        );
    }
    let long = format!("name = '{}'", "ä".repeat(100));
    assert_eq!(
        policy(&account(&long)).accounts[0]
            .name
            .as_ref()
            .map(String::len),
        Some(200)
    );
    let longer = format!("name = '{}'", "ä".repeat(101));
    assert_line(
        &account(&longer),
        "p:3:8: the name is longer than 200 bytes (shorten it: it is a label of every metric)",
    );
}

#[test]
fn an_account_matches_exactly_one_kind_of_thing() {
    let none = "[[account]]\nname = 'a'";
    assert_line(
        none,
        "p:1:1: the account does not say what belongs to it (add one of service = \"/path\", packages = [\"a.b.*\"] or scope = \"name\")",
    );
    assert_eq!(underlined(none), ["[[account]]"]);
    assert_lines(
        "[[account]]\nname = 'a'\nservice = '/a'\nscope = 'a'\npackages = ['a']",
        &[
            "p:4:1: `scope` and `service` exclude each other (write an [[account]] for each)",
            "p:5:1: `packages` and `service` exclude each other (write an [[account]] for each)",
        ],
    );
    assert_line(
        "[[account]]\npackages = ['a.b']",
        "p:1:1: an account with `packages` needs a name (add name = \"…\": it appears in the metrics)",
    );
    assert_line(
        "[[account]]\nservice = ''",
        "p:2:11: the glob is empty (\"*\" matches every name)",
    );
    assert_line(
        "[[account]]\nname = 'a'\npackages = 'a.b'",
        "p:3:12: `packages` must be an array of strings, not a string (write packages = [\"com.acme.orders.*\"])",
    );
    assert_line(
        "[[account]]\nname = 'a'\npackages = []",
        "p:3:12: `packages` is empty (write packages = [\"com.acme.orders.*\"])",
    );
}

#[test]
fn charge_is_for_packages() {
    assert_line(
        &account("charge = 'caller'"),
        "p:3:1: `charge` applies only to an account with `packages` (remove it: a service or scope pays for itself)",
    );
    assert_line(
        "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'callers'",
        "p:4:10: `callers` is no value of `charge` (did you mean \"caller\"?)",
    );
}

#[test]
fn doors_without_methods_are_for_services() {
    assert_lines(
        &account("door = 'of'\nadmitt = ['GET *']"),
        &[
            "p:3:8: `of` is no value of `door` (did you mean \"off\"?)",
            "p:4:1: unknown key `admitt` in [[account]] (did you mean `admit`?)",
        ],
    );
    let text = "[[account]]\nname = 'x'\npackages = ['x']\ndoor = 'auto'\n\
                [[account]]\nscope = 't'\nadmit = ['DELETE *']\ndoor = 'off'";
    let hint = "(remove it: only requests for a service can be turned away)";
    let door = "a `door` without methods applies only to an account with `service` \
                (remove it, or name the methods: door = [\"com.acme.Shop#order\"])";
    assert_lines(
        text,
        &[
            &format!("p:4:1: {door}"),
            &format!("p:7:1: `admit` applies only to an account with `service` {hint}"),
            &format!("p:8:1: {door}"),
        ],
    );
    assert_eq!(underlined(text), ["door", "admit", "door"]);
}

#[test]
fn doors_of_methods_are_read_and_checked() {
    for kind in [
        "service = '/a'",
        "scope = 't'",
        "name = 'x'\npackages = ['x']",
    ] {
        let read = policy(&format!("[[account]]\n{kind}\ndoor = ['a.b.C#m']"));
        let methods = read.accounts[0].door.methods();
        assert_eq!((methods.len(), methods[0].method.as_str()), (1, "m"));
    }
    let form = "(write the full name of the class, a `#` and the method: \"com.acme.Shop#order\")";
    assert_lines(
        &account(
            "door = ['a.b.C', '*.b.C#m', 'a.b.*', 'a.C.D#m', 7, 'a.C#m']\nrefuse-with = 'oom'",
        ),
        &[
            &format!("p:3:9: `a.b.C` is not a method of a class {form}"),
            &format!("p:3:18: `*.b.C#m` is not a method of a class {form}"),
            &format!("p:3:29: `a.b.*` is not a method of a class {form}"),
            "p:3:38: `a.C.D#m`: a class inside a class is written with a `$` (write \"a.C$D#m\")",
            "p:3:49: `door` must hold strings, not a whole number (write door = [\"com.acme.Shop#order\"])",
        ],
    );
    assert_line(
        &account("door = []"),
        "p:3:8: `door` is empty (write door = [\"com.acme.Shop#order\"])",
    );
    assert_line(
        &account("door = 5"),
        "p:3:8: `door` must be a string, not a whole number (write door = \"auto\")",
    );
    let methods = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("'a.C#m{n}'")).collect();
        account(&format!("door = [{}]", names.join(", ")))
    };
    let most = policy(&methods(MAX_DOOR_METHODS));
    assert_eq!(most.accounts[0].door.methods().len(), MAX_DOOR_METHODS);
    let too_many = lines(&methods(MAX_DOOR_METHODS + 3));
    assert_eq!(too_many.len(), 1, "{too_many:?}");
    assert!(too_many[0].contains("a `door` has at most 32 methods (name those"));
}

#[test]
fn what_leaves_a_door_needs_a_door_of_methods() {
    let message = "`refuse-with` applies only to a `door` of methods \
                   (name them: door = [\"com.acme.Shop#order\"]; `throw` is for refusals elsewhere)";
    for door in ["", "door = 'auto'\n"] {
        let line = if door.is_empty() { 3 } else { 4 };
        assert_line(
            &account(&format!("{door}refuse-with = 'exception'")),
            &format!("p:{line}:1: {message}"),
        );
    }
    assert_line(
        &account("door = ['a.C#m']\nrefuse-with = 'exeption'"),
        "p:4:15: `exeption` is no value of `refuse-with` (did you mean \"exception\"?)",
    );
}

#[test]
fn a_status_is_503_or_429_and_for_services() {
    for status in [503, 429] {
        let read = policy(&account(&format!("status = {status}")));
        assert_eq!(read.accounts[0].status, status);
    }
    let hint = "(write status = 503 or status = 429, without quotes)";
    for number in ["500", "0", "-1", "99999999999"] {
        assert_line(
            &account(&format!("status = {number}")),
            &format!("p:3:10: `status` must be 503 or 429 {hint}"),
        );
    }
    assert_line(
        &account("status = '429'"),
        &format!("p:3:10: `status` must be a whole number, not a string {hint}"),
    );
    assert_line(
        "[[account]]\nscope = 't'\nstatus = 429",
        "p:3:1: `status` applies only to an account with `service` (remove it: only requests for a service can be turned away)",
    );
}

#[test]
fn a_priority_is_a_number_above_zero() {
    let limited = |priority: &str| account(&format!("limit = '1MiB'\npriority = {priority}"));
    for (text, priority) in [
        ("1", 1.0),
        ("0.001", 0.001),
        ("1000", 1000.0),
        ("1e2", 100.0),
    ] {
        assert_eq!(policy(&limited(text)).accounts[0].priority, priority);
    }
    let hint = "(write a number above 0, at most 1000: an account of 2.0 counts twice as much as one of 1.0)";
    for text in ["0", "-1.5", "1000.5", "nan", "inf", "99999999999999999999"] {
        assert_line(
            &limited(text),
            &format!("p:4:12: `priority` is out of range {hint}"),
        );
    }
    assert_line(
        &limited("'high'"),
        &format!("p:4:12: `priority` must be a number, not a string {hint}"),
    );
}

#[test]
fn words_of_calm_enforcement() {
    assert_line(
        "[enforcement]\nwhen = 'heap_is_short'",
        "p:2:8: `heap_is_short` is no value of `when` (did you mean \"heap-is-short\"?)",
    );
    assert_line(
        &account("tasks = 'interupt'"),
        "p:3:9: `interupt` is no value of `tasks` (did you mean \"interrupt\"?)",
    );
    let named = policy("[enforcement]\nwhen = 'always'").enforcement;
    assert_eq!(named.when, When::Always);
}

#[test]
fn what_a_door_lets_in_is_checked() {
    let text =
        account("admit = ['DELETE', 'DELETE,PUT *', 'GET logout', 'GET /a /b', 7, 'GET /ok']");
    assert_lines(
        &text,
        &[
            "p:3:10: `DELETE`: a method and a path are wanted (write both, such as \"DELETE *\" or \"* /logout\")",
            "p:3:20: `DELETE,PUT *`: the method is not a word such as GET, and not `*` (write the method first: \"DELETE *\"; `*` stands for every method)",
            "p:3:36: `GET logout`: the path does not begin with `/` or `*` (write the path inside the application, such as \"* /logout\", or * for every path)",
            "p:3:50: `GET /a /b`: the path contains white space (write an entry for each path, and ? for a space in a path)",
            "p:3:63: `admit` must hold strings, not a whole number (write admit = [\"DELETE *\"])",
        ],
    );
    assert_eq!(
        underlined(&text),
        [
            "'DELETE'",
            "'DELETE,PUT *'",
            "'GET logout'",
            "'GET /a /b'",
            "7"
        ]
    );
    assert_line(
        &account("admit = 'DELETE *'"),
        "p:3:9: `admit` must be an array of strings, not a string (write admit = [\"DELETE *\"])",
    );
    let long = format!(
        "admit = ['{} *', '* /{}']",
        "X".repeat(41),
        "x".repeat(1000)
    );
    let found = lines(&account(&long));
    assert!(
        found[0].contains("the method is longer than 40 bytes"),
        "{found:?}"
    );
    assert!(
        found[1].contains("the glob is longer than 1000 bytes"),
        "{found:?}"
    );
    let hostile = account("admit = [\"GET /\\n\", \"GET /a\\u202e\"]");
    assert_line(
        &hostile,
        "p:3:21: `GET /a\\u{202e}`: the glob contains control or invisible characters (remove them)",
    );
}

#[test]
fn a_package_has_one_owner() {
    let text = "[[account]]\nname = 'a'\npackages = ['x.*']\n\
                [[account]]\nname = 'b'\npackages = ['x.*', 'x']";
    assert_line(
        text,
        "p:6:13: `x.*` already belongs to another account (leave it to one of them, or name a package below)",
    );
    let related = parse(text).diagnostics[0].related.clone().unwrap();
    assert_eq!(&text[related.span], "'x.*'");
}

#[test]
fn warnings_do_not_reject() {
    for (text, expected) in [
        (
            "[[account]]\nname = 'a'\npackages = ['x', 'x']",
            "p:3:18: warning: `x` is given twice (remove one)",
        ),
        (
            "[[account]]\nname = 'a'\npackages = ['x.Order']",
            "p:3:13: warning: `x.Order` looks like a class (patterns name packages; a class has no account of its own)",
        ),
        (
            "[[account]]\nservice = '*'\ndoor = 'off'\nadmit = ['DELETE *']",
            "p:4:1: warning: with door = \"off\", `admit` is only for a program that asks by the Java API (remove it if yours does not, or use door = \"auto\")",
        ),
        (
            "[[account]]\nservice = '*'\ndoor = 'off'\nstatus = 429",
            "p:4:1: warning: with door = \"off\", `status` has no effect (remove it, or use door = \"auto\")",
        ),
        (
            "[[account]]\nservice = '*'\ndoor = ['a.C#m', 'a.C#m']",
            "p:3:18: warning: `a.C#m` is given twice (remove one)",
        ),
        (
            "[[account]]\nservice = '*'\npriority = 2",
            "p:3:1: warning: `priority` has no effect without a `limit` (add limit = \"…\", or remove it)",
        ),
        (
            "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'caller'\ndoor = ['y.C#m']",
            "p:5:1: warning: `door` has no effect where the callers pay (limit the callers' accounts, or use charge = \"self\")",
        ),
        (
            "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'caller'\npriority = 2",
            "p:5:1: warning: `priority` has no effect where the callers pay (limit the callers' accounts, or use charge = \"self\")",
        ),
        (
            "[[account]]\nservice = '*'\nadmit = ['* /*']",
            "p:3:10: warning: `* /*` lets in every request (name what frees memory, or write door = \"off\")",
        ),
        (
            "[[account]]\nservice = '*'\nadmit = ['DELETE *', 'delete *']",
            "p:3:22: warning: `delete *` is given twice (remove one)",
        ),
        (
            "[[account]]\nservice = '*'\n[[account]]\nservice = '/shop'",
            "p:4:11: warning: no service ever gets to this account (the first match in file order wins: move this account up)",
        ),
        (
            "[[account]]\nscope = 'a'\n[[account]]\nscope = 'a'\n[[account]]\nservice = 'a'",
            "p:4:9: warning: no scope ever gets to this account (the first match in file order wins: move this account up)",
        ),
        (
            "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'caller'\nlimit = '1MiB'",
            "p:5:1: warning: `limit` has no effect where the callers pay (limit the callers' accounts, or use charge = \"self\")",
        ),
        (
            "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'caller'\nnever-interrupt = ['y']",
            "p:5:1: warning: `never-interrupt` has no effect where the callers pay (limit the callers' accounts, or use charge = \"self\")",
        ),
        (
            "[[account]]\nname = 'x'\npackages = ['x']\ncharge = 'caller'\nwork = ['y']",
            "p:5:1: warning: `work` has no effect where the callers pay (limit the callers' accounts, or use charge = \"self\")",
        ),
        (
            "[[account]]\nservice = '*'\nwork = ['a.C#m', 'a.C#m']",
            "p:3:18: warning: `a.C#m` is given twice (remove one)",
        ),
        (
            "[[account]]\nservice = '*'\ninterrupt-through = ['java.lang.invoke.*']",
            "p:3:22: warning: `java.lang.invoke.*` is never interrupted (remove it: an error there would harm other accounts too)",
        ),
        (
            "[[account]]\nservice = '*'\nnever-interrupt = ['a', 'a']",
            "p:3:25: warning: `a` is given twice (remove one)",
        ),
        (
            "[[account]]\nservice = '*'\nnever-interrupt = ['a.Tx']",
            "p:3:20: warning: `a.Tx` looks like a class (patterns name packages: this matches no class)",
        ),
    ] {
        assert_line(text, expected);
        assert_eq!(parse(text).diagnostics[0].severity, Severity::Warning);
        assert!(parse(text).policy.is_some());
    }
}

#[test]
fn units_of_work_are_read_and_checked() {
    let text = "[[account]]\nservice = '*'\nwork = ['org.h2.server.TcpServerThread#process', 'com.acme.jobs.*']";
    let policy = parse(text).policy.unwrap();
    let table = policy.accounts[0].interrupts.table();
    assert!(table.is_work("org.h2.server.TcpServerThread", "process"));
    assert!(!table.is_work("org.h2.server.TcpServerThread", "run"));
    assert!(table.is_work("com.acme.jobs.nightly.Job", "run"));
    assert_lines(
        "[[account]]\nservice = '*'\nwork = ['a.b#m', 'a.C.D']",
        &[
            "p:3:9: `a.b` is not the name of a class (write the full name of the class: \"com.acme.Loop#step\")",
            "p:3:18: `a.C.D`: a class inside a class is written with a `$` (write \"a.C$D\")",
        ],
    );
    assert_line(
        "[[account]]\nservice = '*'\nwork = []",
        "p:3:8: `work` is empty (write work = [\"com.acme.Loop#step\"])",
    );
}

#[test]
fn where_threads_may_be_interrupted_is_read_and_checked() {
    let text = "[[account]]\nservice = '*'\ninterrupt-through = ['java.util.concurrent.*']\n\
                never-interrupt = ['com.acme.tx.*', 'com.acme.io']";
    let policy = parse(text).policy.unwrap();
    let table = policy.accounts[0].interrupts.table();
    assert_eq!(
        table.lookup("java.util.concurrent"),
        Some(Interrupt::Through)
    );
    assert_eq!(table.lookup("com/acme/tx/log"), Some(Interrupt::Never));
    assert_eq!(table.lookup("com.acme.io.x"), None);
    assert_lines(
        "[[account]]\nservice = '*'\ninterrupt-through = ['a.*', '*']\nnever-interrupt = ['a.*']",
        &[
            "p:3:29: `*` would take in every package (name the packages you mean, such as \"com.acme.*\")",
            "p:4:20: `a.*` stands in `interrupt-through` too (decide for one: it may be interrupted, or never)",
        ],
    );
    assert_line(
        "[[account]]\nservice = '*'\nnever-interrupt = []",
        "p:3:19: `never-interrupt` is empty (write never-interrupt = [\"com.acme.tx.*\"])",
    );
}

#[test]
fn paths_of_suspects_are_off_or_forked_within_a_budget() {
    let parsed = parse("[leaks]\npaths = 'forked'\npaths-per-day = 9");
    let settings = parsed.policy.expect("it is right").leak_settings;
    assert_eq!(settings.paths, policy_config::LeakPaths::Forked);
    assert_eq!(settings.paths_per_day, 9);
    let default = parse("").policy.expect("it is right").leak_settings;
    assert_eq!(default.paths, policy_config::LeakPaths::Off);
    let found = lines("[leaks]\npaths = 'fork'\npaths-per-day = 0");
    assert!(found[0].contains("did you mean \"forked\"?"), "{found:?}");
    assert!(found[1].contains("paths-per-day"), "{found:?}");
}

#[test]
fn contexts_are_packages_of_no_jdk() {
    let wanted = policy("[exact]\ncontexts = ['com.acme.*', 'javax.mail', 'sunny']").exact;
    assert!(wanted.is_wanted() && !wanted.accounts);
    for (package, has) in [
        ("com.acme", true),
        ("com/acme/cart", true),
        ("com.acmecorp", false),
        ("sunny", true),
        ("sunny.side", false),
    ] {
        assert_eq!(wanted.has_contexts_of(package), has, "{package}");
    }
    assert!(!policy("[exact]\ncontexts = []").exact.is_wanted());
    assert_lines(
        "[exact]\ncontexts = ['java.util.*', 'sun', 'a.*', 'a.*', 'b.Cart', '*', 7]",
        &[
            "p:2:13: `java.util.*` is a part of the JDK (name packages of your program or its libraries; what the JDK allocates for them is counted by `accounts`)",
            "p:2:28: `sun` is a part of the JDK (name packages of your program or its libraries; what the JDK allocates for them is counted by `accounts`)",
            "p:2:42: warning: `a.*` stands here twice (remove one)",
            "p:2:49: warning: `b.Cart` looks like a class (patterns name packages, of which all classes have contexts)",
            "p:2:59: `*` would claim every package, the JDK's too (name the packages you mean, such as \"com.acme.*\"; what no account matches is shown as _unaccounted)",
            "p:2:64: `contexts` must hold strings, not a whole number (write contexts = [\"com.acme.*\"])",
        ],
    );
    assert!(
        policy("[exact]\ncontexts = ['a']\nbytecodes = true")
            .exact
            .bytecodes
    );
    assert_line(
        "[exact]\nbytecodes = true",
        "p:2:1: warning: `bytecodes` counts nothing without `contexts` (name packages: contexts = [\"com.acme.*\"])",
    );
    let many: Vec<String> = (0..=MAX_CONTEXTS).map(|n| format!("'a.p{n}'")).collect();
    let text = format!("[exact]\ncontexts = [{}]", many.join(","));
    assert_eq!(underlined(&text), ["'a.p100'"]);
}

#[test]
fn sites_are_globs_over_accounts() {
    assert_lines("[leaks]\nsites = ['shop', 'tenant-*', '_unaccounted']", &[]);
    assert_lines("[leaks]\nsites = []", &[]);
    assert_lines(
        "[leaks]\nsites = ['shop', '', 7, 'shop']\nsite = 1\nclass = 'x'",
        &[
            "p:2:18: the glob is empty (\"*\" matches every name)",
            "p:2:22: `sites` must hold strings, not a whole number (write sites = [\"shop\"])",
            "p:2:25: warning: `shop` stands here twice (remove one)",
            "p:3:1: unknown key `site` in [leaks] (did you mean `sites`?)",
            "p:4:1: unknown key `class` in [leaks] (it belongs below [[leak]])",
        ],
    );
    assert_line(
        "[[leaks]]\nsites = ['shop']",
        "p:1:1: `leaks` must be one table, not an array (write [leaks] in single brackets, once)",
    );
    let many: Vec<String> = (0..=MAX_SITES).map(|n| format!("'a{n}'")).collect();
    let parsed = parse(&format!("[leaks]\nsites = [{}]", many.join(",")));
    assert!(parsed.policy.is_none());
}

#[test]
fn an_acknowledged_leak_names_account_and_class() {
    assert_lines(
        "[[leak]]\naccount = '_unaccounted'\nclass = 'byte[]'\n[[leak]]\naccount = '*'\nclass = 'a.B'",
        &[],
    );
    assert_lines(
        "[[leak]]\nclass = 'a.B'\n[[leak]]\naccount = 'shop'\n[[leak]]",
        &[
            "p:1:1: the leak does not name its `account` (add account = \"shop\")",
            "p:3:1: the leak does not name its `class` (add class = \"com.acme.Catalogue$Entry\")",
            "p:5:1: the leak does not name its `account` (add account = \"shop\")",
            "p:5:1: the leak does not name its `class` (add class = \"com.acme.Catalogue$Entry\")",
        ],
    );
    assert_lines(
        "[[leak]]\naccount = ''\nclass = 3\nservice = 'x'",
        &[
            "p:2:11: the glob is empty (\"*\" matches every name)",
            "p:3:9: `class` must be a string, not a whole number (write class = \"com.acme.Catalogue$Entry\")",
            "p:4:1: unknown key `service` in [[leak]] (it belongs below [[account]])",
        ],
    );
    assert_line(
        "[leak]\naccount = 'shop'\nclass = 'a.B'",
        "p:1:1: `leak` must be an array of tables, not a table (write [[leak]] in double brackets before each)",
    );
}

#[test]
fn an_acknowledged_leak_that_hides_too_much_or_nothing_is_a_warning() {
    for (class, warning) in [
        (
            "*",
            "this acknowledges every leak of the account, also those that nobody has seen yet (name the classes, such as \"com.acme.Catalogue$Entry\")",
        ),
        (
            "com/acme/Session",
            "`com/acme/Session` matches no class: packages are separated by dots (write \"com.acme.Session\")",
        ),
        (
            "[Ljava/lang/String;",
            "`[Ljava/lang/String;` matches no class: arrays are named as in Java's source (write \"byte[]\" or \"java.lang.String[]\")",
        ),
    ] {
        let text = format!("[[leak]]\naccount = 'shop'\nclass = '{class}'");
        assert_line(&text, &format!("p:3:9: warning: {warning}"));
        assert_eq!(underlined(&text), [format!("'{class}'")]);
    }
    let twice = "[[leak]]\naccount = 'a'\nclass = 'b'\n".repeat(2);
    assert_line(
        &twice,
        "p:4:1: warning: b of account a is acknowledged twice (remove one)",
    );
    assert_eq!(
        parse(&twice).policy.map(|policy| policy.leaks.len()),
        Some(1)
    );
}

#[test]
fn floods_are_bounded() {
    let text: String = (0..1000).map(|key| format!("k{key} = 1\n")).collect();
    let diagnostics = parse(&text).diagnostics;
    assert_eq!(diagnostics.len(), policy_config::MAX_DIAGNOSTICS + 1);
    assert_eq!(
        diagnostics.last().unwrap().message,
        "900 more problems are not shown"
    );

    let text = "[[account]]\nservice = 'a'\n".repeat(10_001);
    let parsed = parse(&text);
    assert!(parsed.policy.is_none());
    let error = parsed.first_error().unwrap();
    assert_eq!(
        error.message,
        "10001 [[account]] tables are more than the 10000 allowed"
    );
    assert_eq!(error.line(&text), 20_001);

    let text = format!("#{}", "x".repeat(policy_config::MAX_FILE_BYTES));
    let expected = "p:1:1: the file is larger than 1MiB (use globs and package patterns that cover several at once)";
    assert_line(&text, expected);
    let (source, parsed) = parse_bytes(text.as_bytes());
    assert_eq!(parsed.diagnostics[0].render("p", &source), expected);
    policy(&text[..policy_config::MAX_FILE_BYTES]);
}

#[test]
fn a_file_of_nothing_but_mistakes_is_read_in_a_moment() {
    let start = std::time::Instant::now();
    for mistake in ["[[account]]\nlimit = 1\n", "x\n", "'\n", "[a]\nb = 1\n"] {
        let text = mistake.repeat(policy_config::MAX_FILE_BYTES / mistake.len());
        let parsed = parse(&text);
        assert!(parsed.first_error().is_some());
        assert!(parsed.diagnostics.len() <= policy_config::MAX_DIAGNOSTICS + 1);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
}

#[test]
fn a_large_file_is_read_in_a_moment() {
    let text: String = (0..10_000)
        .map(|index| format!("[[account]]\nname = 'n{index}'\npackages = ['a.b{index}.*']\n"))
        .collect();
    assert!(text.len() < policy_config::MAX_FILE_BYTES);
    let start = std::time::Instant::now();
    assert_eq!(policy(&text).accounts.len(), 10_000);
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn other_encodings_are_one_error() {
    let bytes = "name = 'Bücher'\nx = 'é'".encode_utf16();
    let bytes: Vec<u8> = bytes.flat_map(u16::to_le_bytes).collect();
    let (source, parsed) = parse_bytes(&bytes);
    assert!(parsed.policy.is_none());
    let line = parsed.diagnostics[0].render("p", &source);
    assert!(
        line.ends_with("the file is not UTF-8 text (save it as UTF-8)"),
        "{line}"
    );

    let (source, parsed) = parse_bytes(b"a = '\xe4'\n");
    let only = &parsed.diagnostics[0];
    assert_eq!(&source[only.span.clone()], "\u{fffd}");
    assert_eq!((only.line(&source), only.column(&source)), (1, 6));
}

#[test]
fn values_are_masked_unless_the_policy_allows_them() {
    let privacy = |text: &str| parse(text).policy.expect("it is right").privacy;
    assert!(!privacy("").values && !privacy("[privacy]").values);
    assert!(privacy("[privacy]\nvalues = true").values);
    let found = lines("[privacy]\nvalue = true");
    assert!(found[0].contains("did you mean `values`?"), "{found:?}");
    let found = lines("[privacy]\nvalues = 'yes'");
    assert!(found[0].contains("p:2:10"), "{found:?}");
    let found = lines("[leaks]\nvalues = true");
    assert!(found[0].contains("[privacy]"), "{found:?}");
    // A policy that cannot be read shows nothing.
    assert!(parse("[privacy]\nvalues = 1").policy.is_none());
}
