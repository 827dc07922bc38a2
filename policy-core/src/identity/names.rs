//! Names of services, threads, classes and packages, made fit for logs, labels and rules.

use std::sync::atomic::{AtomicU32, Ordering};

/// The server or host that a service runs in. It decides whether the service has a door, where the server hands a
/// request to the application and the agent can turn it away, and how a stop of the service shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// Tomcat.
    Tomcat,
    /// Jetty.
    Jetty,
    /// Undertow, as in WildFly and EAP.
    Undertow,
    /// GlassFish and Payara.
    GlassFish,
    /// Open Liberty.
    Liberty,
    /// An executable jar of Spring Boot, with one of the others embedded; which one shows later.
    SpringBoot,
    /// PF4J.
    Pf4j,
    /// A worker of Kafka Connect.
    KafkaConnect,
    /// A program that loads its plugins as module layers.
    ModuleLayers,
    /// Apache Felix, alone or in Karaf.
    Felix,
    /// Equinox.
    Equinox,
    /// Jenkins.
    Jenkins,
    /// A program, with whatever server it has among its libraries.
    Program,
    /// Vert.x Web, as a library: also in Quarkus.
    Vertx,
    /// Reactor Netty, as a library: also below Spring WebFlux.
    ReactorNetty,
    /// gRPC, as a library.
    Grpc,
    /// Micronaut's own server, as a library.
    Micronaut,
    /// Helidon 4, as a library.
    Helidon,
    /// Handlers of whole HTTP requests in Netty, as a library.
    Netty,
    /// Any other, or none.
    Other,
}

impl Server {
    /// Whether services of this server are asked for over HTTP, so that there may be a door for them.
    pub fn has_requests(self) -> bool {
        matches!(
            self,
            Server::Tomcat
                | Server::Jetty
                | Server::Undertow
                | Server::GlassFish
                | Server::Liberty
                | Server::SpringBoot
                | Server::Program
        )
    }

    /// Whether it is a library, and deploys nothing.
    pub fn is_library(self) -> bool {
        Server::LIBRARIES.contains(&self)
    }

    /// Its number, less than 32.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Those that a Spring Boot application is deployed to, inside.
    const EMBEDDED: [Server; 3] = [Server::Tomcat, Server::Jetty, Server::Undertow];

    /// Those that are libraries of whoever serves requests with them, and have no deployments.
    const LIBRARIES: [Server; 6] = [
        Server::Vertx,
        Server::ReactorNetty,
        Server::Grpc,
        Server::Micronaut,
        Server::Helidon,
        Server::Netty,
    ];
}

/// The libraries at whose doors a request has come. A library may be there as a client alone, or for another protocol:
/// its door counts from its first request on. Lock-free; any thread.
#[derive(Debug, Default)]
pub struct Serving(AtomicU32);

impl Serving {
    /// A request has come at the door of the server with this number ([`Server::number`]).
    pub fn began(&self, number: u32) {
        self.0
            .fetch_or(1_u32.checked_shl(number).unwrap_or(0), Ordering::Relaxed);
    }

