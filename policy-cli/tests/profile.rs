//! `heapwarden profile` as a user meets it where no JVM is needed: what it writes and sends, and what it says if it cannot.

use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::SystemTime;

use heapwarden_harness::stub_server::{self, nobody, respond, serve};
use policy_profile::{About, Builder, Frame, Profile, Values};

fn profile(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapwarden"))
        .arg("profile")
        .args(arguments)
        .output()
        .unwrap()
}

/// The one line that the command says, and its exit code.
fn refusal(arguments: &[&str]) -> (String, i32) {
    let output = profile(arguments);
    assert_eq!(output.stdout, b"", "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (text, output.status.code().unwrap())
}

fn builder() -> Builder {
    Builder::new(&About {
        at: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000),
        program: "com.acme/Main x",
        interval_bytes: 65_536,
        comments: &[],
    })
}

fn of(bytes: u64) -> Values {
    Values {
        alloc_objects: 2,
        alloc_bytes: bytes * 2,
        live_objects: 1,
        live_bytes: bytes,
    }
}

fn example() -> Profile {
    let mut builder = builder();
    let frame = Frame {
        function: "com.acme.Cart.add",
        file: "Cart.java",
        line: 41,
    };
    builder.add("shop", "byte[]", [frame], of(800));
    builder.add("\u{202e}pohs;", "byte[]", [], of(16));
    builder.finish()
}

/// An agent with this answer at `/api/v1/profile`; without one, an older agent.
fn agent(gzip: Option<Vec<u8>>) -> String {
    let address = serve(
        move |head, _, stream| match (stub_server::path(head), &gzip) {
            ("/api/v1/profile", Some(gzip)) => respond(stream, "200 OK", gzip),
            ("/-/healthy", _) => respond(stream, "200 OK", b"Heapwarden is running.\n"),
            _ => respond(stream, "404 Not Found", b""),
        },
    );
    address.to_string()
}

