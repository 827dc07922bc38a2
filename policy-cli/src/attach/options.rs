//! The option string for the agent.

use std::path::Path;

use policy_config::AGENT_OPTIONS;

/// The options that have an effect when the agent is attached, and what each expects.
fn at_attach() -> impl Iterator<Item = (&'static str, &'static str)> {
    let options = AGENT_OPTIONS.into_iter();
    options.filter_map(|option| Some((option.key, option.wants_at_attach?)))
}

/// A mistake in an option for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionError {
    /// No `=`.
    #[error("{0:?} has no value: write key=value")]
    NoValue(String),
    /// Not one of the agent's.
    #[error("the agent has no option {key:?}; its options are {known}", known = known())]
    Unknown { key: String },
    /// The agent splits at commas.
    #[error("{0:?} contains a comma, which would end the option: use a path without one")]
    Comma(String),
    /// Given twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// A relative path.
    #[error("{key}={value}: the path must be absolute, because the JVM has its own working folder")]
    Relative { key: String, value: String },
    /// `listen` is not an address.
    #[error("listen={value}: {why}")]
    Listen { value: String, why: String },
    /// A switch is neither true nor false.
    #[error("{key}={value} is neither true nor false")]
    NoSwitch { key: String, value: String },
    /// Not text.
    #[error("{0:?} is not UTF-8, as the agent's options must be")]
    NoText(std::path::PathBuf),
}

fn known() -> String {
    let keys = at_attach().map(|(key, wants)| format!("{key} ({wants})"));
    keys.collect::<Vec<_>>().join(", ")
}

/// The options, each key once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AgentOptions(Vec<(String, String)>);

impl AgentOptions {
    /// Reads `key=value` texts.
    ///
    /// # Errors
    /// Any mistake. The agent itself would only log a warning and go on.
    pub(crate) fn parse<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<AgentOptions, OptionError> {
        let mut options = AgentOptions::default();
        for text in texts {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| OptionError::NoValue(text.to_owned()))?;
            options.set(key.trim(), value.trim())?;
        }
        Ok(options)
    }

    /// Adds one.
    ///
    /// # Errors
    /// As [`AgentOptions::parse`].
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), OptionError> {
        if !at_attach().any(|(known, _)| known == key) {
            let key = key.to_owned();
            return Err(OptionError::Unknown { key });
        }
        if self.get(key).is_some() {
            return Err(OptionError::Twice(key.to_owned()));
        }
        if value.is_empty() {
            return Err(OptionError::NoValue(format!("{key}=")));
        }
        if value.contains(',') {
            return Err(OptionError::Comma(value.to_owned()));
        }
        match key {
            "listen" => {
                let parsed = value.parse::<policy_config::Listen>();
                if let Err(why) = parsed.map_err(|why| format!("{why}; {}", why.hint())) {
                    let value = value.to_owned();
                    return Err(OptionError::Listen { value, why });
                }
            }
            "enabled" | "listen-strict" if !matches!(value, "true" | "false") => {
                let (key, value) = (key.to_owned(), value.to_owned());
                return Err(OptionError::NoSwitch { key, value });
            }
            "config" | "run-file" | "log" if !value.starts_with('/') => {
                let (key, value) = (key.to_owned(), value.to_owned());
                return Err(OptionError::Relative { key, value });
            }
            _ => {}
        }
        self.0.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Adds one whose value is a path.
    ///
    /// # Errors
    /// As [`AgentOptions::parse`].
    pub(crate) fn set_path(&mut self, key: &str, path: &Path) -> Result<(), OptionError> {
        let text = path.to_str();
        let text = text.ok_or_else(|| OptionError::NoText(path.to_owned()))?;
        self.set(key, text)
    }

    /// The value of one.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(given, _)| given == key)
            .map(|(_, value)| value.as_str())
    }

    /// As the agent reads them.
    pub(crate) fn text(&self) -> String {
        let pairs = self.0.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_one_text() {
        let mut options =
            AgentOptions::parse(["listen=127.0.0.1:0", "log=/var/log/h w.log"]).unwrap();
        options
            .set_path("config", Path::new("/etc/h.toml"))
            .unwrap();
        assert_eq!(
            options.text(),
            "listen=127.0.0.1:0,log=/var/log/h w.log,config=/etc/h.toml"
        );
        assert_eq!(options.get("listen"), Some("127.0.0.1:0"));
        assert_eq!(options.get("run-file"), None);
    }

    #[test]
    fn typing_errors_are_reported() {
        let error = |text: &str| AgentOptions::parse([text]).unwrap_err().to_string();
        assert!(
            error("lisen=off").contains("listen (host:port"),
            "{}",
            error("lisen=off")
        );
        assert!(error("listen").contains("key=value"));
        assert!(error("log=").contains("key=value"));
        assert!(error("log=/a,b").contains("comma"));
        assert!(error("log=a.log").contains("absolute"));
        assert!(error("enabled=yes").contains("neither"));
        assert!(error("listen-strict=1").contains("neither"));
        assert!(error("listen=9464").contains("9464"));
        let twice = AgentOptions::parse(["listen=off", "listen=off"]);
        assert_eq!(twice, Err(OptionError::Twice("listen".to_owned())));
    }
}
