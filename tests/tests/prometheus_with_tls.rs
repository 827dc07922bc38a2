//! `heapwarden` reads from a Prometheus behind TLS and a password.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::prometheus::Prometheus;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const PASSWORD: &str = "correct horse";
/// bcrypt of it, with the fewest rounds that there are.
const HASH: &str = "$2b$04$heapwardentestsaltab1uONZvrsgCK0q35n6Q40fWodMctDZfpRS";
/// Nothing is scraped, so this is the answer of a Prometheus that has let us in.
const LET_IN: &str = "has no metrics of Heapwarden";

/// Starts a Prometheus whose certificate is in the folder's `ca.pem`.
fn start(folder: &Path) -> Prometheus {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = rcgen::generate_simple_self_signed(names).expect("a certificate can be made");
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("the case's folder is writable");
    };
    write("ca.pem", own.cert.pem());
    write("key.pem", own.signing_key.serialize_pem());
    let web = format!(
        "tls_server_config: {{cert_file: ca.pem, key_file: key.pem}}\nbasic_auth_users: {{ops: '{HASH}'}}\n"
    );
    write("web.yml", web);
    Prometheus::guarded(&folder.join("web.yml"), folder)
}

/// `heapwarden suggest` with these arguments.
fn suggest(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command
        .args(["suggest", "--range", "1d"])
        .args(arguments)
        .env_remove("HEAPWARDEN_PROMETHEUS")
        .env_remove("HEAPWARDEN_PROMETHEUS_TOKEN");
    command::run(&mut command, LIMIT)
}

#[test]
fn who_has_the_certificate_and_the_password_is_let_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prometheus = start(folder.path());
    let port = prometheus.address().port();
    let authorities = folder.path().join("ca.pem").display().to_string();
    let token = folder.path().join("token");
    fs::write(&token, "abc.def\n").expect("writable");
    let token = token.display().to_string();
    let url = |scheme: &str, user: &str| format!("{scheme}://{user}localhost:{port}");
    let password = PASSWORD.replace(' ', "%20");
    let known = url("https", &format!("ops:{password}@"));

    let trusting = ["--prometheus", &known, "--ca-file", &authorities];
    let mut last = String::new();
    let let_in = command::poll(LIMIT, || {
        last = suggest(&trusting).stderr;
        last.contains(LET_IN).then_some(())
    });
    assert!(let_in.is_some(), "{last}\n{}", prometheus.log());

    for (arguments, said) in [
        // Nobody vouches for its certificate.
        (&["--prometheus", &known][..], "cannot reach Prometheus"),
        (
            &["--prometheus", &url("https", ""), "--ca-file", &authorities],
            "HTTP 401",
        ),
        (
            &[
                "--prometheus",
                &url("https", "ops:wrong@"),
                "--ca-file",
                &authorities,
            ],
            "HTTP 401",
        ),
        // Prometheus itself knows no tokens; the proxies that do are not here.
        (
            &[
                "--prometheus",
                &url("https", ""),
                "--ca-file",
                &authorities,
                "--bearer-token-file",
                &token,
            ],
            "HTTP 401",
        ),
        (
            &["--prometheus", &url("http", "")],
            "not as Prometheus does",
        ),
        (
            &["--prometheus", &known, "--ca-file", &token],
            "no certificate",
        ),
    ] {
        let refused = suggest(arguments);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        for secret in [PASSWORD, &password, "abc.def", "wrong"] {
            assert!(!refused.stderr.contains(secret), "{}", refused.stderr);
        }
    }
}