#[test]
fn a_profile_is_written_whole_or_of_one_account() {
    let agent = agent(Some(example().to_gzip()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pb.gz");
    let path = file.to_str().unwrap();
    let output = profile(&[&agent, "-o", path]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]));
    let read = Profile::from_gzip(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(read.accounts().len(), 2);

    let output = profile(&[&agent, "--account", "shop", "--type", "alloc_space"]);
    let read = Profile::from_gzip(&output.stdout).unwrap();
    assert_eq!(
        read.accounts().into_iter().collect::<Vec<_>>(),
        [("shop", of(800))]
    );

    let output = profile(&[
        &agent,
        "--format",
        "collapsed",
        "--type",
        "alloc_space",
        "-o",
        "-",
    ]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "[shop];com.acme.Cart.add:41;byte[] 1600\n[\u{202e}pohs:];byte[] 32\n"
    );
}

#[test]
fn what_is_no_profile_is_said_in_one_sentence_and_no_file_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept");
    std::fs::write(&file, "before").unwrap();
    let path = file.to_str().unwrap();
    let nobody = nobody();
    let stranger = serve(|_, _, stream| respond(stream, "404 Not Found", b"")).to_string();
    let cases = [
        (
            agent(Some(builder().finish().to_gzip())),
            "is empty: nothing was sampled yet",
        ),
        (
            agent(Some(b"{\"accounts\":[]}".to_vec())),
            "is not a profile: it is not gzip",
        ),
        (
            agent(None),
            "has no /api/v1/profile: it is older than this command",
        ),
        (stranger, "is no Heapwarden agent"),
        (nobody.to_string(), "nothing listens on"),
        ("host:port".to_owned(), "host:port has no valid port"),
    ];
    for (target, expected) in cases {
        let (text, code) = refusal(&[&target, "-o", path]);
        assert!(text.contains(expected), "{text}");
        assert_eq!(code, 1, "{text}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");

    let mut young = builder();
    let garbage = Values {
        alloc_bytes: 8,
        ..Values::default()
    };
    young.add("shop", "byte[]", [], garbage);
    let young = agent(Some(young.finish().to_gzip()));
    let (text, code) = refusal(&[&young, "--format", "collapsed", "-o", path]);
    assert!(
        text.contains("has no inuse_space: no sampled object has survived"),
        "{text}"
    );
    assert_eq!(code, 1);
    let agent = agent(Some(example().to_gzip()));
    let (text, code) = refusal(&[&agent, "--account", "bar\n", "-o", path]);
    assert!(
        text.contains("nothing of an account bar\\u{a}; it has shop, "),
        "{text}"
    );
    assert!(!text.contains('\u{202e}'), "{text}");
    assert_eq!(code, 1);
    let (text, _) = refusal(&[&agent, "-o", "/nonexistent/x"]);
    assert!(text.contains("/nonexistent/x cannot be written"), "{text}");
    let (text, code) = refusal(&[&agent, "--push", "pyroscope:4040"]);
    assert!(text.contains("no address of a Pyroscope"), "{text}");
    assert_eq!(code, 2);
    for (arguments, expected) in [
        (["--format", "xml"], "[possible values: pprof, collapsed]"),
        (
            ["--type", "space"],
            "none of alloc_objects, alloc_space, inuse_objects, inuse_space",
        ),
        (["--name", "x"], "--push <URL>"),
    ] {
        let output = profile(&[&[agent.as_str()], &arguments[..]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected), "{text}");
        assert_eq!(output.status.code(), Some(2));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
}

/// A server that takes what a Pyroscope takes, with the requests that it got.
fn pyroscope(status: &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
    let (sender, requests) = channel();
    let address = serve(move |head, body, stream| {
        let _ = sender.send((head.to_owned(), body));
        respond(stream, status, b"a reason\nand more");
    });
    (address.to_string(), requests)
}

#[test]
fn a_profile_is_sent_as_a_form() {
    let agent = agent(Some(example().to_gzip()));
    let (address, requests) = pyroscope("200 OK");
    let url = format!("http://ops:p%40ss@{address}/prefix/");
    let arguments = [
        &agent,
        "--push",
        &url,
        "--name",
        "shop{env=a&b}",
        "--org-id",
        "team-1",
    ];
    let output = profile(&arguments);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"", "with --push alone nothing is written");
    let (head, body) = requests.recv().unwrap();
    let line = "POST /prefix/ingest?name=shop%7Benv%3Da%26b%7D&from=1699999990&until=1700000000&format=pprof&spyName=heapwarden HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    let lower = head.to_ascii_lowercase();
    assert!(lower.contains("\r\nx-scope-orgid: team-1\r\n"), "{head}");
    assert!(head.contains("Basic b3BzOnBAc3M="), "{head}");
    let boundary = lower
        .split("multipart/form-data; boundary=")
        .nth(1)
        .unwrap();
    let boundary = format!("--{}", boundary.lines().next().unwrap());
    let text = String::from_utf8_lossy(&body);
    assert!(text.starts_with(&format!(
        "{boundary}\r\nContent-Disposition: form-data; name=\"profile\""
    )));
    let begin = body
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    let end = body.len() - format!("\r\n{boundary}--\r\n").len();
    let sent = Profile::from_gzip(&body[begin..end]).unwrap();
    assert_eq!(sent.accounts(), example().accounts());

    // Its own name, and a file beside it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pb.gz");
    let url = format!("http://{address}");
    let output = profile(&[&agent, "--push", &url, "-o", file.to_str().unwrap()]);
    assert!(output.status.success() && file.exists(), "{output:?}");
    let (head, _) = requests.recv().unwrap();
    assert!(
        head.starts_with("POST /ingest?name=com%2Eacme%2FMain%5Fx&from="),
        "{head}"
    );
    assert!(
        !head.to_ascii_lowercase().contains("authorization"),
        "{head}"
    );
}

#[test]
fn what_was_not_taken_is_said() {
    let agent = agent(Some(example().to_gzip()));
    let (address, _requests) = pyroscope("422 Unprocessable Content");
    let url = format!("http://ops:topsecret@{address}");
    let (text, code) = refusal(&[&agent, "--push", &url]);
    assert_eq!(
        (text, code),
        (
            format!("heapwarden: http://{address} did not take the profile: 422 a reason\n"),
            1
        )
    );
    let nobody = nobody();
    let (text, code) = refusal(&[&agent, "--push", &format!("http://ops:topsecret@{nobody}")]);
    assert!(text.contains("connection refused"), "{text}");
    assert!(!text.contains("topsecret"), "{text}");
    assert_eq!(code, 1);
}