    /// A door of the server with this number is gone, and with it those of its other copies: which of them serves is not
    /// known.
    pub fn ended(&self, number: u32) {
        self.0
            .fetch_and(!1_u32.checked_shl(number).unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether one has, at the door of this server.
    pub fn has(&self, server: Server) -> bool {
        self.0.load(Ordering::Relaxed) & Doors::bit(server) != 0
    }
}

/// The servers that have a fitted door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doors(u32);

impl Doors {
    /// Records whether a copy of this server in the JVM has a door.
    pub fn set(&mut self, server: Server, has_door: bool) {
        match has_door {
            true => self.0 |= Doors::bit(server),
            false => self.0 &= !Doors::bit(server),
        }
    }

    /// Whether requests for the services in this server pass a door.
    pub fn has(self, server: Server) -> bool {
        let is_of_library = || self.has_any(&Server::LIBRARIES);
        match server {
            Server::SpringBoot => self.has_where_deployed(server) || is_of_library(),
            Server::Program => is_of_library(),
            server => self.has_where_deployed(server),
        }
    }

    /// The same without those of libraries.
    pub fn has_where_deployed(self, server: Server) -> bool {
        match server {
            Server::SpringBoot => self.has_any(&Server::EMBEDDED),
            Server::Program => false,
            server => self.0 & Doors::bit(server) != 0,
        }
    }

    fn has_any(self, servers: &[Server]) -> bool {
        servers
            .iter()
            .any(|&server| self.0 & Doors::bit(server) != 0)
    }

    fn bit(server: Server) -> u32 {
        1 << server.number()
    }
}

/// The names of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceName {
    /// The name of its account, unless the policy gives one.
    pub name: String,
    /// Every name that a policy may match it by, the first included.
    pub aliases: Vec<String>,
    /// The server has one loader per deployment, so a newer loader of the same name retires the older
    /// one. False for loaders that are known by their JDK name alone.
    pub one_loader: bool,
    /// The server that it runs in.
    pub server: Server,
}

/// The longest name kept, in bytes. Longer names are cut, because they come from tenants.
const MAX_NAME_BYTES: usize = 200;

/// A service with these names, each made fit for a label. The first becomes its name. Its server is
/// [`Server::Other`].
pub fn service(names: Vec<String>, one_loader: bool) -> ServiceName {
    let mut aliases: Vec<String> = Vec::new();
    for name in names {
        let name = clean(&name);
        if !aliases.contains(&name) {
            aliases.push(name);
        }
    }
    ServiceName {
        name: aliases.first().cloned().unwrap_or_default(),
        aliases,
        one_loader,
        server: Server::Other,
    }
}

/// A tenant's name as it may appear in logs and labels: no control characters, not the
/// reserved prefix, bounded.
fn clean(name: &str) -> String {
    let reserved = name.is_empty() || name.starts_with('_');
    bounded(if reserved { "?" } else { "" }.to_owned(), name)
}

/// The name of a thread, a class or a method, made fit for a log: one line, at most 200 bytes.
pub fn printable(name: &str) -> String {
    bounded(String::new(), name)
}

fn bounded(mut out: String, name: &str) -> String {
    for c in name.chars() {
        if out.len() + c.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        out.push(if c.is_control() { '?' } else { c });
    }
    out
}

/// The source form of a class signature: `Ljava/lang/String;` is `java.lang.String`, `[[B`
/// is `byte[][]`.
pub fn java_name(signature: &str) -> String {
    let dimensions = signature.bytes().take_while(|&b| b == b'[').count();
    let element = &signature[dimensions..];
    let mut name = match element.as_bytes() {
        [b'L', .., b';'] => element[1..element.len() - 1].replace('/', "."),
        b"Z" => "boolean".to_owned(),
        b"B" => "byte".to_owned(),
        b"C" => "char".to_owned(),
        b"S" => "short".to_owned(),
        b"I" => "int".to_owned(),
        b"J" => "long".to_owned(),
        b"F" => "float".to_owned(),
        b"D" => "double".to_owned(),
        _ => element.to_owned(),
    };
    for _ in 0..dimensions {
        name.push_str("[]");
    }
    name
}

/// The package of a class signature, with slashes (`java/lang`); empty for the unnamed
/// package, `None` for primitives. Arrays count as their element.
pub fn package(signature: &str) -> Option<&str> {
    let class = signature
        .trim_start_matches('[')
        .strip_prefix('L')?
        .strip_suffix(';')?;
    // A hidden class has a '.' or '/' suffix after its name: `La/B$$Lambda.0x00`, and in
    // JDK 17 `La/B$$Lambda$1/0x00`, whose last slash belongs to the suffix.
    let class = match class.rsplit_once("/0x") {
        Some((host, _)) => host,
        None => class,
    };
    Some(class.rsplit_once('/').map_or("", |(package, _)| package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spring_boot_has_the_door_of_the_server_in_it() {
        let none = Doors::default();
        let servers = || Server::EMBEDDED.into_iter().chain(Server::LIBRARIES);
        for own in servers() {
            let mut doors = none;
            doors.set(own, true);
            assert!(doors.has(own) && doors.has(Server::SpringBoot));
            assert_eq!(servers().filter(|&s| doors.has(s)).count(), 1);
            // A program deploys nothing to a servlet container that it embeds, as far as is known.
            let is_library = Server::LIBRARIES.contains(&own);
            assert_eq!(doors.has(Server::Program), is_library);
            assert_eq!(doors.has_where_deployed(Server::SpringBoot), !is_library);
            assert_eq!(own.is_library(), is_library);
            assert!(!doors.has(Server::Other));
            doors.set(own, false);
            assert_eq!(doors, none);
        }
        assert!(!none.has(Server::SpringBoot) && !none.has(Server::Program));
    }

    #[test]
    fn a_library_serves_from_its_first_request_on() {
        let serving = Serving::default();
        serving.began(Server::Grpc.number());
        serving.began(32);
        let serves: Vec<Server> = (Server::LIBRARIES.into_iter())
            .filter(|&server| serving.has(server))
            .collect();
        assert_eq!(serves, [Server::Grpc]);
        serving.ended(Server::Vertx.number());
        assert!(serving.has(Server::Grpc));
        serving.ended(Server::Grpc.number());
        assert!(!serving.has(Server::Grpc));
    }

    #[test]
    fn signatures_read_as_source() {
        assert_eq!(java_name("Ljava/lang/String;"), "java.lang.String");
        assert_eq!(java_name("[[B"), "byte[][]");
        assert_eq!(java_name("[Lcom/acme/A$B;"), "com.acme.A$B[]");
        assert_eq!(java_name("J"), "long");
    }

    #[test]
    fn packages_of_classes_arrays_and_hidden_classes() {
        assert_eq!(package("Lcom/acme/A;"), Some("com/acme"));
        assert_eq!(package("[[Lcom/acme/A;"), Some("com/acme"));
        assert_eq!(package("LA;"), Some(""));
        assert_eq!(package("[I"), None);
        assert_eq!(
            package("Lcom/acme/A$$Lambda$14/0x0000000800c03000;"),
            Some("com/acme")
        );
        assert_eq!(package("Lcom/acme/A$$Lambda.0x00007f;"), Some("com/acme"));
    }

    #[test]
    fn a_thread_cannot_forge_a_line_of_the_log() {
        let name = "x\n[heapwarden 1.000s]  WARN account /neighbour is over its limit\r\u{85}";
        let shown = printable(name);
        assert!(shown.starts_with("x?[heapwarden"), "{shown}");
        assert!(!shown.chars().any(char::is_control), "{shown}");
        assert!(printable(&"x".repeat(5000)).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn hostile_names_are_cleaned_and_bounded() {
        let long = "x".repeat(5000);
        let name = service(
            vec![format!("evil\n\"{long}"), "_unaccounted".into()],
            false,
        );
        assert!(name.aliases.iter().all(|a| a.len() <= MAX_NAME_BYTES));
        assert!(name.name.starts_with("evil?\""));
        assert_eq!(name.aliases[1], "?_unaccounted");
    }
}
