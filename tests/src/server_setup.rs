//! The servers that [`installed`] has unpacked, each set up in a folder of its own as its
//! documentation says.

use crate::jdk::{Jdk, compiler};
use crate::server::{Installation, installed, installed_large, script};
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

/// Jetty of before 12, from the folder of its distribution; deploys from `webapps`, anew within a second.
///
/// # Panics
/// If it cannot be set up.
#[must_use]
pub fn older_jetty(site: &Installation, jdk: &Jdk, home: &Path, interval: &str) -> Prepared {
    let start = home.join("start.jar");
    let base = site.folder().join("base");
    fs::create_dir(&base).expect("writable");
    let java = jdk.program("java");
    let set_up = Command::new(&java)
        .arg("-jar")
        .arg(&start)
        .arg("--add-to-start=server,http,deploy,annotations,jsp")
        .current_dir(&base)
        .output()
        .expect("java runs");
    assert!(set_up.status.success(), "{set_up:?}");
    let mut command = Command::new(java);
    command
        .args(site.jvm_flags(interval))
        .arg(format!("-Djetty.base={}", base.display()))
        .arg(format!("-Djava.io.tmpdir={}", site.folder().display()))
        .arg("-jar")
        .arg(&start)
        .arg("jetty.http.host=127.0.0.1")
        .arg(format!("jetty.http.port={}", site.http_port()))
        .arg("jetty.deploy.scanInterval=1");
    Prepared { command, base }
}

/// Open Liberty with these features; deploys from `dropins`, anew within half a second.
///
/// # Panics
/// If the folder cannot be written.
#[must_use]
pub fn liberty(site: &Installation, jdk: &Jdk, features: &[&str], interval: &str) -> Prepared {
    let base = site.folder().join("usr/servers/hw");
    fs::create_dir_all(base.join("dropins")).expect("writable");
    let features: String = (features.iter())
        .map(|feature| format!("<feature>{feature}</feature>"))
        .collect();
    fs::write(
        base.join("server.xml"),
        format!(
            "<server><featureManager>{features}</featureManager>\
             <httpEndpoint id=\"defaultHttpEndpoint\" host=\"127.0.0.1\" httpPort=\"{}\" httpsPort=\"-1\"/>\
             <applicationMonitor pollingRate=\"500ms\"/></server>",
            site.http_port()
        ),
    )
    .expect("writable");
    let mut command = Command::new(jdk.program("java"));
    command
        .env("WLP_USER_DIR", site.folder().join("usr"))
        .args(site.jvm_flags(interval))
        .arg("-jar")
        .arg(installed_large().join("wlp/bin/tools/ws-server.jar"))
        .arg("hw");
    Prepared { command, base }
}

/// GlassFish; deploys from `autodeploy`, anew within some seconds.
///
/// # Panics
/// If the folder cannot be written.
#[must_use]
pub fn glassfish(site: &Installation, jdk: &Jdk, interval: &str) -> Prepared {
    let root = installed_large().join("glassfish7/glassfish");
    let base = site.folder().join("domain1");
    copy_folder(&root.join("domains/domain1"), &base);
    fs::create_dir_all(base.join("autodeploy")).expect("writable");
    let configured = base.join("config/domain.xml");
    let mut text = fs::read_to_string(&configured).expect("it has a configuration");
    text = text.replace("\"8080\"", &format!("\"{}\"", site.http_port()));
    for port in ["8181", "4848", "8686", "3700", "3820", "3920", "7676"] {
        let free = ports::free().to_string();
        text = text
            .replace(&format!("\"{port}\""), &format!("\"{free}\""))
            .replace(&format!(">{port}<"), &format!(">{free}<"));
    }
    fs::write(&configured, text).expect("writable");
    let config = |file: &str| base.join("config").join(file).display().to_string();
    let mut command = Command::new(jdk.program("java"));
    command
        .arg("-cp")
        .arg(root.join("modules/glassfish.jar"))
        .args(site.jvm_flags(interval));
    for opened in [
        "java.base/java.io",
        "java.base/java.lang",
        "java.base/java.util",
        "java.base/jdk.internal.vm.annotation",
        "java.base/sun.net.www.protocol.jrt",
        "java.base/sun.nio.fs",
        "java.naming/javax.naming.spi",
        "java.rmi/sun.rmi.transport",
        "jdk.management/com.sun.management.internal",
    ] {
        command.arg(format!("--add-opens={opened}=ALL-UNNAMED"));
    }
    command
        .args([
            "--add-exports=java.naming/com.sun.jndi.ldap=ALL-UNNAMED",
            "--add-exports=java.base/jdk.internal.vm.annotation=ALL-UNNAMED",
            "-Djava.awt.headless=true",
            "-DANTLR_USE_DIRECT_CLASS_LOADING=true",
            "-Dcom.sun.enterprise.config.config_environment_factory_class=com.sun.enterprise.config.serverbeans.AppserverConfigEnvironmentFactory",
        ])
        .arg(format!("-Djavax.net.ssl.keyStore={}", config("keystore.jks")))
        .arg(format!("-Djavax.net.ssl.trustStore={}", config("cacerts.jks")))
        .arg(format!("-Djava.security.policy={}", config("server.policy")))
        .arg(format!("-Djava.security.auth.login.config={}", config("login.conf")))
        .arg(format!("-Dcom.sun.aas.instanceRoot={}", base.display()))
        .arg(format!("-Dcom.sun.aas.installRoot={}", root.display()))
        .arg("com.sun.enterprise.glassfish.bootstrap.GlassFishMain")
        .arg("-domaindir")
        .arg(&base)
        .args([
            "-domainname",
            "domain1",
            "-instancename",
            "server",
            "-type",
            "DAS",
            "-verbose",
            "false",
        ]);
    Prepared { command, base }
}

/// Payara Micro with the archives of these names in its folder, all of which have to be there when it starts.
#[must_use]
pub fn payara_micro(site: &Installation, jdk: &Jdk, archives: &[&str], interval: &str) -> Prepared {
    let base = site.folder().to_owned();
    let mut command = Command::new(jdk.program("java"));
    command
        .args(site.jvm_flags(interval))
        .arg(format!("-Djava.io.tmpdir={}", base.display()))
        .arg("-jar")
        .arg(installed_large().join("payara-micro.jar"))
        .arg("--nocluster")
        .arg("--port")
        .arg(site.http_port().to_string());
    for archive in archives {
        command.arg("--deploy").arg(base.join(archive));
    }
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
