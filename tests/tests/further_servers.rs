//! Servers beyond the usual four: each application has an account with its name, which holds what the application
//! holds; at the limit it is turned away at the server's own door, its neighbour never; a redeployed application is
//! the same account, and an undeployed one is known as such where the server shows it.
//!
//! Jetty 9.4 and 11, and virtual hosts of Jetty 12, always run; Jetty 10, Open Liberty, GlassFish and Payara, whose
//! downloads are large, with `--long`.

use heapwarden_tests::command::{PATIENCE, left_out, poll};
use heapwarden_tests::door_client::{
    Client, FILLED_BYTES, HOLD, INTERVAL, LIGHT, NEIGHBOUR, SHELF_JSP, STEP_BYTES, account,
    assert_door, assert_turned_away, deploy_as, write_policy,
};
use heapwarden_tests::jdk::{Jdk, every_jdk, is_long, newest};
use heapwarden_tests::server::{Installation, Server, installed, installed_large};
use heapwarden_tests::server_setup::{self, Prepared};
use heapwarden_tests::stats;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Batches of figures of one server.
const BATCHES: u32 = 3;
/// Requests of a batch: those of all are two thirds of the limit.
const STEPS: u32 = 20;
/// Comparisons of all servers.
const COMPARISONS: usize = 9 * BATCHES as usize;

/// Two applications in a server.
struct Hosts<'a> {
    /// How the applications' shelves end: `shelf`, or `shelf.jsp`.
    shelf: &'a str,
    /// Names of the accounts of `/shop` and `/other`.
    accounts: [&'a str; 2],
    /// Where they are deployed; empty if the server takes none while it runs.
    deployed: Option<PathBuf>,
    /// Whether the server shows that it has stopped an application.
    tells_stop: bool,
    /// Whether the server remembers where the first request of a path has led to.
    remembers_paths: bool,
}

/// A page that forwards to the shelf.
const FORWARDS: &str = "forward.jsp";

/// Puts folders with the JSP where the server deploys from: for servlets of before Jakarta.
fn deploy_folders(into: &Path) {
    for name in ["shop", "other"] {
        let folder = into.join(name);
        fs::create_dir(&folder).expect("writable");
        fs::write(folder.join("shelf.jsp"), SHELF_JSP).expect("writable");
        for page in pages() {
            fs::write(folder.join(page), SHELF_JSP).expect("writable");
        }
        fs::write(folder.join(FORWARDS), "<jsp:forward page=\"shelf.jsp\"/>").expect("writable");
    }
}

fn deploy_archives(into: &Path) {
    deploy_as("other.war", into);
    deploy_as("shop.war", into);
}

/// The account holds what the application holds.
fn assert_figures(server: &Server, shelf: &str, account: &str) {
    let client = Client::new(server, shelf, account);
    let collect = format!("{shelf}?do=gc");
    for _ in 0..20 {
        server.ask(&format!("{shelf}?{LIGHT}"));
    }
    let hold = || (0..STEPS).for_each(|_| assert_eq!(client.get(HOLD).status, 200));
    // An account that holds next to nothing never rests beside its server's own garbage.
    hold();
    let mut before = server.settled(&collect, account);
    for _ in 0..BATCHES {
        hold();
        let after = server.settled(&collect, account);
        let truth = f64::from(STEPS) * STEP_BYTES as f64;
        let variance = after.standard_error_bytes.powi(2) - before.standard_error_bytes.powi(2);
        let z = (after.live_bytes - before.live_bytes - truth) / variance.sqrt();
        eprintln!("{account}: {z:+.2} standard errors");
        assert!(
            z.abs() <= stats::outermost(COMPARISONS),
            "{z} {before:?} {after:?}"
        );
        before = after;
    }
    server.ask(&format!("{shelf}?do=drop"));
}

/// A request that is forwarded is of the route by which it came in, and so is all that it keeps.
fn assert_forwarded(server: &Server, shelf: &str, account: &str) {
    // Routes are told apart at the door.
    Client::new(server, shelf, account).wait_for_door();
    for _ in 0..STEPS {
        server.ask(&format!("/shop/{FORWARDS}?{HOLD}"));
    }
    server.settled(&format!("{shelf}?do=gc"), account);
    let accounts = server.accounts();
    let found = accounts.find(account).expect("it has an account");
    let live_bytes: u64 = (found["routes"].as_array().into_iter().flatten())
        .filter(|route| {
            route["route"]
                .as_str()
                .is_some_and(|name| name.contains(FORWARDS))
        })
        .filter_map(|route| route["live_bytes"].as_u64())
        .sum();
    assert!(live_bytes >= u64::from(STEPS) * STEP_BYTES / 2, "{found:#}");
    server.ask(&format!("{shelf}?do=drop"));
}

