//! The servers that [`installed`] has unpacked, each set up in a folder of its own as its
//! documentation says.

use crate::jdk::{Jdk, compiler};
use crate::server::{Installation, installed, script};
use heapwarden_harness::ports;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server that is ready to be started.
#[derive(Debug)]
pub struct Prepared {
    /// The program, arguments and environment that start it.
    pub command: Command,
    /// Its own copy of what it configures and deploys.
    pub base: PathBuf,
}

/// Tomcat, by the name of its distribution; deploys from `webapps`.
///
/// # Panics
/// If the folder cannot be written.
#[must_use]
pub fn tomcat(site: &Installation, jdk: &Jdk, name: &str, interval: &str) -> Prepared {
    let base = site.folder().to_owned();
    let home = installed().join(name);
    copy_folder(&home.join("conf"), &base.join("conf"));
    for folder in ["lib", "logs", "temp", "work", "webapps"] {
        fs::create_dir(base.join(folder)).expect("writable");
    }
    fs::write(
        base.join("conf/server.xml"),
        format!(
            "<Server port=\"-1\"><Service name=\"Catalina\">\
             <Connector port=\"{}\" address=\"127.0.0.1\" protocol=\"HTTP/1.1\"/>\
             <Engine name=\"Catalina\" defaultHost=\"localhost\">\
             <Host name=\"localhost\" appBase=\"webapps\"/></Engine></Service></Server>",
            site.http_port()
        ),
    )
    .expect("writable");
    let mut command = script(&home.join("bin/catalina.sh"), jdk);
    command
        .arg("run")
        .env("CATALINA_HOME", &home)
        .env("CATALINA_BASE", &base)
        .env("CATALINA_OPTS", site.jvm_flags(interval).join(" "));
    Prepared { command, base }
}

/// Jetty; deploys from `webapps`.
///
/// # Panics
/// If it cannot be set up.
#[must_use]
pub fn jetty(site: &Installation, jdk: &Jdk, interval: &str) -> Prepared {
    jetty_for(site, jdk, interval, "ee10")
}

/// The same for applications of another version of the servlets: `ee8` for those of before Jakarta.
///
/// # Panics
/// If it cannot be set up.
#[must_use]
pub fn jetty_for(site: &Installation, jdk: &Jdk, interval: &str, servlets: &str) -> Prepared {
    // Looking for annotations in the many libraries of an older application takes minutes.
    let annotations = if servlets == "ee8" {
        String::new()
    } else {
        format!(",{servlets}-annotations")
    };
    let start = installed().join("jetty-home-12.0.25/start.jar");
    let base = site.folder().join("base");
    fs::create_dir(&base).expect("writable");
    let java = jdk.program("java");
    let set_up = Command::new(&java)
        .arg("-jar")
        .arg(&start)
        .arg(format!(
            "--add-modules=server,http,{servlets}-deploy{annotations}"
        ))
        .current_dir(&base)
        .output()
        .expect("java runs");
    assert!(set_up.status.success(), "{set_up:?}");
    let mut command = Command::new(java);
    command
        .args(site.jvm_flags(interval))
        .arg(format!("-Djetty.base={}", base.display()))
        .arg("-jar")
        .arg(&start)
        .arg("jetty.http.host=127.0.0.1")
        .arg(format!("jetty.http.port={}", site.http_port()));
    Prepared { command, base }
}

/// WildFly; deploys from `deployments`.
///
/// # Panics
/// If the folder cannot be written.
#[must_use]
pub fn wildfly(site: &Installation, jdk: &Jdk, interval: &str) -> Prepared {
    let home = installed().join("wildfly-37.0.0.Final");
    let base = site.folder().join("standalone");
    copy_folder(&home.join("standalone"), &base);
    // The command line that bin/standalone.sh runs; the script would leave the JVM a child of its own.
    let mut command = Command::new(jdk.program("java"));
    command
        .args(site.jvm_flags(interval))
        .args([
            "--add-exports=java.desktop/sun.awt=ALL-UNNAMED",
            "--add-exports=java.naming/com.sun.jndi.ldap=ALL-UNNAMED",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
            "--add-opens=java.base/java.security=ALL-UNNAMED",
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "-Djava.security.manager=allow",
            "-Djboss.modules.system.pkgs=org.jboss.byteman",
        ])
        .arg("-jar")
        .arg(home.join("jboss-modules.jar"))
        .arg("-mp")
        .arg(home.join("modules"))
        .arg("org.jboss.as.standalone")
        .arg(format!("-Djboss.home.dir={}", home.display()))
        .arg(format!("-Djboss.server.base.dir={}", base.display()))
        .arg(format!("-Djboss.http.port={}", site.http_port()))
        .arg(format!("-Djboss.https.port={}", ports::free()))
        .arg(format!("-Djboss.management.http.port={}", ports::free()));
    Prepared { command, base }
}

/// The server that a Spring Boot application brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Embedded {
    /// The server that `spring-boot-starter-web` brings along by default.
    Tomcat,
    /// Jetty 12.
    Jetty,
    /// Undertow 2.
    Undertow,
}

impl Embedded {
    /// The executable jar of the application with it.
    fn jar(self) -> PathBuf {
        installed().join(match self {
            Embedded::Tomcat => "boot/shop-boot.jar",
            Embedded::Jetty => "boot-jetty/shop-boot-jetty.jar",
            Embedded::Undertow => "boot-undertow/shop-boot-undertow.jar",
        })
    }
}

/// The Spring Boot application, which deploys nothing.
#[must_use]
pub fn spring_boot(site: &Installation, jdk: &Jdk, interval: &str) -> Prepared {
    spring_boot_in(site, jdk, interval, Embedded::Tomcat)
}

/// The same with this server.
#[must_use]
pub fn spring_boot_in(
    site: &Installation,
    jdk: &Jdk,
    interval: &str,
    server: Embedded,
) -> Prepared {
    let mut command = Command::new(jdk.program("java"));
    command
        .args(site.jvm_flags(interval))
        .arg("-jar")
        .arg(server.jar())
        .arg("--server.address=127.0.0.1")
        .arg(format!("--server.port={}", site.http_port()));
    Prepared {
        command,
        base: site.folder().to_owned(),
    }
}

/// The Spring Boot application, unpacked, with its main class started from the class path.
///
/// # Panics
/// If it cannot be unpacked.
#[must_use]
pub fn spring_boot_from_a_class_path(
    site: &Installation,
    jdk: &Jdk,
    interval: &str,
    server: Embedded,
) -> Prepared {
    let base = site.folder().to_owned();
    let unpacked = Command::new(compiler().program("jar"))
        .arg("--extract")
        .arg("--file")
        .arg(server.jar())
        .current_dir(&base)
        .status();
    assert!(unpacked.is_ok_and(|status| status.success()), "jar unpacks");
    let mut command = Command::new(jdk.program("java"));
    command
        .args(site.jvm_flags(interval))
        .args([
            "-cp",
            "BOOT-INF/classes:BOOT-INF/lib/*",
            "shop.ShopApplication",
        ])
        .arg("--server.address=127.0.0.1")
        .arg(format!("--server.port={}", site.http_port()));
    Prepared { command, base }
}

/// Copies what Maven built, by its path there, into a folder.
///
/// # Panics
/// If it is not there.
pub fn deploy(built: &str, into: &Path) {
    let from = installed().join(built);
    let name = from.file_name().expect("a file has a name");
    fs::copy(&from, into.join(name))
        .unwrap_or_else(|error| panic!("{} by Maven: {error}", from.display()));
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("unpacked by Maven") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("writable");
        }
    }
}
