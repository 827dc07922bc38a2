//! A real Prometheus and its `promtool`, from the system's package.

use crate::{artifacts, command};
use heapwarden_harness::process::Guard;
use heapwarden_harness::{http, ports};
use serde_json::{Value, json};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The message for a machine on which a program is missing, with the line to type.
const NEEDED: &str = "Prometheus and promtool are needed: apt-get install prometheus";
/// Longest that Prometheus may take until it answers.
const START_LIMIT: Duration = command::PATIENCE;
/// Longest that promtool may take over one file.
const CHECK_LIMIT: Duration = Duration::from_secs(300);

/// Runs `promtool` with these arguments, on a file of the repository.
///
/// # Panics
/// If promtool is not installed.
pub fn promtool(arguments: &[&str], file: &Path) -> command::Finished {
    let mut promtool = Command::new("promtool");
    let found = Command::new("promtool").arg("--version").output();
    assert!(found.is_ok(), "{NEEDED}");
    command::run(promtool.args(arguments).arg(file), CHECK_LIMIT)
}

/// The example configuration of `deploy/prometheus` with the rules beside it. It differs from the
/// file in what is scraped (each target with its name), that everything is done once a second, and
/// that nobody is notified.
///
/// # Panics
/// If the file is no YAML.
#[must_use]
pub fn shipped_configuration(targets: &[(&str, SocketAddr)]) -> String {
    let folder = artifacts::repository().join("deploy/prometheus");
    let text = std::fs::read_to_string(folder.join("prometheus.yml")).expect("it is shipped");
    let mut configuration: Value = serde_yaml_ng::from_str(&text).expect("it is YAML");
    configuration["global"] = json!({"scrape_interval": "1s", "evaluation_interval": "1s"});
    configuration["alerting"] = json!({});
    configuration["rule_files"] = json!([folder.join("heapwarden.rules.yml")]);
    configuration["scrape_configs"][0]["static_configs"] = targets
        .iter()
        .map(|(name, address)| json!({"targets": [address], "labels": {"jvm": name}}))
        .collect();
    // Every JSON document is a YAML document.
    configuration.to_string()
}

/// A running Prometheus; killed by its own id when dropped.
#[derive(Debug)]
pub struct Prometheus {
    // Killed when dropped.
    _process: Guard,
    address: SocketAddr,
    log: PathBuf,
}

impl Prometheus {
    /// Starts one that is configured by the text `configuration` and keeps its data in `folder`,
    /// and waits until it is ready.
    ///
    /// # Panics
    /// If it is not installed, or never ready.
    #[must_use]
    pub fn start(configuration: &str, folder: &Path) -> Self {
        let prometheus = Self::spawn(configuration, folder, None);
        let ready = command::poll(START_LIMIT, || {
            (prometheus.get("/-/ready")?.status == 200).then_some(())
        });
        assert!(ready.is_some(), "never ready:\n{}", prometheus.log());
        prometheus
    }

    /// Starts one that scrapes nothing and is guarded by a web configuration (TLS, passwords). It is
    /// not waited for: only those can ask it who know the password.
    ///
    /// # Panics
    /// If it is not installed.
    #[must_use]
    pub fn guarded(web_configuration: &Path, folder: &Path) -> Self {
        Self::spawn("scrape_configs: []\n", folder, Some(web_configuration))
    }

    fn spawn(configuration: &str, folder: &Path, web_configuration: Option<&Path>) -> Self {
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, configuration).expect("the case's folder is writable");
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let log = folder.join("prometheus.log");
        let data = folder.join("tsdb");
        let mut prometheus = Command::new("prometheus");
        prometheus
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"));
        if let Some(file) = web_configuration {
            prometheus.arg(format!("--web.config.file={}", file.display()));
        }
        prometheus
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("the case's folder is writable"));
        Self {
            _process: Guard::start(&mut prometheus).expect(NEEDED),
            address,
            log,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all that it has logged, or nothing if the file cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<http::Answer> {
        http::get(self.address, path).ok()
    }

    /// `data` of an answer of its API, or why there is none.
    ///
    /// # Errors
    /// A sentence: no answer, or Prometheus' own error.
    pub fn api(&self, path: &str) -> Result<Value, String> {
        let answer = self
            .get(path)
            .ok_or_else(|| format!("no answer to {path}"))?;
        let json: Value = serde_json::from_str(&answer.body)
            .map_err(|error| format!("{path}: {error}: {}", answer.body))?;
        if json["status"] == "success" {
            Ok(json["data"].clone())
        } else {
            Err(format!("{path}: {}", json["error"]))
        }
    }

    /// The alerts that are pending or firing now.
    ///
    /// # Panics
    /// As [`Prometheus::api`] has errors.
    #[must_use]
    pub fn alerts(&self) -> Vec<Value> {
        let data = self.api("/api/v1/alerts");
        let data = data.unwrap_or_else(|error| panic!("{error}"));
        data["alerts"].as_array().cloned().unwrap_or_default()
    }

    /// The instant vector that an expression has now.
    ///
    /// # Errors
    /// As [`Prometheus::api`]; so for what is no expression.
    pub fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let path = format!("/api/v1/query?query={}", percent_encoded(expression));
        series(expression, &self.api(&path)?)
    }

    /// The series that an expression has from `start` to `end`, in seconds since the Unix epoch, a
    /// value each second.
    ///
    /// # Errors
    /// As [`Prometheus::query`].
    pub fn query_range(
        &self,
        expression: &str,
        (start, end): (f64, f64),
    ) -> Result<Vec<Value>, String> {
        let path = format!(
            "/api/v1/query_range?query={}&start={start:.3}&end={end:.3}&step=1",
            percent_encoded(expression)
        );
        series(expression, &self.api(&path)?)
    }

    /// The values that a label has in the series that a selector selects.
    ///
    /// # Errors
    /// As [`Prometheus::api`].
    pub fn label_values(&self, label: &str, selector: &str) -> Result<Vec<Value>, String> {
        let selector = percent_encoded(selector);
        let data = self.api(&format!("/api/v1/label/{label}/values?match[]={selector}"))?;
        Ok(data.as_array().cloned().unwrap_or_default())
    }

    /// Waits until an expression has series.
    ///
    /// # Panics
    /// With Prometheus' log, if it has none within `limit`.
    pub fn until(&self, limit: Duration, expression: &str) {
        let met = command::poll(limit, || {
            let found = self.query(expression).ok()?;
            (!found.is_empty()).then_some(())
        });
        let log = self.log();
        assert!(met.is_some(), "not within {limit:?}: {expression}\n{log}");
    }

    /// The value of the only series of an expression; `None` where there is none, or several.
    #[must_use]
    pub fn value(&self, expression: &str) -> Option<f64> {
        match self.query(expression).ok()?.as_slice() {
            [only] => only["value"][1].as_str()?.parse().ok(),
            _ => None,
        }
    }
}

fn series(expression: &str, data: &Value) -> Result<Vec<Value>, String> {
    match data["result"].as_array() {
        Some(series) => Ok(series.clone()),
        None => Err(format!("{expression} is no vector: {data}")),
    }
}

/// `text` as it may stand in a query string.
fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
