//! A client of an application behind a door, and the course that every door is put through: filled, turned away,
//! probed, let go, open again.

use crate::command;
use crate::server::{Installation, Server};
use crate::server_setup::deploy;
use heapwarden_harness::http::Answer;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The sampling interval of the servers.
pub const INTERVAL: &str = "8KiB";
/// The limit of the application.
pub const LIMIT_MIB: u64 = 64;
/// Over the limit for sure: by an eighth, eleven standard errors (three are a verdict, and the estimate itself is off
/// by one or two). The reserve is as much as the limit.
pub const FILLED_BYTES: u64 = (LIMIT_MIB << 20) + (LIMIT_MIB << 20) / 8;
/// Bytes that a request of [`HOLD`] makes the application hold: headers of 16 bytes, references of 4.
pub const STEP_BYTES: u64 = 500 * (16 + 1_000) + 16 + 4 * 500;
/// A request that makes the application hold [`STEP_BYTES`].
pub const HOLD: &str = "do=hold&length=1000&count=500";
/// A request that costs nothing worth mentioning.
pub const LIGHT: &str = "do=hold&length=16&count=1";
/// The shortest time between two requests that a shut door lets in, of `policy_core::enforce::door`.
pub const FIRST_PAUSE_MS: u64 = 100;
/// Longest that an operator need wait for an effect, on a busy machine too.
pub const SOON: Duration = Duration::from_secs(15);
/// Requests of a client that does not give up, and how long it rests between two.
pub const PERSISTENT: u32 = 30;
/// After so many probes that grow the pause is the longest.
pub const HEAVY_PROBES: u32 = 6;
/// A client's rest between two requests.
pub const REST: Duration = Duration::from_millis(100);

/// `/shelf` of the test applications for every version of the servlets: Tomcat compiles it.
pub const SHELF_JSP: &str = r#"<%@ page contentType="text/plain" session="false" %><%!
    private static final java.util.List<byte[][]> HELD = new java.util.ArrayList<>();
%><%
    String order = request.getParameter("do");
    synchronized (HELD) {
        if ("hold".equals(order)) {
            byte[][] slots = new byte[Integer.parseInt(request.getParameter("count"))][];
            for (int i = 0; i < slots.length; i++) {
                slots[i] = new byte[Integer.parseInt(request.getParameter("length"))];
            }
            HELD.add(slots);
        } else if ("drop".equals(order)) {
            HELD.clear();
        } else {
            System.gc();
        }
    }
%>done"#;

/// Replaces the policy that the server was set up with.
pub fn write_policy(site: &Installation, mode: &str, accounts: &str) {
    let text = format!(
        "[sampling]\ninterval = \"{INTERVAL}\"\ncpu-budget = \"none\"\n\n\
         [enforcement]\nmode = \"{mode}\"\n\n{accounts}"
    );
    fs::write(site.folder().join("heapwarden.toml"), text).expect("writable");
}

/// The account of a service with the limit, and more of its keys.
#[must_use]
pub fn account(service: &str, more: &str) -> String {
    format!("[[account]]\nservice = \"{service}\"\nlimit = \"{LIMIT_MIB}MiB\"\n{more}\n")
}

/// Deploys the application under a name of its own.
pub fn deploy_as(name: &str, webapps: &Path) {
    deploy("shop/shop.war", webapps);
    fs::rename(webapps.join("shop.war"), webapps.join(name)).expect("writable");
}

/// A client of one application.
#[derive(Debug)]
pub struct Client<'s> {
    server: &'s Server,
    /// Where the application holds and drops.
    pub shelf: String,
    account: &'s str,
    /// The status with which the door turns requests away.
    pub status: u16,
    /// Answers of the door.
    pub turned_away: u64,
}

impl<'s> Client<'s> {
    /// A client that nothing was refused yet.
    #[must_use]
    pub fn new(server: &'s Server, shelf: &str, account: &'s str) -> Self {
        Self {
            server,
            shelf: shelf.to_owned(),
            account,
            status: 503,
            turned_away: 0,
        }
    }

