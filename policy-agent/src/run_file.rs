//! The run file: tells other programs where this process's agent listens.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use policy_report::RunFile;

/// The path of this process's run file: `%p` in the name stands for the process id, as in the JVM's own
/// options, so that JVMs with the same options have a file each.
pub(crate) fn path(given: &str) -> PathBuf {
    given.replace("%p", &std::process::id().to_string()).into()
}

/// A file of this process's own beside the one that was given: `run-4711.json` beside `run.json`.
pub(crate) fn beside(given: &Path) -> PathBuf {
    let stem = given.file_stem().unwrap_or_default().to_string_lossy();
    let id = std::process::id();
    given.with_file_name(match given.extension() {
        Some(extension) => format!("{stem}-{id}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{id}"),
    })
}

/// The process that the run file names, if that is another one and it runs.
pub(crate) fn running_owner(file: &Path) -> Option<u32> {
    let text = std::fs::read(file).ok()?;
    let run: RunFile = serde_json::from_slice(&text).ok()?;
    let is_other = run.pid != std::process::id();
    let runs = || Path::new("/proc").join(run.pid.to_string()).exists();
    (is_other && runs()).then_some(run.pid)
}

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

    #[test]
    fn the_name_may_have_the_process_id_in_it() {
        let id = std::process::id();
        assert_eq!(
            path("/run/%p/%p.json"),
            format!("/run/{id}/{id}.json").as_ref() as &Path
        );
        assert_eq!(path("/run/a%.json"), Path::new("/run/a%.json"));
    }

    #[test]
    fn another_jvms_run_file_gets_one_beside_it() {
        let id = std::process::id();
        let expected = PathBuf::from(format!("/run/a/b.c-{id}.json"));
        assert_eq!(beside(Path::new("/run/a/b.c.json")), expected);
        assert_eq!(
            beside(Path::new("/run/x")),
            PathBuf::from(format!("/run/x-{id}"))
        );
    }

    #[test]
    fn the_owner_of_a_run_file_is_told_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let listen = "127.0.0.1:41234".parse().unwrap();
        let of = |pid| {
            std::fs::write(
                &file,
                serde_json::to_string(&RunFile { pid, listen }).unwrap(),
            )
            .unwrap();
            running_owner(&file)
        };
        assert_eq!(of(1), Some(1));
        assert_eq!(of(u32::MAX), None, "it has ended");
        assert_eq!(of(std::process::id()), None);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(running_owner(&file), None);
    }
}
