//! The servers and hosts whose services have accounts: each is declared once, in a file of its own.
//!
//! A declaration says which class loaders are the server's, how it names the service of one, how it shows that it
//! has stopped a service, where its doors are, and what its main class is called. `naming` and `door` read the
//! table and name no server. Another server is another file, a row of [`SERVERS`] and of `Server` in policy-core. Those
//! that have doors and nothing else are in [`libraries`].
//!
//! Everything here runs on the loader thread, never on an allocating one. It reads fields, and calls plain
//! getters of the containers' own classes: a class whose loader is a service, or not known yet, is an
//! application's, whatever its name, and its code is never called.

mod container;
mod declaration;
mod equinox;
mod felix;
mod glassfish;
mod jenkins;
mod jetty;
mod kafka_connect;
mod layers;
mod liberty;
mod libraries;
mod osgi;
mod pf4j;
mod spring_boot;
mod tomcat;
mod wildfly;

use crate::identity::names::Server;

pub(crate) use container::{Container, Lineage};
pub(crate) use declaration::{Declaration, Found, Point};

/// All of them. A loader or class is that of the first whose rule fits.
pub(crate) static SERVERS: [&Declaration; 12] = [
    &glassfish::GLASSFISH,
    &liberty::LIBERTY,
    &tomcat::TOMCAT,
    &jetty::JETTY,
    &wildfly::WILDFLY,
    &spring_boot::SPRING_BOOT,
    &pf4j::PF4J,
    &kafka_connect::KAFKA_CONNECT,
    &layers::MODULE_LAYERS,
    &felix::FELIX,
    &equinox::EQUINOX,
    &jenkins::JENKINS,
];

/// The declaration of this server; `None` for a service that is known by the JDK name of its loader alone.
pub(crate) fn declaration(server: Server) -> Option<&'static Declaration> {
    SERVERS.iter().copied().find(|known| known.server == server)
}

/// All doors, with their servers.
pub(crate) fn points() -> impl Iterator<Item = (Server, &'static Point)> {
    let deployed = SERVERS
        .iter()
        .flat_map(|known| known.points.iter().map(|point| (known.server, point)));
    let libraries = (libraries::LIBRARIES.iter()).map(|known| (known.server, &known.point));
    deployed.chain(libraries)
}

#[cfg(test)]
mod tests {
    use policy_rewrite::Leave;

    use super::*;

    #[test]
    fn each_server_is_declared_once_and_doors_are_fitted_to_different_methods() {
        for (at, known) in SERVERS.iter().enumerate() {
            assert!(
                std::ptr::eq(declaration(known.server).unwrap(), *known),
                "{at}"
            );
            let has_points = !known.points.is_empty();
            assert!(!has_points || known.server.has_requests(), "{at}");
        }
        let methods: Vec<_> = points()
            .flat_map(|(_, point)| {
                (point.descriptors.iter()).map(|one| (point.class, point.method, *one))
            })
            .collect();
        let mut different = methods.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(methods.len(), different.len());
    }

    #[test]
    fn a_door_gets_references_of_its_method_and_leaves_it_as_it_returns() {
        for (_, point) in points() {
            for descriptor in point.descriptors {
                let (parameters, result) = descriptor[1..].split_once(')').unwrap();
                let parameters: Vec<&str> = parameters.split_terminator(';').collect();
                assert!(parameters.iter().all(|one| one.starts_with('L')));
                let mut loads = point.loads.to_vec();
                loads.sort_unstable();
                loads.dedup();
                assert_eq!(loads.len(), point.loads.len(), "{descriptor}");
                let last = loads.last().copied().unwrap();
                assert!(usize::from(last) <= parameters.len(), "{descriptor}");
                let returned = match point.leave {
                    Leave::Returning => "V",
                    Leave::ReturningBoolean(_) => "Z",
                    Leave::ReturningInt(_) => "I",
                };
                assert_eq!(result, returned, "{descriptor}");
            }
        }
    }
}
