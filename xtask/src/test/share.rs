//! How much of the machine each test program uses, by its name.
//!
//! Measured on two processors. A new program that is not listed gets one processor; add it here if it
//! mostly waits (less), or if it asserts on time (alone).

/// A program's share of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Processors that it keeps busy, in tenths.
    pub(super) tenths_of_a_core: u32,
    /// Whether nothing else may run meanwhile: it asserts on time, or on what a busy machine changes.
    pub(super) alone: bool,
    /// How many of its tests run at a time.
    pub(super) threads: u32,
    /// How long it takes: the longest are started first.
    pub(super) seconds: u32,
}

const fn shared(tenths_of_a_core: u32, threads: u32, seconds: u32) -> Share {
    Share {
        tenths_of_a_core,
        alone: false,
        threads,
        seconds,
    }
}

const fn alone(threads: u32, seconds: u32) -> Share {
    Share {
        tenths_of_a_core: 0,
        alone: true,
        threads,
        seconds,
    }
}

const TABLE: &[(&str, Share)] = &[
    ("refusal_stress", shared(7, 3, 110)),
    ("accuracy", shared(10, 2, 210)),
    ("buffer_refills", shared(10, 1, 90)),
    ("services_in_servers", shared(4, 4, 180)),
    ("refusals_in_servers", shared(4, 4, 100)),
    ("further_servers", shared(5, 2, 120)),
    ("server_libraries", shared(7, 2, 100)),
    ("service_doors", shared(5, 4, 150)),
    ("method_doors", shared(8, 2, 60)),
    ("door_storm", shared(10, 1, 90)),
    ("routes", shared(5, 2, 120)),
    ("refusals_keep_invariants", shared(9, 2, 120)),
    ("scopes", shared(9, 2, 90)),
    ("redeployment", shared(9, 2, 150)),
    ("threads_of_services", shared(5, 3, 40)),
    ("native_memory", shared(8, 3, 50)),
    ("direct_limits", shared(8, 3, 60)),
    ("hostile_programs", shared(8, 2, 90)),
    ("reload_stress", shared(7, 2, 70)),
    ("refunds", shared(9, 2, 160)),
    ("api_in_web_applications", shared(5, 4, 60)),
    ("limits", shared(7, 2, 60)),
    ("reload", shared(5, 4, 60)),
    ("suggest", shared(4, 4, 160)),
    ("plugin_hosts", shared(7, 2, 90)),
    ("programs", shared(5, 3, 100)),
    ("class_rewriting", shared(10, 1, 150)),
    ("exact_accounts", shared(10, 1, 210)),
    ("exact_libraries", shared(10, 1, 20)),
    ("same_answers", shared(10, 1, 90)),
    ("contexts", shared(10, 1, 290)),
    ("example_tenants", shared(4, 4, 60)),
    ("dashboards", shared(3, 2, 60)),
    ("evidence", shared(8, 2, 100)),
    ("threads", shared(9, 2, 50)),
    ("throw_points", shared(6, 3, 40)),
    ("fleet", shared(8, 2, 30)),
    ("distribution", shared(8, 3, 100)),
    ("agent_start", shared(6, 3, 40)),
    ("duress", shared(12, 2, 60)),
    ("error_classes", shared(8, 3, 40)),
    ("agent_failures", shared(4, 4, 40)),
    ("alerts", shared(3, 4, 110)),
    ("http", shared(3, 4, 40)),
    ("top_and_status", shared(3, 4, 40)),
    ("services", shared(6, 3, 30)),
    ("sites", shared(8, 2, 30)),
    ("profile", shared(8, 2, 60)),
    ("packages", shared(6, 3, 30)),
    ("attach", shared(6, 3, 30)),
    ("doctor", shared(6, 3, 25)),
    ("advise", shared(3, 4, 100)),
    ("jvm_exit", shared(6, 3, 20)),
    ("prometheus_with_tls", shared(3, 2, 10)),
    ("page", shared(10, 2, 150)),
    ("leaks", shared(3, 4, 370)),
    ("notifier", shared(6, 2, 5)),
    ("killed_threads", shared(6, 2, 15)),
    ("units_of_work", shared(6, 2, 25)),
    ("refused_places", shared(6, 2, 40)),
    ("paths", shared(8, 2, 220)),
    ("instances", shared(8, 2, 40)),
    ("paths_limits", shared(6, 2, 200)),
    ("paths_in_slices", shared(8, 2, 90)),
    ("snapshots", shared(7, 2, 30)),
    ("thinned_classes", shared(8, 2, 20)),
    ("paths_in_applications", shared(6, 2, 150)),
    ("garbage_is_not_refused", alone(1, 130)),
    ("limit_overshoot", alone(1, 100)),
    ("virtual_threads", alone(1, 15)),
    ("large_arrays", alone(2, 50)),
    ("stated_errors", alone(2, 90)),
    ("operator_story", shared(9, 1, 390)),
    ("applications", alone(1, 60)),
    ("servers_without_doors", alone(1, 60)),
];

/// The share of the program with this name.
pub(super) fn share(name: &str) -> Share {
    TABLE
        .iter()
        .find(|(listed, _)| *listed == name)
        .map_or(shared(10, 2, 5), |(_, share)| *share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwarden_harness::repository;

    #[test]
    fn every_listed_program_exists_and_every_one_on_real_jvms_is_listed() {
        let mut files: Vec<String> = std::fs::read_dir(repository::root().join("tests/tests"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists()
            })
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut listed: Vec<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
        files.sort();
        listed.sort();
        assert_eq!(files, listed);
    }
}
