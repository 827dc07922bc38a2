//! The run file through which `attach` learns where the agent listens.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, Uid, chownat, mkdirat, unlinkat};

use super::options::AgentOptions;
use crate::process::{Folder, Process};
use heapwarden_client::live::MAX_RUN_FILE_BYTES;

/// Most folders of one JVM that earlier attempts may have left.
const MAX_LEFT_OVER: u32 = 100;

/// Where the agent will write its address.
#[derive(Debug)]
pub(super) enum RunFilePlace {
    /// Nowhere: the agent does not listen.
    None,
    /// The path in its options or its environment, as the JVM sees it.
    Known(PathBuf),
    /// In a folder made for it, to which only the JVM's user may write.
    Own {
        temporary: Folder,
        folder: String,
        path: PathBuf,
    },
}

impl RunFilePlace {
    /// Finds the path, or makes a folder.
    ///
    /// # Errors
    /// The JVM's `/tmp` cannot be written to.
    pub(super) fn prepare(
        process: &Process,
        options: &AgentOptions,
        off: bool,
    ) -> io::Result<RunFilePlace> {
        if off {
            return Ok(RunFilePlace::None);
        }
        let option = options.get("run-file");
        if let Some(path) = option.or(process.info.environment.run_file.as_deref()) {
            // As the agent reads it.
            let path = path.replace("%p", &process.info.status.own_id().to_string());
            return Ok(RunFilePlace::Known(path.into()));
        }
        let temporary = process.root.folder(Path::new("/tmp"))?;
        let status = &process.info.status;
        for attempt in 0..MAX_LEFT_OVER {
            let folder = format!("heapwarden-{}-{attempt}", status.own_id());
            match mkdirat(&temporary, &folder, Mode::RWXU) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(status.user), Gid::from_raw(status.group));
                let no_link = AtFlags::SYMLINK_NOFOLLOW;
                chownat(&temporary, &folder, Some(user), Some(group), no_link)?;
            }
            let path = Path::new("/tmp").join(&folder).join("run.json");
            return Ok(RunFilePlace::Own {
                temporary,
                folder,
                path,
            });
        }
        let message =
            "there are a hundred folders /tmp/heapwarden-* of earlier attempts; remove them";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    }

    /// The path that must be added to the agent's options.
    pub(super) fn to_be_given(&self) -> Option<&Path> {
        match self {
            RunFilePlace::Own { path, .. } => Some(path),
            RunFilePlace::None | RunFilePlace::Known(_) => None,
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            RunFilePlace::None => None,
            RunFilePlace::Known(path) | RunFilePlace::Own { path, .. } => Some(path),
        }
    }

    /// Removes the folder, if one was made.
    pub(super) fn discard(self) {
        if let RunFilePlace::Own {
            temporary, folder, ..
        } = self
        {
            // If this fails, a folder stays in /tmp.
            let _ = unlinkat(&temporary, format!("{folder}/run.json"), AtFlags::empty());
            let _ = unlinkat(&temporary, folder, AtFlags::REMOVEDIR);
        }
    }

    /// The address in the run file, once the agent has written it.
    pub(super) fn address(&self, process: &Process) -> Option<String> {
        let bytes = process.root.read(self.path()?, MAX_RUN_FILE_BYTES).ok()?;
        let run: policy_report::RunFile = serde_json::from_slice(&bytes).ok()?;
        // An earlier JVM may have left its run file at the same path.
        (run.pid == process.info.status.own_id()).then(|| run.listen.to_string())
    }
}
