//! The run file of an agent: where it listens.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use policy_report::RunFile;

/// The address in a run file; none before the agent has bound its listener, and while it writes the file.
#[must_use]
pub fn listener(path: &Path) -> Option<SocketAddr> {
    let run: RunFile = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    Some(run.listen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_file_has_no_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        assert_eq!(listener(&path), None);
        fs::write(&path, "{\"pid\":1,\"li").unwrap();
        assert_eq!(listener(&path), None);
        fs::write(&path, "{\"pid\":1,\"listen\":\"127.0.0.1:41234\"}\n").unwrap();
        assert_eq!(listener(&path), Some("127.0.0.1:41234".parse().unwrap()));
    }
}
