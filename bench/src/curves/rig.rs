//! The built parts, and the command line of a JVM.

use anyhow::Result;

use super::plan::{Point, Program, TIMED_MS, depths};
use super::settings::Setting;
use crate::build;
use crate::gc_log;
use crate::jdk::Jdk;
use crate::jvm::ALIKE;
use crate::workshop::Workshop;

/// Of one size, so that no collector's idea of growth is measured.
const HEAP: [&str; 3] = ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC"];

/// Everything that is built, for one JDK.
pub(crate) struct Rig {
    pub(crate) jdk: Jdk,
    pub(crate) shop: Workshop,
}

impl Rig {
    /// Builds all.
    ///
    /// # Errors
    /// Where the agent or the programs cannot be built.
    pub(crate) fn build(jdk: &Jdk) -> Result<Rig> {
        let chains: Vec<_> = depths()
            .map(|depth| build::chain_source("curves", depth))
            .collect();
        Ok(Rig {
            shop: Workshop::build("curves", jdk, &chains, None)?,
            jdk: jdk.clone(),
        })
    }

    /// Returns the JVM flags that all runs have in common, to be saved with them; a JVM that only says hello compiles
    /// as JVMs do, for that is a part of what is measured.
    pub(crate) fn flags() -> Vec<String> {
        let flags = HEAP.iter().chain([&ALIKE]);
        flags.map(|&flag| flag.to_owned()).collect()
    }

    /// The arguments of a JVM that runs a point with a setting; so many operations, 0 to find out how
    /// many.
    pub(crate) fn arguments(
        &self,
        point: &Point,
        setting: &Setting,
        operations: u64,
    ) -> Vec<String> {
        let mut arguments = Rig::flags();
        arguments.extend(point.flags.iter().map(|&flag| flag.to_owned()));
        if setting.policy.is_some() {
            arguments.push(self.shop.agent_path());
        }
        if point.program == Program::Hello {
            arguments.retain(|flag| flag != ALIKE);
        } else {
            arguments.push(gc_log::flag(&self.shop.gc_log()));
        }
        arguments.extend(self.shop.class_path());
        match point.program {
            Program::Hello => arguments.push("curves.Hello".to_owned()),
            Program::Account => arguments.push("curves.Account".to_owned()),
            Program::Work => arguments.extend([
                "curves.Main".to_owned(),
                operations.to_string(),
                TIMED_MS.to_string(),
            ]),
        }
        arguments.extend(point.arguments.iter().cloned());
        arguments
    }
}
