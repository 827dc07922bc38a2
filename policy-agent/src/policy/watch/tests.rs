//! Every way in which a file changes under a watch.

use std::os::unix::fs::symlink;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use super::*;

/// Within which every change must be reported.
const PROMISED: Duration = Duration::from_secs(2);

/// Long enough for everything under way to be reported.
const QUIET: Duration = Duration::from_millis(1500);

struct Watched {
    directory: tempfile::TempDir,
    reports: Receiver<Observation>,
    _handle: WatchHandle,
}

impl Watched {
    /// Watches `policy.toml` in a new directory that `prepare` may furnish first.
    fn new(sources: fn(&Arc<Signal>) -> Sources, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let path = directory.path().join("policy.toml");
        let (sender, reports) = channel();
        let known = observe(&path);
        let report = move |observation| sender.send(observation).unwrap_or_default();
        let handle = start(path, known, report, sources).unwrap();
        Watched {
            directory,
            reports,
            _handle: handle,
        }
    }

    fn with_file(content: &str) -> Self {
        Watched::new(Sources::events, |directory| {
            fs::write(directory.join("policy.toml"), content).unwrap();
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("policy.toml")
    }

    #[track_caller]
    fn expect(&self, expected: Observation) {
        match self.reports.recv_timeout(PROMISED) {
            Ok(observation) => assert_eq!(observation, expected),
            Err(_) => panic!("{expected:?} was not reported"),
        }
    }

    #[track_caller]
    fn expect_content(&self, text: &str) {
        self.expect(Observation::Content(text.into()));
    }

    /// Returns when the thread watches: what a program did before that, no event tells.
    #[track_caller]
    fn expect_events(&self) {
        fs::write(self.file(), "watched").unwrap();
        self.expect_content("watched");
    }

    #[track_caller]
    fn expect_nothing(&self) {
        assert_eq!(
            self.reports.recv_timeout(QUIET),
            Err(RecvTimeoutError::Timeout)
        );
    }
}

#[test]
fn writing_in_place() {
    let watched = Watched::with_file("one");
    fs::write(watched.file(), "two").unwrap();
    watched.expect_content("two");
    fs::write(watched.file(), "three").unwrap();
    watched.expect_content("three");
    watched.expect_nothing();
}

#[test]
fn appending() {
    use std::io::Write as _;
    let watched = Watched::with_file("one");
    let mut file = File::options().append(true).open(watched.file()).unwrap();
    file.write_all(b" and two").unwrap();
    watched.expect_content("one and two");
}

#[test]
fn renaming_over() {
    let watched = Watched::with_file("one");
    for content in ["two", "three"] {
        fs::write(watched.path("policy.toml~"), content).unwrap();
        fs::rename(watched.path("policy.toml~"), watched.file()).unwrap();
        watched.expect_content(content);
    }
}

#[test]
fn moving_away_and_writing_anew() {
    let watched = Watched::with_file("one");
    fs::rename(watched.file(), watched.path("policy.toml.bak")).unwrap();
    thread::sleep(Duration::from_millis(20));
    fs::write(watched.file(), "two").unwrap();
    watched.expect_content("two");
    watched.expect_nothing();
}

#[test]
fn truncating_then_writing_reports_only_the_whole() {
    use std::io::Write as _;
    let watched = Watched::with_file("one");
    watched.expect_events();
    let mut file = File::create(watched.file()).unwrap();
    thread::sleep(Duration::from_millis(120));
    file.write_all("tw\u{e4}".as_bytes().split_last().unwrap().1)
        .unwrap();
    thread::sleep(Duration::from_millis(120));
    file.write_all(&"tw\u{e4}".as_bytes()[3..]).unwrap();
    watched.expect_content("tw\u{e4}");
    watched.expect_nothing();
}

#[test]
fn what_stays_empty_is_reported() {
    let watched = Watched::with_file("one");
    File::create(watched.file()).unwrap();
    watched.expect_content("");
}

#[test]
fn going_and_coming_back_unchanged_in_a_moment_is_nothing() {
    let watched = Watched::with_file("one");
    fs::remove_file(watched.file()).unwrap();
    thread::sleep(Duration::from_millis(50));
    fs::write(watched.file(), "one").unwrap();
    watched.expect_nothing();
}

#[test]
fn removal_and_return() {
    let watched = Watched::with_file("one");
    fs::remove_file(watched.file()).unwrap();
    watched.expect(Observation::Missing);
    fs::write(watched.file(), "one").unwrap();
    watched.expect_content("one");
}

#[test]
fn a_file_that_appears_first_under_the_watch() {
    let watched = Watched::new(Sources::events, |_| {});
    watched.expect_nothing();
    fs::write(watched.file(), "one").unwrap();
    watched.expect_content("one");
}

/// Furnishes a directory as the kubelet does.
fn config_map(directory: &Path, release: &str, content: &str) {
    fs::create_dir(directory.join(release)).unwrap();
    fs::write(directory.join(release).join("policy.toml"), content).unwrap();
    symlink(release, directory.join("..data_tmp")).unwrap();
    fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
}

#[test]
fn kubernetes_swaps_the_link_of_the_directory() {
    for sources in [Sources::events, Sources::none] {
        let watched = Watched::new(sources, |directory| {
            config_map(directory, "..2024_1", "one");
            symlink("..data/policy.toml", directory.join("policy.toml")).unwrap();
        });
        for (old, new, content) in [
            ("..2024_1", "..2024_2", "two"),
            ("..2024_2", "..2024_3", "three"),
        ] {
            config_map(watched.directory.path(), new, content);
            fs::remove_dir_all(watched.path(old)).unwrap();
            watched.expect_content(content);
        }
        watched.expect_nothing();
    }
}

#[test]
fn the_target_of_a_link_is_written() {
    let watched = Watched::new(Sources::events, |directory| {
        fs::create_dir(directory.join("elsewhere")).unwrap();
        fs::write(directory.join("elsewhere/real"), "one").unwrap();
        symlink("elsewhere/real", directory.join("policy.toml")).unwrap();
    });
    let before = Instant::now();
    fs::write(watched.path("elsewhere/real"), "two").unwrap();
    watched.expect_content("two");
    assert!(
        before.elapsed() < POLL,
        "an event, not the poll, has shown it"
    );
    fs::remove_file(watched.path("elsewhere/real")).unwrap();
    watched.expect(Observation::Missing);
}

#[test]
fn the_directory_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let etc = directory.path().join("etc");
    let path = etc.join("policy.toml");
    let (sender, reports) = channel();
    let report = move |observation| sender.send(observation).unwrap_or_default();
    let _handle = watch(&path, observe(&path), report).unwrap();
    for turn in 0..3 {
        let content = format!("round {turn}");
        fs::create_dir(&etc).unwrap();
        fs::write(&path, &content).unwrap();
        assert_eq!(
            reports.recv_timeout(PROMISED),
            Ok(Observation::Content(content))
        );
        // The watch of the new directory reports as promptly as that of the first.
        let before = Instant::now();
        fs::write(&path, "again").unwrap();
        assert_eq!(
            reports.recv_timeout(PROMISED),
            Ok(Observation::Content("again".into()))
        );
        assert!(before.elapsed() < POLL, "round {turn}");
        fs::remove_dir_all(&etc).unwrap();
        assert_eq!(reports.recv_timeout(PROMISED), Ok(Observation::Missing));
    }
}

#[test]
fn without_events_the_poll_sees_what_the_times_hide() {
    let watched = Watched::new(Sources::none, |directory| {
        fs::write(directory.join("policy.toml"), "one").unwrap();
    });
    let modified = fs::metadata(watched.file()).unwrap().modified().unwrap();
    fs::write(watched.file(), "two").unwrap();
    let file = File::options().write(true).open(watched.file()).unwrap();
    file.set_modified(modified).unwrap();
    watched.expect_content("two");
    fs::remove_file(watched.file()).unwrap();
    watched.expect(Observation::Missing);
}

#[test]
fn a_change_between_reading_and_watching_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.toml");
    fs::write(&path, "new").unwrap();
    let (sender, reports) = channel();
    let report = move |observation| sender.send(observation).unwrap_or_default();
    let _handle = watch(&path, Observation::Content("old".into()), report).unwrap();
    assert_eq!(
        reports.recv_timeout(PROMISED),
        Ok(Observation::Content("new".into()))
    );
}