/// Pages whose very first request is turned away, of a path that the server has to remember, work afterwards.
fn assert_pages(server: &Server, shelf: &str, account: &str) {
    let mut client = Client::new(server, shelf, account);
    client.fill();
    client.persist(LIGHT, false);
    // Some come in as probes.
    let first: Vec<u16> = pages()
        .map(|page| {
            server
                .get(&format!("/shop/{page}?{LIGHT}"))
                .expect("an answer")
                .status
        })
        .collect();
    assert!(first.contains(&503), "{first:?}");
    assert!(
        first.iter().all(|status| matches!(status, 200 | 503)),
        "{first:?}"
    );
    client.persist("do=drop", true);
    client.wait_for("the door is open", |account| account["door"] == "open");
    for page in pages() {
        server.ask(&format!("/shop/{page}?{LIGHT}"));
    }
}

/// Pages that nobody asks for before.
fn pages() -> impl Iterator<Item = String> {
    (0..6).map(|number| format!("page{number}.jsp"))
}

/// Waits until the application at `path` answers so.
fn wait_for(server: &Server, path: &str, status: u16) {
    let seen = poll(PATIENCE, || {
        thread::sleep(Duration::from_millis(200));
        (server.get(path).ok()?.status == status).then_some(())
    });
    assert!(seen.is_some(), "{path} is not {status}:\n{}", server.log());
}

/// Waits until a loader of the account is known to be left over; or it was collected before it was asked, and what it
/// left is known as such, or the account has ended. A loader that has been there for long is asked every five minutes.
fn wait_until_retired(server: &Server, account: &str) {
    const LONGEST_PAUSE: Duration = Duration::from_secs(300);
    let seen = poll(LONGEST_PAUSE + PATIENCE, || {
        thread::sleep(Duration::from_millis(200));
        let accounts = server.accounts();
        let is_known = (accounts.find(account)).is_none_or(|account| {
            ["retired_loaders", "left_behind_bytes"]
                .iter()
                .any(|key| account[*key].as_u64() >= Some(1))
        });
        is_known.then_some(())
    });
    let found = server.accounts().find(account).map(ToString::to_string);
    assert!(seen.is_some(), "{account} {found:?}\n{}", server.log());
}

fn assert_redeployed(server: &Server, hosts: &Hosts<'_>, deployed: &Path) {
    let [shop, other] = hosts.accounts;
    let (shop_at, other_at) = (find(deployed, "shop"), find(deployed, "other"));
    let shelf = format!("/shop/{}", hosts.shelf);
    // Held by a class of the application, of which a new version has none.
    (0..STEPS).for_each(|_| server.ask(&format!("{shelf}?{HOLD}")));
    let held = server.settled(&format!("{shelf}?do=gc"), shop).live_bytes;
    let touched = fs::File::open(&shop_at).expect("it is deployed");
    touched
        .set_modified(std::time::SystemTime::now())
        .expect("its time can be set");
    // Under way it may be neither here nor there.
    let is_anew = poll(PATIENCE, || {
        let answer = server.get(&format!("{shelf}?do=gc")).ok()?;
        thread::sleep(Duration::from_millis(500));
        let accounts = server.accounts();
        // The old version has gone, or is known as old: a server may keep it for a while.
        let is_anew = accounts.holding(shop).live_bytes < held / 2.0
            || accounts.find(shop)?["retired_loaders"].as_u64() >= Some(1);
        (answer.status == 200 && is_anew).then_some(())
    });
    assert!(
        is_anew.is_some(),
        "{shop} is the old one:\n{}",
        server.log()
    );
    let accounts = server.accounts();
    assert_eq!(
        accounts.find(shop).expect("it has an account")["kind"],
        "service"
    );
    let mut client = Client::new(server, &shelf, shop);
    assert!(client.comes_in(LIGHT));

    match other_at.is_dir() {
        true => fs::remove_dir_all(&other_at).expect("writable"),
        false => fs::remove_file(&other_at).expect("writable"),
    }
    wait_for(server, &format!("/other/{}?do=gc", hosts.shelf), 404);
    if hosts.tells_stop {
        wait_until_retired(server, other);
    }
}

/// The archive or folder of this name.
fn find(deployed: &Path, name: &str) -> PathBuf {
    let archive = deployed.join(format!("{name}.war"));
    match archive.exists() {
        true => archive,
        false => deployed.join(name),
    }
}

