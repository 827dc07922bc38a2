//! The options that stand behind `libheapwarden.so=` on the command line, declared once for the agent, `heapwarden
//! attach` and `doctor`.

/// An option of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentOption {
    /// Its name.
    pub key: &'static str,
    /// The value that it expects, in words.
    pub wants: &'static str,
    /// The same for `heapwarden attach`; `None` if the option has an effect at the start of a JVM alone.
    pub wants_at_attach: Option<&'static str>,
}

const PATH: &str = "an absolute path";
const SWITCH: &str = "true or false";
const LOG: &str = "the absolute path of a log file";

/// All options that users have.
pub const AGENT_OPTIONS: [AgentOption; 7] = [
    AgentOption {
        key: "config",
        wants: "the absolute path of a policy file",
        wants_at_attach: Some("--config FILE does that"),
    },
    AgentOption {
        key: "listen",
        wants: "host:port, or off",
        wants_at_attach: Some("host:port, port 0 picks one, or off"),
    },
    option("listen-strict", SWITCH),
    option("run-file", PATH),
    option("enabled", SWITCH),
    option("log", LOG),
    AgentOption {
        key: "tlab-refill",
        wants: "auto, keep or always",
        wants_at_attach: None,
    },
];

const fn option(key: &'static str, wants: &'static str) -> AgentOption {
    AgentOption {
        key,
        wants,
        wants_at_attach: Some(wants),
    }
}

impl AgentOption {
    /// The variable of the environment that has its value where no option is given.
    pub fn variable(self) -> String {
        format!("HEAPWARDEN_{}", self.key.replace('-', "_").to_uppercase())
    }
}
