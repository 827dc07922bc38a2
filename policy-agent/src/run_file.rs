//! The run file: tells other programs where this process's agent listens.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use policy_report::RunFile;

/// Writes the run file of this process. A reader sees all of it or the file that was there before.
///
/// # Errors
/// When the file, or one beside it, cannot be written.
pub(crate) fn write(file: &Path, listen: SocketAddr) -> io::Result<()> {
    let pid = std::process::id();
    let text = serde_json::to_string(&RunFile { pid, listen })?;
    let mut temporary = file.to_owned().into_os_string();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, format!("{text}\n"))?;
    std::fs::rename(&temporary, file)
}

/// Removes the run file if it is this process's. A file of another JVM with the same options (a tool
/// that was started beside the server, or the server's successor) stays.
pub(crate) fn remove(file: &Path) {
    let is_ours = std::fs::read(file).is_ok_and(|text| {
        serde_json::from_slice::<RunFile>(&text).is_ok_and(|run| run.pid == std::process::id())
    });
    if is_ours {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_this_process_is_removed_and_one_of_another_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let listen = "127.0.0.1:41234".parse().unwrap();
        write(&file, listen).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let expected = format!(
            "{{\"pid\":{},\"listen\":\"127.0.0.1:41234\"}}\n",
            std::process::id()
        );
        assert_eq!(text, expected);
        remove(&file);
        assert!(!file.exists());
        let other = RunFile { pid: 0, listen };
        std::fs::write(&file, serde_json::to_string(&other).unwrap()).unwrap();
        remove(&file);
        assert!(file.exists());
    }
}
