//! Agent options: what stands behind `libheapwarden.so=` on the command line.
//!
//! `key=value` pairs, separated by commas. An option beats its `HEAPWARDEN_*` environment
//! variable, which beats the policy file, which beats the default. Nothing here fails: an option
//! with a mistake is left out, with a warning, because a typing error must not keep the host
//! from starting.

use std::path::PathBuf;

use policy_config::{AGENT_OPTIONS, Listen};
use policy_core::enforce::TestRefuse;

use crate::http::retry::PortTaken;
use crate::run_file;

/// The treatment of the JVM's `TLABRefillWasteFraction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlabRefill {
    /// It is set to 1, and has its value back where that wastes too much.
    #[default]
    Auto,
    /// It stays as the JVM has it.
    Keep,
    /// It is set to 1.
    Always,
}

/// The agent's options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The policy file.
    pub config: Option<PathBuf>,
    /// Where to listen; beats `[agent] listen` of the policy.
    pub listen: Option<String>,
    /// Whether a port that is taken is waited for; beats `[agent] listen-strict` of the policy.
    pub listen_strict: Option<bool>,
    /// The file that receives the address that was bound.
    pub run_file: Option<PathBuf>,
    /// `false` makes the agent inert; `true` makes it run even in the JDK's own tools.
    pub enabled: Option<bool>,
    /// The treatment of `TLABRefillWasteFraction`.
    pub tlab_refill: TlabRefill,
    /// Where the log goes; standard error if `None`.
    pub log: Option<PathBuf>,
    /// A folder with a question of `heapwarden paths` or `holders`: the agent is loaded already, and answers it.
    pub command: Option<PathBuf>,
    /// For tests only: refuses without evidence.
    pub test_refuse: Option<TestRefuse>,
    /// For tests only: a thread of the agent that is to fail.
    pub test_panic: Option<TestPanic>,
    /// For tests only: what is named seconds late, as on a machine that has no processor left.
    pub test_names: Option<TestNames>,
    /// For tests only: the enforcer begins late, as on a machine that has no processor left.
    pub test_late_limits: bool,
    /// For benches only: nobody watches holdings and leaks.
    pub test_without_holdings: bool,
    /// For tests: walks of the heap fail, each in another way, until all ways have had their turn.
    pub test_walk_faults: bool,
    /// One sentence for each option that was left out.
    pub warnings: Vec<String>,
}

/// A simulated bug, for tests. Never meant for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestPanic {
    /// In the enforcer, once an account is over its limit.
    Enforcer,
    /// In the metadata thread, at the first change of the policy.
    Metadata,
    /// In the notifier, at the first reading for the Java API.
    Notifier,
}

/// The names that a test delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestNames {
    /// Class loaders, and with them services and the program.
    LateLoaders,
    /// Classes.
    LateClasses,
}

