//! Tests of the report as its reader sees it.

use super::*;

fn asked(text: &str) -> Asked<Leaks> {
    Asked::at("9464", Ok(Answer::of(text, None)))
}

fn written(found: &[Asked<Leaks>]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    write(found, &mut out, &mut err).unwrap();
    (
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
    )
}

const DOCUMENT: &str = r#"{"at":"2026-11-24T08:00:00Z","horizon_seconds":2400,"undecided":null,"suspects":[
    {"account":"shop","class":"com.acme.Session","live_bytes":59034828,"live_standard_error_bytes":1258291,
     "growth_bytes_per_second":100352.0,"growth_standard_error":6246.4,"since_seconds":290,
     "window_seconds":600,"objects":12345,"generations":37,
     "course":[{"seconds_ago":605,"live_bytes":9,"generations":2},{"seconds_ago":300,"live_bytes":9,"generations":19},
       {"seconds_ago":5,"live_bytes":9,"generations":37}],"with":["byte[]","java.util.HashMap$Node"],
     "sites":[{"frames":["com.acme.Cart.add(Cart.java:41)","com.acme.web.CartServlet.doPost(CartServlet.java:77)"],
       "share":0.93,"live_bytes":5},{"frames":["com.acme.Cart.merge(Cart.java:88)"],"share":0.07}],
     "exhausts":{"what":"limit","earliest_seconds":10900,"latest_seconds":17900}},
    {"account":"tenant\u001b-7","class":"x.Y","live_bytes":10,"growth_bytes_per_second":-5.0,
     "exhausts":{"what":"heap","earliest_seconds":32400,"latest_seconds":null}}],
    "growing":[{"account":"shop","class":"com.acme.Product","why":"turnover","live_bytes":1048576,
     "growth_bytes_per_second":2048.0}],
    "acknowledged":[{"account":"shop","class":"com.acme.Catalogue$Entry","why":"acknowledged",
     "live_bytes":2097152,"growth_bytes_per_second":512.0}],"omitted":3}"#;

#[test]
fn suspects_with_everything_to_say() {
    let (out, err) = written(&[asked(DOCUMENT)]);
    let expected = "\
127.0.0.1:9464: 2 suspects; the longest window so far is 40 min
  ACCOUNT         CLASS               LIVE ± ERROR  GROWTH/S ± ERROR  SINCE  WINDOW  OBJECTS  GENERATIONS  FORECAST
  shop            com.acme.Session  56.3 ± 1.2 MiB    98.0 ± 6.1 KiB  4 min  10 min    12345           37  limit full in 3 h to 5 h
  tenant\\u{1b}-7  x.Y                     10 ± 0 B           0 ± 0 B    0 s     0 s        0            0  heap not full before 9 h
  com.acme.Session of shop:
    with it grow byte[], java.util.HashMap$Node
    generations with live instances in 10 min: 2, 19, 37
     93%  com.acme.Cart.add(Cart.java:41)
          com.acme.web.CartServlet.doPost(CartServlet.java:77)
    7.0%  com.acme.Cart.merge(Cart.java:88)
  x.Y of tenant\\u{1b}-7:
    where it is allocated is not known yet: stacks are taken of suspects only
  growth that is intended can be acknowledged in the policy: [[leak]] with its account and class
  grows, and is no suspect:
    ACCOUNT  CLASS              LIVE  GROWTH/S  WHY
    shop     com.acme.Product  1 MiB    +2 KiB  turnover: old instances die too
  acknowledged in the policy:
    ACCOUNT  CLASS                      LIVE  GROWTH/S  WHY
    shop     com.acme.Catalogue$Entry  2 MiB    +512 B  acknowledged in the policy
  and 3 more that the agent does not list
";
    assert_eq!(out, expected, "{out}");
    assert_eq!(err, "");
}

#[test]
fn without_suspects_the_verdict_is_one_line() {
    let none = r#"{"at":"","horizon_seconds":43200,"undecided":null,"suspects":[],"growing":[]}"#;
    let (out, _) = written(&[asked(none)]);
    assert_eq!(
        out,
        "127.0.0.1:9464: no suspects; the longest window so far is 12 h\n"
    );
    let young = r#"{"at":"","horizon_seconds":0,"undecided":"2 of 4 covering collections so far\n",
        "suspects":[],"growing":[]}"#;
    let (out, _) = written(&[asked(young)]);
    assert_eq!(
        out,
        "127.0.0.1:9464: no verdict yet: 2 of 4 covering collections so far\\u{a}\n"
    );
    let blind = Asked::at("9464", Ok(Answer::of(none, Some("no sampling"))));
    let (out, _) = written(&[blind]);
    assert!(
        out.contains("no verdict: the agent keeps no accounts: no sampling"),
        "{out}"
    );
}

#[test]
fn one_that_cannot_be_read_does_not_hide_the_others() {
    let found = [
        Asked::at("9465", Err("nothing listens on 127.0.0.1:9465".into())),
        asked(DOCUMENT),
    ];
    let (out, err) = written(&found);
    assert!(out.starts_with("127.0.0.1:9464: 2 suspects"), "{out}");
    assert_eq!(err, "127.0.0.1:9465: nothing listens on 127.0.0.1:9465\n");
}

#[test]
fn an_endless_answer_is_bounded_and_drives_nothing() {
    let site = format!(
        r#"{{"frames":[{}],"share":1e9}}"#,
        vec!["\"a\\u001b[2J\\n\""; 500].join(",")
    );
    let suspect = format!(
        r#"{{"account":"\u202ea","class":"{}","with":[{}],"sites":[{}],"growth_bytes_per_second":1e300}}"#,
        "b".repeat(10_000),
        vec!["\"c\""; 500].join(","),
        vec![site; 50].join(",")
    );
    let text = format!(
        r#"{{"at":"","horizon_seconds":1,"undecided":null,"suspects":[{}],"growing":[{}]}}"#,
        vec![suspect; 300].join(","),
        vec![r#"{"why":"\u0007"}"#; 300].join(",")
    );
    let (out, _) = written(&[asked(&text)]);
    assert!(out.contains("  and 200 more suspects\n"), "{out}");
    assert!(out.lines().count() < MAX_SUSPECTS * (MAX_SITES * MAX_FRAMES + 4) + MAX_OTHERS + 10);
    assert!(out.lines().all(|line| line.len() < 1000));
    assert!(
        !out.chars()
            .any(|one| one != '\n' && printable::is_hidden(one))
    );
}
