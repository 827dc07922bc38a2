//! Runs JMH and reads what it measured.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::setting::Setting;
use crate::build;
use crate::jdk::Jdk;

const WARM_UPS: &str = "4";
const ITERATIONS: &str = "5";
/// The name that JMH's collector profiler gives to the bytes that one operation allocates.
const ALLOCATED: &str = "gc.alloc.rate.norm";

/// One benchmark's figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Score {
    /// Name of the method.
    pub(crate) name: String,
    /// The parameter `scope`; empty where there is none.
    pub(crate) scope: String,
    /// Mean time of one operation.
    pub(crate) ns: f64,
    /// Bytes that one operation allocates.
    pub(crate) allocated_bytes: f64,
    /// The time that half of the agent's samples took at most, and 99 % of them; of allocations alone.
    pub(crate) callback_ns: Option<(f64, f64)>,
}

/// The folder of the policies, the agent's library and the length of one iteration.
pub(crate) struct Rig {
    folder: PathBuf,
    agent: PathBuf,
    iteration: String,
}

impl Rig {
    /// Writes a policy for each interval into `folder`.
    pub(crate) fn new(folder: PathBuf, agent: &Path, iteration_millis: u32) -> Result<Rig> {
        for setting in [Setting::Sampled, Setting::Exact] {
            let text = format!(
                "[sampling]\ninterval = \"{}\"\ncpu-budget = \"none\"\n\n[[account]]\nscope = \"tenant-*\"\n",
                setting.name()
            );
            let path = folder.join(format!("{}.toml", setting.name()));
            std::fs::write(&path, text)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(Rig {
            folder,
            agent: agent.to_owned(),
            iteration: format!("{iteration_millis}ms"),
        })
    }

    /// Runs the benchmarks whose name begins so, each in a JVM of its own.
    pub(crate) fn measure(
        &self,
        jdk: &Jdk,
        setting: Setting,
        benchmarks: &str,
    ) -> Result<Vec<Score>> {
        let jar = build::root().join("bench/java/api/jmh/target/benchmarks.jar");
        let answer = self.folder.join("jmh.json");
        let mut java = jdk.java();
        java.arg("-jar")
            .arg(jar)
            .args(["-f", "1", "-wi", WARM_UPS, "-i", ITERATIONS])
            .args(["-w", &self.iteration, "-r", &self.iteration])
            .args(["-prof", "gc", "-foe", "true", "-rf", "json", "-rff"])
            .arg(&answer)
            .arg("-jvmArgs")
            .arg(self.jvm_arguments(setting))
            .arg(format!("^{benchmarks}."));
        let output = build::output(&mut java, "it comes with the JDK")?;
        let text = std::fs::read_to_string(&answer).context("JMH wrote no results")?;
        let json = serde_json::from_str(&text).context("JMH's results are no JSON")?;
        scores(&json, &output)
    }

    fn jvm_arguments(&self, setting: Setting) -> String {
        let heap = "-Xms512m -Xmx512m";
        if setting == Setting::Absent {
            return heap.to_owned();
        }
        let run_file = self.folder.join("run.json");
        let run_file = run_file.display();
        format!(
            "{heap} -Dbench.run-file={run_file} \
             -agentpath:{}=config={},listen=127.0.0.1:0,run-file={run_file},log={}",
            self.agent.display(),
            self.folder
                .join(format!("{}.toml", setting.name()))
                .display(),
            self.folder.join("agent.log").display()
        )
    }
}

/// The line `callback SCOPE P50 P99` that a benchmark prints at its end.
fn callback_ns(output: &str, scope: &str) -> Option<(f64, f64)> {
    output.lines().find_map(|line| {
        let rest = line.strip_prefix("callback ")?.strip_prefix(scope)?;
        let (p50, p99) = rest.trim().split_once(' ')?;
        Some((p50.parse().ok()?, p99.parse().ok()?))
    })
}

/// The scores in JMH's JSON, with what the benchmarks printed.
fn scores(json: &Value, output: &str) -> Result<Vec<Score>> {
    let runs = json.as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(!runs.is_empty(), "JMH measured nothing");
    runs.iter()
        .map(|run| {
            let name = run["benchmark"].as_str().unwrap_or_default();
            let scope = run["params"]["scope"].as_str().unwrap_or_default();
            let secondary = run["secondaryMetrics"].as_object();
            // Older releases put a middle dot before the name.
            let allocated = secondary
                .into_iter()
                .flatten()
                .find(|(key, _)| key.trim_start_matches('·') == ALLOCATED)
                .and_then(|(_, metric)| metric["score"].as_f64());
            Ok(Score {
                name: name.rsplit('.').next().unwrap_or(name).to_owned(),
                callback_ns: callback_ns(output, scope),
                scope: scope.to_owned(),
                ns: run["primaryMetric"]["score"]
                    .as_f64()
                    .with_context(|| format!("{name} has no score"))?,
                allocated_bytes: allocated.with_context(|| format!("{name} has no {ALLOCATED}"))?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scores_are_read_from_what_jmh_writes() {
        let json = json!([{"benchmark": "api.Allocate.kibibyte", "params": {"scope": "entered"},
            "primaryMetric": {"score": 51.5},
            "secondaryMetrics": {"gc.count": {"score": 3.0}, "gc.alloc.rate.norm": {"score": 1024.0}}}]);
        let expected = Score {
            name: "kibibyte".to_owned(),
            scope: "entered".to_owned(),
            ns: 51.5,
            allocated_bytes: 1024.0,
            callback_ns: Some((620.0, 2900.0)),
        };
        let output = "Iteration 5: \ncallback entered 620 2900\n51.5 ns/op";
        assert_eq!(scores(&json, output).unwrap(), [expected]);
    }

    #[test]
    fn a_run_without_figures_is_no_measurement() {
        assert!(scores(&json!([]), "").is_err());
        let json = json!([{"benchmark": "a.b", "primaryMetric": {"score": 1.0}}]);
        assert!(scores(&json, "").is_err());
    }
}
