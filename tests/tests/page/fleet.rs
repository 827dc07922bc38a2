//! A fleet by `heapwarden ui --prometheus`: two real JVMs that a real Prometheus scrapes.

use std::path::Path;

use heapwarden_tests::browser::Browser;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::prometheus::Prometheus;
use serde_json::{Value, json};

use crate::{assert_sound, show, ui};

const POLICY: &str = "[sampling]\ninterval = \"8KiB\"\ncpu-budget = \"none\"\n\n\
    [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\nlimit = \"2MiB\"\n";

/// A program whose `orders` hold so many megabytes.
fn holder(megabytes: usize) -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.Holder")
        .argument("com.acme.orders")
        .policy(POLICY)
        .start();
    jvm.ask(&format!(
        "hold com.acme.orders bytes:100000*{}",
        10 * megabytes
    ));
    jvm.settled();
    jvm
}

/// The figures of the row of `orders`, once they are those of Prometheus' expressions.
fn assert_row(browser: &Browser, prometheus: &Prometheus, expressions: [&str; 2]) {
    let row = "const row = document.querySelector('table[aria-label=Accounts] tr[data-key=orders]'); if (!row) return null; \
        const live = row.querySelector('data'); return [Number(live.value), Number(live.dataset.error)]";
    let mut last = (Value::Null, Value::Null);
    let equal = poll(PATIENCE, || {
        let recorded = expressions.map(|expression| prometheus.value(expression).map(f64::ceil));
        last = (browser.value(row), json!(recorded));
        let shown = last.0.as_array()?.iter().map(|one| one.as_f64());
        shown.eq(recorded).then_some(())
    });
    assert!(equal.is_some(), "shown {}, recorded {}", last.0, last.1);
}

#[test]
fn a_fleet_in_prometheus_is_shown_as_it_is_recorded() {
    let jvms = [holder(3), holder(1)];
    let [large, small] = jvms.each_ref().map(|jvm| jvm.address().to_string());
    let configuration = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: shop\n  \
         static_configs: [{{targets: ['{large}', '{small}']}}]\n"
    );
    let prometheus = Prometheus::start(&configuration, jvms[0].folder());
    let live = "sum(heapwarden_account_live_bytes{account=\"orders\"})";
    prometheus.until(
        PATIENCE,
        "count(count_over_time(heapwarden_account_live_bytes{account=\"orders\"}[10m]) > 12) == 2",
    );
    let url = format!("http://{}", prometheus.address());
    let options = ["--prometheus", &url, "--range", "5m", "--step", "5s"];
    let (_process, own) = ui(&options.map(Path::new));
    let browser = Browser::start();
    browser.resize(1400, 900);

    show(&browser, &format!("{own}/"), "Overview of the fleet");
    let error = "sqrt(sum(heapwarden_account_live_standard_error_bytes{account=\"orders\"} ^ 2))";
    assert_row(&browser, &prometheus, [live, error]);
    let heaps = "return [...document.querySelectorAll('table[aria-label=JVMs] tr[data-key]')].map(row => [row.querySelector('a').textContent, Number(row.querySelectorAll('data')[1]?.value), Number(row.querySelectorAll('data')[3]?.value)]).sort()";
    let mut last = (Value::Null, Value::Null);
    let equal = poll(PATIENCE, || {
        let mut recorded = Vec::new();
        for (instance, over) in [(&large, 1), (&small, 0)] {
            // None where a scrape took a busy machine longer than its second.
            let max = format!("heapwarden_heap_max_bytes{{instance=\"{instance}\"}}");
            let max = prometheus.value(&max)?;
            recorded.push(json!([format!("shop {instance}"), max as u64, over]));
        }
        recorded.sort_by_key(Value::to_string);
        last = (browser.value(heaps), Value::Array(recorded));
        (last.0 == last.1).then_some(())
    });
    assert!(
        equal.is_some(),
        "JVMs with the maximum heap, and accounts over their limit: shown {}, recorded {}",
        last.0,
        last.1
    );
    browser.until("return document.querySelector('.chart polygon') !== null");
    assert_sound(&browser, &own, "fleet");

    // The choice of a JVM, by its link.
    let link = format!(
        "[...document.querySelectorAll('table[aria-label=JVMs] a')].find(one => one.textContent === 'shop {large}').click(); return null"
    );
    browser.value(&link);
    browser.until("return document.querySelector('h1').textContent.startsWith('Overview of a JVM') && document.querySelector('tr[data-key=orders]') !== null");
    let of = |metric: &str| format!("{metric}{{account=\"orders\",instance=\"{large}\"}}");
    let own_live = of("heapwarden_account_live_bytes");
    let own_error = of("heapwarden_account_live_standard_error_bytes");
    assert_row(&browser, &prometheus, [&own_live, &own_error]);
    let chosen = browser.value("return [document.querySelectorAll('#source option').length, document.querySelector('#source').selectedOptions[0].textContent]");
    assert_eq!(chosen, json!([3, format!("shop {large}")]));
    assert_sound(&browser, &own, "a JVM of the fleet");

    // A view of data that Prometheus does not have says where they are to be seen.
    show(&browser, &format!("{own}/#/flames"), "Not in Prometheus");
    let text = browser.value("return document.querySelector('main').innerText");
    let text = text.as_str().expect("a text");
    assert!(text.contains("heapwarden ui ADDRESS"), "{text}");
    assert_sound(&browser, &own, "flames of a fleet");
    for jvm in jvms {
        jvm.finish();
    }
}