fn assert_server(site: Installation, prepared: Prepared, hosts: &Hosts<'_>) {
    let [shop, other] = hosts.accounts;
    write_policy(&site, "enforce", &account(shop, ""));
    let shelf = format!("/shop/{}", hosts.shelf);
    let neighbour = NEIGHBOUR.replace("/shelf?", &format!("/{}?", hosts.shelf));
    let server = site.start(prepared.command, &format!("{shelf}?do=gc"));
    wait_for(&server, &neighbour, 200);
    // A loader is named a little after its first request.
    let named = poll(PATIENCE, || {
        thread::sleep(Duration::from_millis(100));
        let accounts = server.accounts();
        let all = hosts
            .accounts
            .iter()
            .all(|name| accounts.find(name).is_some());
        all.then_some(accounts)
    });
    let accounts =
        named.unwrap_or_else(|| panic!("{}\n{}", server.accounts().brief(), server.log()));
    for name in [shop, other] {
        let found = accounts.find(name).map(|account| account["kind"].clone());
        assert_eq!(
            found,
            Some("service".into()),
            "{name}: {}",
            accounts.brief()
        );
    }
    assert_figures(&server, &shelf, shop);
    if hosts.shelf == "shelf.jsp" {
        assert_forwarded(&server, &shelf, shop);
    }
    assert_door(&server, &shelf, shop, Some(&neighbour));
    if hosts.remembers_paths {
        assert_pages(&server, &shelf, shop);
    }
    if let Some(deployed) = &hosts.deployed {
        assert_redeployed(&server, hosts, deployed);
    }
    server.finish();
}

fn assert_jetty(jdk: &Jdk, home: &Path, deploy: fn(&Path), shelf: &str) {
    let site = Installation::new();
    let prepared = server_setup::older_jetty(&site, jdk, home, INTERVAL);
    let deployed = prepared.base.join("webapps");
    deploy(&deployed);
    let hosts = Hosts {
        shelf,
        accounts: ["/shop", "/other"],
        deployed: Some(deployed),
        tells_stop: true,
        remembers_paths: false,
    };
    assert_server(site, prepared, &hosts);
}

/// Its servlets are those of before Jakarta.
#[test]
fn jetty_9() {
    let home = installed().join("jetty-home-9.4.57.v20241219");
    assert_jetty(&every_jdk()[0], &home, deploy_folders, "shelf.jsp");
}

#[test]
fn jetty_10() {
    if is_long() {
        let home = installed_large().join("jetty-home-10.0.25");
        assert_jetty(&every_jdk()[0], &home, deploy_folders, "shelf.jsp");
    } else {
        left_out("jetty_10", "it runs with --long");
    }
}

#[test]
fn jetty_11() {
    let home = installed().join("jetty-home-11.0.25");
    assert_jetty(newest(), &home, deploy_archives, "shelf");
}

/// Two applications with one context path: the one beyond its limit is turned away, the other is not.
#[test]
fn virtual_hosts_of_jetty_12_are_told_apart() {
    let site = Installation::new();
    let prepared = server_setup::jetty(&site, &every_jdk()[0], INTERVAL);
    let webapps = prepared.base.join("webapps");
    let archives = prepared.base.join("archives");
    fs::create_dir(&archives).expect("writable");
    for host in ["red", "blue"] {
        let archive = archives.join(format!("{host}.war"));
        deploy_as(&format!("{host}.war"), &archives);
        let context = format!(
            "<?xml version=\"1.0\"?>\
             <!DOCTYPE Configure PUBLIC \"-//Jetty//Configure//EN\" \"https://www.eclipse.org/jetty/configure_10_0.dtd\">\
             <Configure class=\"org.eclipse.jetty.ee10.webapp.WebAppContext\">\
             <Set name=\"contextPath\">/app</Set><Set name=\"war\">{}</Set>\
             <Set name=\"virtualHosts\"><Array type=\"java.lang.String\"><Item>{host}.example</Item></Array></Set>\
             </Configure>",
            archive.display()
        );
        fs::write(webapps.join(format!("{host}.xml")), context).expect("writable");
    }
    deploy_as("shop.war", &webapps);
    let accounts = ["//red.example/app", "//blue.example/app"];
    write_policy(&site, "enforce", &account("//*.example/app", ""));
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    let ask = |host: &str, query: &str| {
        let header = [("Host", host)];
        let answer = server.send("GET", &format!("/app/shelf?{query}"), &header);
        answer.unwrap_or_else(|error| panic!("{host}: {error}\n{}", server.log()))
    };
    for host in ["red.example", "blue.example"] {
        assert_eq!(ask(host, LIGHT).status, 200);
    }
    // The plain path is nobody's of the two.
    assert_eq!(
        server.get("/app/shelf?do=gc").expect("an answer").status,
        404
    );
    let figures = |account: &str| {
        let accounts = server.accounts();
        (accounts.find(account).cloned()).unwrap_or_else(|| panic!("{}", accounts.brief()))
    };
    let [red, blue] = accounts;
    let has_doors = poll(PATIENCE, || {
        let known = server.accounts();
        let is_open = |name: &&str| known.find(name).is_some_and(|one| one["door"] == "open");
        accounts.iter().all(is_open).then_some(())
    });
    assert!(
        has_doors.is_some(),
        "{}\n{}",
        server.accounts().brief(),
        server.log()
    );
    // More than the limit, and no more: the heap has room for it until that is known.
    for _ in 0..FILLED_BYTES / STEP_BYTES {
        let answer = ask("red.example", HOLD);
        assert!(
            matches!(answer.status, 200 | 503),
            "{answer:?}\n{}",
            server.log()
        );
        if answer.status == 503 {
            break;
        }
    }
    let turned_away = poll(PATIENCE, || {
        let neighbour = ask("blue.example", LIGHT);
        assert_eq!(neighbour.status, 200, "{neighbour:?}\n{}", server.log());
        let answer = ask("red.example", LIGHT);
        assert!(
            matches!(answer.status, 200 | 503),
            "{answer:?}\n{}",
            server.log()
        );
        (answer.status == 503).then_some(answer)
    });
    let answer = turned_away.unwrap_or_else(|| panic!("{}\n{}", figures(red), server.log()));
    assert_turned_away(&answer);
    let counted = poll(PATIENCE, || {
        (figures(red)["admission_refusals_total"].as_u64() >= Some(1)).then_some(())
    });
    assert!(counted.is_some(), "{}", figures(red));
    assert_eq!(
        figures(blue)["admission_refusals_total"],
        0,
        "{}",
        figures(blue)
    );
    server.finish();
}