    /// The answer to a request of the shelf.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(&self, query: &str) -> Answer {
        let path = format!("{}?{query}", self.shelf);
        (self.server.get(&path))
            .unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.server.log()))
    }

    /// Whether the request came in. Every answer but success and the door's is a failure.
    pub fn comes_in(&mut self, query: &str) -> bool {
        let answer = self.get(query);
        if answer.status == self.status {
            assert_turned_away(&answer);
            self.turned_away += 1;
            return false;
        }
        assert!(
            answer.status == 200 && answer.body.contains("done"),
            "{query}: {answer:?}\n{}",
            self.server.log()
        );
        true
    }

    /// The agent fits a door at most a second after the service was named.
    pub fn wait_for_door(&self) {
        self.wait_for("there is a door", |account| account["door"] == "open");
    }

    /// Lets the application hold more than its limit; ends at the door's first answer.
    pub fn fill(&mut self) {
        // Refunds of an earlier drop take a while: counted as held, they leave too little to fill.
        let collect = format!("{}?do=gc", self.shelf);
        let before = self.server.settled(&collect, self.account).live_bytes as u64;
        for _ in 0..FILLED_BYTES.saturating_sub(before) / STEP_BYTES {
            if !self.comes_in(HOLD) {
                return;
            }
        }
    }

    /// Sends the request again until `wanted`.
    pub fn persist(&mut self, query: &str, wanted: bool) {
        let done = command::poll(SOON, || {
            // At a shut door the first may be a probe: the second comes before the pause is over.
            let came_in = self.comes_in(query) && (wanted || self.comes_in(query));
            thread::sleep(REST);
            (came_in == wanted).then_some(())
        });
        assert!(
            done.is_some(),
            "{query} within {SOON:?}: {}\n{}",
            self.described(),
            self.server.log()
        );
    }

    /// Waits until the account's object in the JSON is as wanted.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&serde_json::Value) -> bool) {
        let found = command::poll(SOON, || {
            thread::sleep(REST);
            let accounts = self.server.accounts();
            accounts
                .find(self.account)
                .is_some_and(&wanted)
                .then_some(())
        });
        assert!(
            found.is_some(),
            "{what} within {SOON:?}: {}\n{}",
            self.described(),
            self.server.log()
        );
    }

    /// Holds more than the limit, and once that is known more and more until an error is thrown,
    /// which is answered 500 and counted.
    pub fn wait_until_refused(&self) {
        let is_thrown = || {
            let answer = self.get(HOLD);
            assert!(matches!(answer.status, 200 | 500), "{answer:?}");
            answer.status == 500
        };
        if !(0..FILLED_BYTES / STEP_BYTES).any(|_| is_thrown()) {
            // Without a pause here the heap may be full before, on a busy machine.
            self.wait_for("it is over its limit", |account| account["state"] == "over");
            let thrown = command::poll(SOON, || is_thrown().then_some(()));
            assert!(thrown.is_some(), "{}", self.described());
        }
        self.wait_for("the refusal is counted", |account| {
            account["refusals_total"].as_u64() >= Some(1)
        });
    }

    /// The figures that a failure tells.
    #[must_use]
    pub fn described(&self) -> String {
        let accounts = self.server.accounts();
        let found = accounts.find(self.account).map(ToString::to_string);
        format!("{} turned away; {found:?}", self.turned_away)
    }
}

/// Asserts that a client which is turned away gets the header lines and the sentence; returns the time that these tell
/// it to wait.
pub fn assert_turned_away(answer: &Answer) -> Duration {
    let retry_after = answer.headers.get("retry-after").map(String::as_str);
    let seconds: Option<u64> = retry_after.and_then(|text| text.parse().ok());
    assert!(seconds >= Some(1), "{answer:?}");
    let kind = answer.headers.get("content-type").map(String::as_str);
    assert!(
        kind.is_some_and(|kind| kind.starts_with("text/plain")),
        "{answer:?}"
    );
    let text = format!(
        "This service is over its memory limit. Try again in {} s.\n",
        retry_after.expect("a number")
    );
    assert_eq!(answer.body, text, "{answer:?}");
    Duration::from_secs(seconds.expect("a number"))
}

/// The application fills up, is turned away, lets go and works again. Its neighbour always works.
pub fn assert_door(server: &Server, shelf: &str, account: &str, neighbour: Option<&str>) {
    assert_door_with(503, server, shelf, account, neighbour);
}

/// As [`assert_door`], where the policy chooses the status.
///
/// # Panics
/// If it does not.
pub fn assert_door_with(
    status: u16,
    server: &Server,
    shelf: &str,
    account: &str,
    neighbour: Option<&str>,
) {
    if let Some(path) = neighbour {
        let up = command::poll(Duration::from_secs(60), || {
            let answer = server.get(path).ok()?;
            (answer.status == 200).then_some(())
        });
        assert!(up.is_some(), "{path} is not up:\n{}", server.log());
    }
    let ask_neighbour = || {
        if let Some(path) = neighbour {
            server.ask(path);
        }
    };
    let mut client = Client::new(server, shelf, account);
    client.status = status;
    client.wait_for_door();
    client.fill();
    client.persist(LIGHT, false);
    client.wait_for("the door is shut", |account| account["door"] == "shut");
    let mut came_in = 0;
    for _ in 0..PERSISTENT {
        came_in += u32::from(client.comes_in(LIGHT));
        ask_neighbour();
        thread::sleep(REST);
    }
    eprintln!("{account}: {came_in} of {PERSISTENT} came in as probes");
    assert!(came_in >= 1, "no probe: {}", client.described());
    client.persist(LIGHT, false);
    client.persist("do=drop", true);
    client.wait_for("the door is open", |account| account["door"] == "open");
    for _ in 0..PERSISTENT {
        assert!(client.comes_in(LIGHT), "{}", client.described());
        ask_neighbour();
    }
    let turned_away = client.turned_away;
    client.wait_for("every answer is counted", |account| {
        account["admission_refusals_total"] == turned_away
    });
    client.wait_for("nothing was thrown", |account| {
        account["refusals_total"] == 0
    });
}

/// A request of the neighbour.
pub const NEIGHBOUR: &str = "/other/shelf?do=hold&length=16&count=1";