impl Options {
    /// Reads the option string; `environment` looks up a variable.
    pub fn read(text: &str, environment: impl Fn(&str) -> Option<String>) -> Options {
        let mut options = Options::default();
        for option in AGENT_OPTIONS {
            let variable = option.variable();
            if let Some(value) = environment(&variable).filter(|value| !value.is_empty()) {
                options.set(option.key, &value, &variable);
            }
        }
        for pair in text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            match pair.split_once('=') {
                Some((key, value)) => options.set(key.trim(), value.trim(), key.trim()),
                None => options.warnings.push(format!(
                    "agent option {pair:?} has no value and is ignored; write key=value, separated by commas"
                )),
            }
        }
        options
    }

    /// Where to listen, `of_policy` being the address of the policy; `None` for nowhere. An option that
    /// is no address is logged and left out.
    pub(crate) fn listen_address(&self, of_policy: &Listen) -> Option<String> {
        let given = match self.listen.as_deref() {
            Some("off") => return None,
            Some(text) => text.parse().map_err(|error| {
                tracing::error!("listen={text} is no address ({error}); using {of_policy}");
            }),
            None => Err(()),
        };
        match given.as_ref().unwrap_or(of_policy) {
            Listen::Off => None,
            address => Some(address.to_string()),
        }
    }

    /// Returns the reaction if another process has the port, `strict_of_policy` being what the policy says.
    pub(crate) fn port_taken(&self, strict_of_policy: bool) -> PortTaken {
        match self.listen_strict.unwrap_or(strict_of_policy) {
            true => PortTaken::Wait,
            false => PortTaken::TakeFree,
        }
    }

    fn set_switch(
        &mut self,
        value: &str,
        shown: &str,
        switch: impl Fn(&mut Options) -> &mut Option<bool>,
    ) {
        match value {
            "true" => *switch(self) = Some(true),
            "false" => *switch(self) = Some(false),
            other => self.warnings.push(format!(
                "{shown} is {other:?}, which is neither true nor false, and is ignored"
            )),
        }
    }

    fn set(&mut self, key: &str, value: &str, shown: &str) {
        match key {
            "config" => self.config = Some(value.into()),
            "listen" => self.listen = Some(value.to_owned()),
            "listen-strict" => self.set_switch(value, shown, |options| &mut options.listen_strict),
            "run-file" => self.run_file = Some(run_file::path(value)),
            "log" => self.log = Some(value.into()),
            "tlab-refill" => match value {
                "auto" => self.tlab_refill = TlabRefill::Auto,
                "keep" => self.tlab_refill = TlabRefill::Keep,
                "always" => self.tlab_refill = TlabRefill::Always,
                other => self.warnings.push(format!(
                    "{shown} is {other:?}, which is none of auto, keep and always, and is ignored"
                )),
            },
            "command" => self.command = Some(value.into()),
            "test-refuse" if value == "naive" => self.test_refuse = Some(TestRefuse::Naive),
            "test-refuse" if value == "storm" => self.test_refuse = Some(TestRefuse::Storm),
            "test-panic" if value == "enforcer" => self.test_panic = Some(TestPanic::Enforcer),
            "test-panic" if value == "metadata" => self.test_panic = Some(TestPanic::Metadata),
            "test-panic" if value == "notifier" => self.test_panic = Some(TestPanic::Notifier),
            "test-names" if value == "late" => self.test_names = Some(TestNames::LateLoaders),
            "test-names" if value == "late-classes" => {
                self.test_names = Some(TestNames::LateClasses)
            }
            "test-limits" if value == "late" => self.test_late_limits = true,
            "test-walk" if value == "faults" => self.test_walk_faults = true,
            "test-holdings" if value == "off" => self.test_without_holdings = true,
            "enabled" => self.set_switch(value, shown, |options| &mut options.enabled),
            unknown => {
                let known = AGENT_OPTIONS.map(|one| format!("{} ({})", one.key, one.wants));
                self.warnings.push(format!(
                    "agent option {unknown:?} is unknown and ignored; there are {}",
                    known.join(", ")
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_beats_the_environment() {
        let environment = |key: &str| match key {
            "HEAPWARDEN_LISTEN" => Some("0.0.0.0:1".to_owned()),
            "HEAPWARDEN_RUN_FILE" => Some("/tmp/run".to_owned()),
            _ => None,
        };
        let options = Options::read("listen=127.0.0.1:0,config=/etc/p.toml", environment);
        assert_eq!(options.listen.as_deref(), Some("127.0.0.1:0"));
        assert_eq!(options.run_file, Some("/tmp/run".into()));
        assert_eq!(options.config, Some("/etc/p.toml".into()));
        assert!(options.warnings.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_told_and_left_out() {
        let options = Options::read("enabled=maybe,colour=red,x", |_| None);
        assert_eq!(options.enabled, None);
        assert_eq!(options.warnings.len(), 3);
        assert!(
            options.warnings[1].contains("colour"),
            "{:?}",
            options.warnings
        );
    }

    #[test]
    fn a_taken_port_is_waited_for_only_if_the_option_or_else_the_policy_says_so() {
        let of = |text: &str| Options::read(text, |_| None);
        assert_eq!(of("").port_taken(false), PortTaken::TakeFree);
        assert_eq!(of("").port_taken(true), PortTaken::Wait);
        assert_eq!(of("listen-strict=true").port_taken(false), PortTaken::Wait);
        assert_eq!(
            of("listen-strict=false").port_taken(true),
            PortTaken::TakeFree
        );
        let wrong = of("listen-strict=yes");
        assert_eq!((wrong.listen_strict, wrong.warnings.len()), (None, 1));
    }

    #[test]
    fn buffers_are_left_alone_only_if_the_option_says_so() {
        for (word, value) in [
            ("auto", TlabRefill::Auto),
            ("keep", TlabRefill::Keep),
            ("always", TlabRefill::Always),
        ] {
            let read = Options::read(&format!("tlab-refill={word}"), |_| None);
            assert_eq!(read.tlab_refill, value);
        }
        let wrong = Options::read("tlab-refill=off", |_| None);
        assert_eq!(
            (wrong.tlab_refill, wrong.warnings.len()),
            (TlabRefill::Auto, 1)
        );
        let variable = |name: &str| (name == "HEAPWARDEN_TLAB_REFILL").then(|| "keep".to_owned());
        assert_eq!(Options::read("", variable).tlab_refill, TlabRefill::Keep);
    }

    #[test]
    fn nothing_is_everything_by_default() {
        assert_eq!(Options::read("", |_| None), Options::default());
    }
}
