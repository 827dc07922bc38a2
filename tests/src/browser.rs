//! A real browser: Debian's Chromium without a window, driven through WebDriver.
//!
//! Everything that the page logs, every request that it sends and every violation of its policy is seen
//! ([`Browser::complaints`], [`Browser::requested_hosts`]).

use crate::command::{self, PATIENCE};
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use heapwarden_harness::ports;
use heapwarden_harness::process::Guard;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The message for a machine on which a program is missing, with the line to type.
const NEEDED: &str = "Chromium and its driver are needed: apt-get install chromium chromium-driver";
/// Longest that the browser may take to start.
const START_LIMIT: Duration = PATIENCE;

/// A browser with one window; ended when dropped.
#[derive(Debug)]
pub struct Browser {
    client: Option<Client>,
    runtime: Runtime,
    // Killed when dropped, and with it the browser.
    _driver: Guard,
    _profile: tempfile::TempDir,
}

/// Asks the driver for what the browser logged; not a part of the WebDriver standard.
#[derive(Debug)]
struct Logged(&'static str);

impl WebDriverCompatibleCommand for Logged {
    fn endpoint(
        &self,
        base_url: &url::Url,
        session_id: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base_url.join(&format!(
            "session/{}/se/log",
            session_id.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({"type": self.0}).to_string();
        (http::Method::POST, Some(body))
    }
}

/// Emulates a preference of the reader's: light or dark.
#[derive(Debug)]
struct Emulate(Value);

impl WebDriverCompatibleCommand for Emulate {
    fn endpoint(
        &self,
        base_url: &url::Url,
        session_id: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        let session = session_id.unwrap_or_default();
        base_url.join(&format!("session/{session}/goog/cdp/execute"))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    /// If Chromium or its driver is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder can be made");
        let port = ports::free();
        let mut driver = Command::new("chromedriver");
        driver
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let driver = Guard::start(&mut driver).expect(NEEDED);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let capabilities = json!({
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": [
                "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en-US",
                // Tests run as root in containers, where the sandbox cannot be had.
                "--no-sandbox",
                format!("--user-data-dir={}", profile.path().display()),
            ]},
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!("it is an object")
        };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let address = format!("http://127.0.0.1:{port}/");
        let mut why = String::new();
        let client = command::poll(START_LIMIT, || {
            match runtime.block_on(builder.connect(&address)) {
                Ok(client) => Some(client),
                Err(error) => {
                    why = error.to_string();
                    None
                }
            }
        });
        Self {
            client: Some(client.unwrap_or_else(|| panic!("{NEEDED}: {why}"))),
            runtime,
            _driver: driver,
            _profile: profile,
        }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("until it is dropped")
    }

    /// Shows an address; another one of the same page only changes what comes after the `#`.
    ///
    /// # Panics
    /// If it cannot be loaded.
    pub fn open(&self, address: &str) {
        let shown = self.runtime.block_on(self.client().goto(address));
        shown.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// Makes the window so large.
    ///
    /// # Panics
    /// If the driver fails.
    pub fn resize(&self, width: u32, height: u32) {
        let parameters =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.emulate("Emulation.setDeviceMetricsOverride", &parameters);
    }

    /// Prefers dark or light colours.
    ///
    /// # Panics
    /// If the driver fails.
    pub fn prefer(&self, scheme: &str) {
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.emulate("Emulation.setEmulatedMedia", &json!({"features": feature}));
    }

    fn emulate(&self, command: &str, parameters: &Value) {
        let command = Emulate(json!({"cmd": command, "params": parameters}));
        let done = self.runtime.block_on(self.client().issue_cmd(command));
        done.expect("the driver takes it");
    }

    /// The value of a function's body.
    ///
    /// # Panics
    /// If it throws.
    pub fn value(&self, body: &str) -> Value {
        let value = self.runtime.block_on(self.client().execute(body, vec![]));
        value.unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    /// The value of a function's body that calls `done` with it.
    ///
    /// # Panics
    /// If it throws.
    pub fn value_later(&self, body: &str) -> Value {
        let body = format!("const done = arguments[arguments.length - 1];\n{body}");
        let value = (self.runtime).block_on(self.client().execute_async(&body, vec![]));
        value.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until a function's body gives something else than null or false.
    ///
    /// # Panics
    /// With what the page shows, if it does not.
    pub fn until(&self, body: &str) -> Value {
        let met = command::poll(PATIENCE, || {
            let value = self.value(body);
            (!value.is_null() && value != Value::Bool(false)).then_some(value)
        });
        met.unwrap_or_else(|| {
            let text = self.value("return document.body.innerText");
            panic!("never: {body}\n{text}\n{:?}", self.complaints())
        })
    }

    /// Presses keys, one after the other.
    ///
    /// # Panics
    /// If the driver fails.
    pub fn press(&self, keys: &[char]) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for &value in keys {
            actions = actions.then(KeyAction::Down { value });
            actions = actions.then(KeyAction::Up { value });
        }
        let done = (self.runtime).block_on(self.client().perform_actions(actions));
        done.expect("the driver takes keys");
    }

    /// A picture of the window, as PNG.
    ///
    /// # Panics
    /// If the driver fails.
    #[must_use]
    pub fn picture(&self) -> Vec<u8> {
        let taken = self.runtime.block_on(self.client().screenshot());
        taken.expect("the driver takes pictures")
    }

    fn logged(&self, kind: &'static str) -> Vec<Value> {
        let logged = self.runtime.block_on(self.client().issue_cmd(Logged(kind)));
        let logged = logged.expect("the driver has logs");
        logged.as_array().cloned().unwrap_or_default()
    }

    /// Returns the errors and warnings that the browser has logged since this was last asked, among them requests that
    /// failed and violations of the page's policy.
    ///
    /// # Panics
    /// If the driver fails.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let all = self.logged("browser").into_iter();
        let grave = |entry: &Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        all.filter(grave)
            .map(|entry| entry["message"].to_string())
            .collect()
    }

    /// Whom the page sent requests since this was last asked: scheme, host and port.
    ///
    /// # Panics
    /// If the driver fails.
    #[must_use]
    pub fn requested_hosts(&self) -> BTreeSet<String> {
        let urls = self.logged("performance").into_iter().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            let sent = message["method"] == "Network.requestWillBeSent";
            let url = sent.then(|| message["params"]["request"]["url"].as_str())??;
            url::Url::parse(url).ok()
        });
        // The browser's own pages, files and data come from no host.
        urls.filter(|url| url.has_host() && !url.scheme().starts_with("chrome"))
            .map(|url| url.origin().ascii_serialization())
            .collect()
    }

    /// Returns the faults of serious or critical impact that axe-core finds in the page, as text.
    ///
    /// # Panics
    /// If axe-core cannot be had.
    #[must_use]
    pub fn barriers(&self) -> Vec<String> {
        let source = std::fs::read_to_string(axe()).expect("it was just unpacked");
        self.value(&source);
        let found = self.value_later(
            "axe.run(document, {resultTypes: ['violations']}).then(\
                found => done(found.violations\
                    .filter(one => ['serious', 'critical'].includes(one.impact))\
                    .map(one => `${one.id}: ${one.help}: ${one.nodes.map(node => node.html + ' ' + node.failureSummary).slice(0, 3).join(' | ')}`)),\
                error => done([`axe failed: ${error}`]))",
        );
        let found = found.as_array().expect("a list");
        found
            .iter()
            .map(|one| one.as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // The driver is killed if this fails.
            let _ = self.runtime.block_on(client.close());
        }
    }
}

/// axe-core, of one release, from the npm registry by its own client.
///
/// # Panics
/// If npm is missing, or gives something else.
fn axe() -> PathBuf {
    const RELEASE: &str = "axe-core-4.14.1";
    const SHA512: &str = "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5";
    let folder = heapwarden_harness::repository::target()
        .join("tools")
        .join(RELEASE);
    let script = folder.join("package/axe.min.js");
    if script.is_file() {
        return script;
    }
    let beside = tempfile::tempdir_in(heapwarden_harness::repository::target())
        .expect("the target folder is writable");
    let run = |command: &mut Command, what: &str| {
        let done = command::run(command.current_dir(beside.path()), PATIENCE);
        assert!(done.status.success(), "{what}: {}", done.stderr);
        done.stdout
    };
    assert!(
        Command::new("npm").arg("--version").output().is_ok(),
        "npm is needed for axe-core: apt-get install npm"
    );
    let name = RELEASE.replace("core-", "core@");
    run(
        Command::new("npm").args(["pack", "--silent", &name]),
        "npm gives axe-core",
    );
    let archive = format!("{RELEASE}.tgz");
    let sum = run(Command::new("sha512sum").arg(&archive), "sha512sum");
    assert!(sum.starts_with(SHA512), "axe-core is another one: {sum}");
    run(Command::new("tar").arg("-xzf").arg(&archive), "tar unpacks");
    std::fs::create_dir_all(folder.parent().expect("below target")).expect("writable");
    // Another test may have been faster.
    let _ = std::fs::rename(beside.path(), &folder);
    assert!(script.is_file(), "{} is there", script.display());
    script
}