#[test]
fn what_is_no_text_is_unreadable() {
    let watched = Watched::with_file("one");
    fs::write(watched.file(), b"a\xff").unwrap();
    watched.expect(Observation::Unreadable(
        "it is not UTF-8 text from byte 1 on".into(),
    ));
    fs::write(watched.file(), vec![b'#'; MAX_FILE_BYTES as usize + 1]).unwrap();
    watched.expect(Observation::Unreadable(
        "it is larger than 1048576 bytes".into(),
    ));
    fs::write(watched.file(), vec![b'#'; MAX_FILE_BYTES as usize]).unwrap();
    watched.expect_content(&"#".repeat(MAX_FILE_BYTES as usize));
    fs::remove_file(watched.file()).unwrap();
    fs::create_dir(watched.file()).unwrap();
    watched.expect(Observation::Unreadable("it is not a regular file".into()));
    assert_eq!(
        observe("/dev/zero"),
        Observation::Unreadable("it is not a regular file".into())
    );
}

#[test]
fn a_file_that_never_rests_is_reported_nevertheless() {
    let watched = Watched::with_file("start");
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let (file, stop) = (watched.file(), Arc::clone(&stop));
        thread::spawn(move || {
            for turn in 0.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let next = file.with_extension("next");
                fs::write(&next, format!("round {turn}")).unwrap();
                fs::rename(next, &file).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let report = watched.reports.recv_timeout(PROMISED);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    assert!(matches!(report, Ok(Observation::Content(text)) if text.starts_with("round")));
}

#[test]
fn half_a_file_is_not_reported_while_its_writer_pauses() {
    use std::io::Write as _;
    let watched = Watched::with_file("start");
    watched.expect_events();
    let mut file = File::create(watched.file()).unwrap();
    file.write_all(b"half").unwrap();
    // Longer than any content must rest.
    thread::sleep(MAX_DEBOUNCE);
    file.write_all(b" and half").unwrap();
    drop(file);
    watched.expect_content("half and half");
}

#[test]
fn a_file_made_anew_is_not_reported_before_its_writer_is_done() {
    use std::io::Write as _;
    let watched = Watched::with_file("start");
    watched.expect_events();
    fs::remove_file(watched.file()).unwrap();
    let mut file = File::create(watched.file()).unwrap();
    thread::sleep(MAX_DEBOUNCE);
    file.write_all(b"whole").unwrap();
    drop(file);
    watched.expect_content("whole");
}

#[test]
fn a_writer_that_never_closes_is_not_waited_for() {
    use std::io::Write as _;
    let watched = Watched::with_file("start");
    let mut file = File::create(watched.file()).unwrap();
    file.write_all(b"kept open").unwrap();
    watched.expect_content("kept open");
    drop(file);
    watched.expect_nothing();
}

#[test]
fn a_log_written_into_the_file_does_not_starve_the_watch() {
    use std::io::Write as _;
    let watched = Watched::with_file("start");
    let mut file = File::create(watched.file()).unwrap();
    let mut reports = 0;
    let start = Instant::now();
    let mut latest = start;
    while reports < 3 {
        file.write_all(b"# line\n").unwrap();
        thread::sleep(Duration::from_millis(100));
        if let Ok(Observation::Content(text)) = watched.reports.try_recv() {
            assert_eq!(text.replace("# line\n", ""), "");
            reports += 1;
            latest = Instant::now();
        }
        assert!(latest.elapsed() < 2 * PROMISED, "{reports} reports");
    }
}

#[test]
fn only_writers_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("policy.toml");
    let signal = Arc::new(Signal::default());
    let mut sources = Sources::events(&signal);
    sources.follow(&path, &signal);
    let expect = |written: bool, what: &str| {
        let deadline = Instant::now() + PROMISED;
        while signal.writing().since.is_some() != written {
            assert!(Instant::now() < deadline, "after {what}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let beside = path.with_extension("beside");
    fs::write(&beside, "whole").unwrap();
    for turn in 0..3 {
        let open = File::create(&path).unwrap();
        expect(true, "an open, emptied file");
        match turn {
            0 => drop(open),
            1 => fs::remove_file(&path).unwrap(),
            _ => {
                fs::hard_link(&beside, path.with_extension("new")).unwrap();
                fs::rename(path.with_extension("new"), &path).unwrap();
            }
        }
        expect(false, "its end");
    }
    fs::remove_file(&path).unwrap();
    let begin = |make: &dyn Fn()| {
        make();
        // The events of the removal after it come behind those of the making.
        thread::sleep(Duration::from_millis(50));
        assert!(signal.writing().since.is_none());
        fs::remove_file(&path).unwrap();
    };
    begin(&|| fs::hard_link(&beside, &path).unwrap());
    begin(&|| symlink(&beside, &path).unwrap());
}

#[test]
fn a_busy_directory_and_our_own_reading_cause_no_looks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("policy.toml");
    fs::write(&path, "one").unwrap();
    let signal = Arc::new(Signal::default());
    let mut sources = Sources::events(&signal);
    sources.follow(&path, &signal);
    for turn in 0..50 {
        fs::write(path.with_extension("other"), format!("{turn}")).unwrap();
        observe(&path);
    }
    let start = Instant::now();
    let _ = signal.wait(start, start + Duration::from_millis(500));
    assert!(start.elapsed() >= Duration::from_millis(500));
    fs::write(&path, "two").unwrap();
    let start = Instant::now();
    let _ = signal.wait(start, start + PROMISED);
    assert!(start.elapsed() < PROMISED, "but a change of the file does");
}

#[test]
fn dropping_the_handle_ends_the_thread_promptly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.toml");
    let alive = Arc::new(());
    let kept = Arc::clone(&alive);
    let handle = watch(&path, Observation::Missing, move |_| {
        let _ = &kept;
    })
    .unwrap();
    let start = Instant::now();
    drop(handle);
    assert!(start.elapsed() < Duration::from_millis(500));
    assert_eq!(
        Arc::strong_count(&alive),
        1,
        "the thread and its callback are gone"
    );
}

#[test]
fn a_callback_may_drop_its_own_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.toml");
    let slot = Arc::new(std::sync::Mutex::new(None::<WatchHandle>));
    let of_callback = Arc::clone(&slot);
    let (sender, reports) = channel();
    let handle = watch(&path, Observation::Missing, move |_| {
        drop(of_callback.lock().unwrap().take());
        sender.send(()).unwrap_or_default();
    })
    .unwrap();
    *slot.lock().unwrap() = Some(handle);
    fs::write(&path, "one").unwrap();
    reports.recv_timeout(PROMISED).unwrap();
    // The callback's sender goes with the thread.
    assert_eq!(
        reports.recv_timeout(PROMISED),
        Err(RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_panic_of_the_callback_does_not_end_the_watch() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.toml");
    let (sender, reports) = channel();
    let _handle = watch(&path, Observation::Missing, move |observation| {
        sender.send(observation.clone()).unwrap_or_default();
        assert_ne!(
            observation,
            Observation::Content("bad".into()),
            "on purpose"
        );
    })
    .unwrap();
    for content in ["bad", "good"] {
        fs::write(&path, content).unwrap();
        assert_eq!(
            reports.recv_timeout(PROMISED),
            Ok(Observation::Content(content.into()))
        );
    }
}

#[test]
fn an_empty_path_is_an_error() {
    let error = watch("", Observation::Missing, |_| {}).unwrap_err();
    assert!(matches!(error, WatchError::Path(_)), "{error}");
}

/// A small generator (a linear congruence with Knuth's factor), so that a failing run
/// can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn after_200_random_edits_the_last_content_is_the_last_report() {
    for seed in [1, 2] {
        let watched = Watched::new(Sources::events, |_| {});
        let mut random = Random(seed);
        for edit in 0..200 {
            let content = format!("edit {edit}");
            random_edit(&watched, &mut random, edit, &content);
            thread::sleep(Duration::from_millis(random.below(25)));
        }
        let last = observe(watched.file());
        let deadline = Instant::now() + PROMISED;
        let mut latest = None;
        while latest.as_ref() != Some(&last) {
            let left = deadline.saturating_duration_since(Instant::now());
            match watched.reports.recv_timeout(left) {
                Ok(observation) => latest = Some(observation),
                Err(_) => panic!("seed {seed}: {latest:?} reported, {last:?} is there"),
            }
        }
        watched.expect_nothing();
    }
}

fn random_edit(watched: &Watched, random: &mut Random, edit: usize, content: &str) {
    use std::io::Write as _;
    let file = watched.file();
    match random.below(6) {
        0 => fs::write(&file, content).unwrap(),
        1 => {
            let next = watched.path("next");
            fs::write(&next, content).unwrap();
            fs::rename(next, &file).unwrap();
        }
        2 => {
            let (head, tail) = content.split_at(content.len() / 2);
            let mut out = File::create(&file).unwrap();
            out.write_all(head.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(random.below(10)));
            out.write_all(tail.as_bytes()).unwrap();
        }
        3 => drop(fs::remove_file(&file)),
        4 => {
            let target = watched.path(&format!("target{edit}"));
            fs::write(&target, content).unwrap();
            let link = watched.path("link");
            symlink(target, &link).unwrap();
            fs::rename(link, &file).unwrap();
        }
        _ => {
            let release = format!("release{edit}");
            let directory = watched.directory.path();
            config_map(directory, &release, content);
            let link = watched.path("link");
            symlink("..data/policy.toml", &link).unwrap();
            fs::rename(link, &file).unwrap();
        }
    }
}