#[test]
fn liberty() {
    if !is_long() {
        return left_out("liberty", "it runs with --long");
    }
    for jdk in [&every_jdk()[0], newest()] {
        let features = ["servlet-6.0", "pages-3.1"];
        assert_liberty(jdk, &features, deploy_archives, "shelf");
    }
    let of_before_jakarta = ["servlet-4.0", "jsp-2.3"];
    let jdk = &every_jdk()[0];
    assert_liberty(
        jdk,
        &of_before_jakarta,
        deploy_folders_as_archives,
        "shelf.jsp",
    );
}

/// Liberty deploys an archive anew whose time changes, and no folder.
fn assert_liberty(jdk: &Jdk, features: &[&str], deploy: fn(&Path), shelf: &str) {
    let site = Installation::new();
    let prepared = server_setup::liberty(&site, jdk, features, INTERVAL);
    let deployed = prepared.base.join("dropins");
    deploy(&deployed);
    let hosts = Hosts {
        shelf,
        accounts: ["shop", "other"],
        deployed: deployed.join("shop.war").is_file().then_some(deployed),
        tells_stop: false,
        remembers_paths: shelf == "shelf.jsp",
    };
    assert_server(site, prepared, &hosts);
}

/// Liberty takes a folder that is called as an archive.
fn deploy_folders_as_archives(into: &Path) {
    deploy_folders(into);
    for name in ["shop", "other"] {
        fs::rename(into.join(name), into.join(format!("{name}.war"))).expect("writable");
    }
}

/// It does not start on JDK 25.
#[test]
fn glassfish() {
    if !is_long() {
        return left_out("glassfish", "it runs with --long");
    }
    let site = Installation::new();
    let prepared = server_setup::glassfish(&site, &every_jdk()[0], INTERVAL);
    let deployed = prepared.base.join("autodeploy");
    deploy_archives(&deployed);
    let hosts = Hosts {
        shelf: "shelf",
        accounts: ["/shop", "/other"],
        deployed: Some(deployed),
        tells_stop: true,
        remembers_paths: false,
    };
    assert_server(site, prepared, &hosts);
}

#[test]
fn payara_micro() {
    if !is_long() {
        return left_out("payara_micro", "it runs with --long");
    }
    for jdk in [&every_jdk()[0], newest()] {
        let site = Installation::new();
        let archives = ["shop.war", "other.war"];
        let prepared = server_setup::payara_micro(&site, jdk, &archives, INTERVAL);
        deploy_archives(&prepared.base);
        let hosts = Hosts {
            shelf: "shelf",
            accounts: ["/shop", "/other"],
            deployed: None,
            tells_stop: true,
            remembers_paths: false,
        };
        assert_server(site, prepared, &hosts);
    }
}
