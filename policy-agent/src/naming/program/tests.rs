//! How programs are named, for each way to start one.

use std::collections::HashMap;

use super::*;

/// Jars and directories, with the texts of their entries.
#[derive(Default)]
struct Disk(HashMap<(&'static str, &'static str), &'static str>);

impl Disk {
    fn with(entries: &[(&'static str, &'static str, &'static str)]) -> Disk {
        let entries = entries.iter();
        Disk(
            entries
                .map(|&(element, entry, text)| ((element, entry), text))
                .collect(),
        )
    }
}

impl Elements for Disk {
    fn has(&self, element: &str, entry: &str) -> bool {
        self.text(element, entry).is_some()
    }

    fn text(&self, element: &str, entry: &str) -> Option<String> {
        let mut entries = self.0.iter();
        entries.find_map(|(&at, &text)| (at == (element, entry)).then(|| text.to_owned()))
    }

    fn jars(&self, folder: &Path) -> Vec<String> {
        let elements = self.0.keys().map(|(element, _)| *element);
        let mut jars: Vec<String> = elements
            .filter(|element| Path::new(element).parent() == Some(folder) && is_archive(element))
            .map(str::to_owned)
            .collect();
        jars.sort();
        jars.dedup();
        jars
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// The name of the program that was started so; `None` if it is nobody's.
fn named(command: &str, class_path: &str, disk: &Disk) -> Option<ServiceName> {
    let launch = Launch {
        command: command.to_owned(),
        class_path: class_path.to_owned(),
        ..Launch::default()
    };
    let program = Program::of(&launch, disk);
    program.pays().then(|| program.name())
}

fn name(command: &str, class_path: &str, disk: &Disk) -> Option<String> {
    named(command, class_path, disk).map(|service| service.name)
}

#[test]
fn an_executable_jar_has_its_name_without_the_version() {
    let main = "Manifest-Version: 1.0\r\nMain-Class: com.acme.shop.Ma\r\n in\r\n\r\n";
    let jar = "/opt/my apps/shop-1.2-SNAPSHOT.jar";
    let disk = Disk::with(&[(jar, "META-INF/MANIFEST.MF", main)]);
    let found = named(&format!("{jar} --port 80"), jar, &disk).unwrap();
    assert_eq!(found.name, "shop");
    let aliases = ["shop", "shop-1.2-SNAPSHOT", "com.acme.shop.Main"];
    assert_eq!(found.aliases, aliases);
    assert_eq!((found.server, found.one_loader), (Server::Program, false));
    assert_eq!(name(jar, jar, &Disk::default()).as_deref(), Some("shop"));
}

#[test]
fn a_class_path_program_has_the_name_of_the_jar_with_the_main_class() {
    let kafka = "/k/libs/kafka_2.13-3.9.0.jar";
    let disk = Disk::with(&[
        (kafka, "kafka/Kafka.class", ""),
        ("out", "com/acme/Main.class", ""),
    ]);
    let path = format!("/k/libs/argparse4j-0.7.0.jar:{kafka}:out");
    let found = named("kafka.Kafka config/server.properties", &path, &disk).unwrap();
    assert_eq!(found.name, "kafka_2.13");
    assert_eq!(
        found.aliases,
        ["kafka_2.13", "kafka_2.13-3.9.0", "kafka.Kafka"]
    );
    // Classes in a directory, and a main class that no element has.
    assert_eq!(
        name("com.acme.Main x", &path, &disk).as_deref(),
        Some("com.acme.Main")
    );
    assert_eq!(
        name("com.acme.Other", &path, &disk).as_deref(),
        Some("com.acme.Other")
    );
}

#[test]
fn a_module_has_its_own_name() {
    let disk = Disk::default();
    let found = named("com.acme.shop/com.acme.shop.Main a/b", "", &disk).unwrap();
    assert_eq!(found.aliases, ["com.acme.shop", "com.acme.shop.Main"]);
    assert_eq!(
        name("com.acme.shop", "", &disk).as_deref(),
        Some("com.acme.shop")
    );
}

#[test]
fn containers_tools_and_embedded_jvms_are_no_program() {
    let start = "/jetty/start.jar";
    let disk = Disk::with(&[(
        start,
        "META-INF/MANIFEST.MF",
        "Main-Class: org.eclipse.jetty.start.Main\n",
    )]);
    let tomcat = "/t/bin/bootstrap.jar:/t/bin/tomcat-juli.jar";
    for (command, path) in [
        ("org.apache.catalina.startup.Bootstrap start", tomcat),
        ("/jetty/start.jar jetty.http.port=0", start),
        ("org.eclipse.jetty.xml.XmlConfiguration", ""),
        ("org.jboss.modules.Main -mp modules", "/w/jboss-modules.jar"),
        ("org.springframework.boot.loader.launch.JarLauncher", "."),
        ("jdk.compiler/com.sun.tools.javac.Main", ""),
        ("jdk.jcmd/sun.tools.jcmd.JCmd 1", ""),
        ("sun.tools.jcmd.JCmd", ""),
        ("", "/opt/launcher/lib.jar"),
    ] {
        assert_eq!(name(command, path, &disk), None, "{command}");
    }
}

#[test]
fn spring_boot_from_a_class_path_has_the_application_s_name() {
    let disk = Disk::with(&[
        ("target/classes", "com/acme/Shop.class", ""),
        (
            "target/classes",
            "application.properties",
            "spring.application.name=corner\n",
        ),
        (
            "lib/other-1.jar",
            "application.properties",
            "spring.application.name=not-this\n",
        ),
    ]);
    let path = "lib/other-1.jar:target/classes:lib/spring-boot-3.5.0.jar";
    let found = named("com.acme.Shop", path, &disk).unwrap();
    assert_eq!(found.aliases, ["corner", "com.acme.Shop"]);
    assert_eq!(found.server, Server::SpringBoot);
    let argument = "com.acme.Shop --spring.application.name=given --x=1";
    assert_eq!(name(argument, path, &disk).as_deref(), Some("given"));
    // Without Spring Boot on the class path the file means nothing.
    let path = "target/classes:lib/spring-boot-autoconfigure-3.5.0.jar";
    let found = named("com.acme.Shop", path, &disk).unwrap();
    assert_eq!(
        (found.name.as_str(), found.server),
        ("com.acme.Shop", Server::Program)
    );
}

#[test]
fn an_executable_jar_of_spring_boot_has_no_version_in_its_name() {
    let jar = "/opt/shop-2.0.1.jar";
    let launcher = "Main-Class: org.springframework.boot.loader.launch.JarLauncher\n";
    let launch = Launch {
        command: jar.to_owned(),
        class_path: jar.to_owned(),
        ..Launch::default()
    };
    let mut entries = vec![(jar, "META-INF/MANIFEST.MF", launcher)];
    let program = Program::of(&launch, &Disk::with(&entries));
    assert!(!program.pays(), "its service is the launcher's loader");
    assert_eq!(program.name().aliases, ["shop", "shop-2.0.1"]);
    entries.push((
        jar,
        "BOOT-INF/classes/application.yml",
        "spring:\n  application:\n    name: corner\n",
    ));
    let program = Program::of(&launch, &Disk::with(&entries));
    assert_eq!(program.name().aliases, ["corner", "shop", "shop-2.0.1"]);
    assert_eq!(program.name().server, Server::SpringBoot);
}

#[test]
fn an_unpacked_jar_of_spring_boot_has_the_application_s_name() {
    let launcher = "org.springframework.boot.loader.launch.JarLauncher";
    let class = "org/springframework/boot/loader/launch/JarLauncher.class";
    let mut entries = vec![
        (".", class, ""),
        (
            ".",
            "META-INF/MANIFEST.MF",
            "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: com.acme.Shop\n",
        ),
    ];
    let launch = Launch {
        command: launcher.to_owned(),
        class_path: ".".to_owned(),
        ..Launch::default()
    };
    let program = Program::of(&launch, &Disk::with(&entries));
    assert!(!program.pays(), "its service is the launcher's loader");
    assert_eq!(program.name().aliases, ["com.acme.Shop"]);
    entries.push((
        ".",
        "BOOT-INF/classes/application.properties",
        "spring.application.name=corner\n",
    ));
    let program = Program::of(&launch, &Disk::with(&entries));
    assert_eq!(program.name().aliases, ["corner", "com.acme.Shop"]);
    assert_eq!(program.name().server, Server::SpringBoot);

    // Its libraries beside it, as `java -Djarmode=tools -jar shop.jar extract` leaves them.
    let jar = "shop-2.0.1/shop-2.0.1.jar";
    let manifest = "Main-Class: com.acme.Shop\nClass-Path: lib/a-1.jar lib/spring-boot-3.5.0.jar\n";
    let properties = "spring.application.name=corner\n";
    let disk = Disk::with(&[
        (jar, "META-INF/MANIFEST.MF", manifest),
        (jar, "application.properties", properties),
    ]);
    let found = named(jar, jar, &disk).unwrap();
    assert_eq!(found.aliases[0], "corner");
    assert_eq!(found.server, Server::SpringBoot);
}

#[test]
fn versions_are_cut_off() {
    for (stem, name) in [
        ("kafka_2.13-3.9.0", "kafka_2.13"),
        ("artemis-boot", "artemis-boot"),
        ("shop-1.2-SNAPSHOT", "shop"),
        ("shop-1.0-rc-2", "shop"),
        ("shop-1.0.0-runner", "shop"),
        ("shop-1.0-20240101.123456-1", "shop"),
        ("log4j-1.2-api-2.20.0", "log4j-1.2-api"),
        ("h2-2.2.224", "h2"),
        ("app-v2", "app-v2"),
        ("-1.0", "-1.0"),
        ("7zip", "7zip"),
    ] {
        assert_eq!(without_version(stem), name);
    }
}

#[test]
fn a_quarkus_application_has_its_own_name() {
    let main = "Main-Class: io.quarkus.bootstrap.runner.QuarkusEntryPoint\n";
    let run = "/opt/shop/quarkus-run.jar";
    let app = "/opt/shop/app/shop-service-1.2.0.jar";
    let plain = [
        (run, "META-INF/MANIFEST.MF", main),
        (app, "META-INF/MANIFEST.MF", ""),
    ];
    let found = named(run, run, &Disk::with(&plain)).unwrap();
    let aliases = [
        "shop-service",
        "shop-service-1.2.0",
        "quarkus-run",
        "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
    ];
    assert_eq!(found.aliases, aliases);

    let mut configured = plain.to_vec();
    configured.push((
        app,
        "application.properties",
        "quarkus.application.name=Shop\n",
    ));
    let disk = Disk::with(&configured);
    let found = named(run, run, &disk).unwrap();
    assert_eq!(found.aliases[..2], ["Shop", "shop-service"]);

    let launch = Launch {
        command: run.to_owned(),
        class_path: run.to_owned(),
        quarkus_name: Some("till".to_owned()),
        ..Launch::default()
    };
    assert_eq!(Program::of(&launch, &disk).name().name, "till");

    // Keycloak: the main class is in a jar that the class path's manifest names.
    let run = "/opt/keycloak/lib/quarkus-run.jar";
    let jar = "/opt/keycloak/lib/app/keycloak.jar";
    let disk = Disk::with(&[(jar, "META-INF/MANIFEST.MF", "")]);
    let command = "io.quarkus.bootstrap.runner.QuarkusEntryPoint start";
    assert_eq!(name(command, run, &disk).unwrap(), "keycloak");
    // Two jars, and a folder that is not there.
    let disk = Disk::with(&[(jar, "x", ""), ("/opt/keycloak/lib/app/b.jar", "x", "")]);
    assert_eq!(
        name(command, run, &disk).unwrap(),
        "io.quarkus.bootstrap.runner.QuarkusEntryPoint"
    );
    assert!(name(command, "other.jar", &disk).is_some());
}
