//! The trait of all applications of others, and the parts that their set-ups share.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use heapwarden_harness::http::Answer;

use crate::jdk::Vm;
use crate::server::{Installation, Server, installed};

pub(super) const TOMCAT: &str = "apache-tomcat-9.0.117";
/// The sampling interval that servers are set up with; [`write_policy`] goes back to the default.
pub(super) const INTERVAL: &str = "64KiB";
/// The path at which the neighbour answers `done`.
pub(super) const NEIGHBOUR: &str = "/other/answer.txt";

/// Replaces the policy that the server was set up with.
pub(super) fn write_policy(site: &Installation, policy: &str) {
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("writable");
}

/// An application that Maven copied, and a small one beside it.
pub(super) fn deploy_with_neighbour(archive: &str, webapps: &Path) {
    fs::create_dir(webapps.join("other")).expect("writable");
    fs::write(webapps.join("other/answer.txt"), "done").expect("writable");
    let from = installed().join("applications").join(archive);
    fs::copy(&from, webapps.join(archive))
        .unwrap_or_else(|error| panic!("{} by Maven: {error}", from.display()));
}

/// Something that takes loads, keeps them in its heap, and can say which it has.
pub trait Application: Sync {
    /// The account that the agent gives it.
    fn account(&self) -> &'static str;

    /// Where it is asked whether it is up.
    fn front(&self) -> &'static str;

    /// Starts it with this policy; `data` outlives the server.
    fn start(&self, site: Installation, vm: &Vm, data: &Path, policy: &str) -> Server;

    /// Makes whatever has to be there before the first load: a dataset, a repository, a folder.
    fn prepare(&self, server: &Server);

    /// Sends one load.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn load(&self, server: &Server, number: u32) -> io::Result<Answer>;

    /// Returns how many bytes one load makes it hold, roughly: for the pace.
    fn load_bytes(&self) -> u64;

    /// Entries of one load.
    fn load_entries(&self) -> u64;

    /// Reads one load back; `entries` counts them in the answer.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn read(&self, server: &Server, number: u32) -> io::Result<Answer>;

    /// How many entries of a load are in an answer of [`Self::read`].
    fn entries(&self, answer: &Answer) -> u64;

    /// Reads everything that it has, if it can in one answer; [`Self::entries`] counts them.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn export(&self, _server: &Server) -> Option<io::Result<Answer>> {
        None
    }

    /// Asks for everything that it has.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn ask_census(&self, server: &Server) -> io::Result<Answer>;

    /// Entries of each load, from an answer of [`Self::ask_census`].
    fn census(&self, answer: &Answer) -> BTreeMap<u32, u64>;

    /// Deletes all loads up to this number. Sent again until it is acknowledged, and until the memory is free.
    ///
    /// # Errors
    /// If there is no whole answer.
    fn delete(&self, server: &Server, loads: u32) -> io::Result<Answer>;
}
