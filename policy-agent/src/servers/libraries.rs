//! Servers that are libraries of whoever serves requests with them: a program, or a Spring Boot application. They
//! deploy nothing, so no loader is theirs; a request is for the owner of the loader that has the server's classes.
//!
//! All but Helidon call on an event loop, and a request goes on there and on other threads afterwards: see `Door` in
//! the Java half.

use policy_rewrite::Leave;

use crate::identity::names::Server;
use crate::jvm::errors::class_file;

use super::declaration::Point;

/// The declaration of a server that is a library.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) server: Server,
    /// Where it hands requests over, in every release that is known.
    pub(crate) point: Point,
}

/// All of them.
pub(crate) static LIBRARIES: [Library; 6] = [
    // Of Vert.x Web 4 and 5, and so of Quarkus.
    Library {
        server: Server::Vertx,
        point: Point {
            name: "Vert.x Web",
            class: "Lio/vertx/ext/web/impl/RouterImpl;",
            method: "handle",
            descriptors: &["(Lio/vertx/core/http/HttpServerRequest;)V"],
            loads: &[0, 1],
            leave: Leave::Returning,
            door: class_file!("agent/VertxDoor"),
            fork: None,
            needs: None,
        },
    },
    // Of Reactor Netty 1.0 to 1.2, and so of Spring WebFlux and Spring Cloud Gateway.
    Library {
        server: Server::ReactorNetty,
        point: Point {
            name: "Reactor Netty",
            class: "Lreactor/netty/http/server/HttpServer$HttpServerHandle;",
            method: "onStateChange",
            descriptors: &["(Lreactor/netty/Connection;Lreactor/netty/ConnectionObserver$State;)V"],
            loads: &[2, 1, 0],
            leave: Leave::Returning,
            door: class_file!("agent/ReactorNettyDoor"),
            fork: None,
            needs: None,
        },
    },
    // Of gRPC 1.44 to 1.76, over each of its transports.
    Library {
        server: Server::Grpc,
        point: Point {
            name: "gRPC",
            class: "Lio/grpc/internal/ServerImpl$ServerTransportListenerImpl;",
            method: "streamCreated",
            descriptors: &[
                "(Lio/grpc/internal/ServerStream;Ljava/lang/String;Lio/grpc/Metadata;)V",
            ],
            loads: &[1, 2, 0, 3],
            leave: Leave::Returning,
            door: class_file!("agent/GrpcDoor"),
            fork: None,
            needs: None,
        },
    },
    // Of Micronaut 4.8 to 4.10. Before, bodies and answers have other types in every release.
    Library {
        server: Server::Micronaut,
        point: Point {
            name: "Micronaut",
            class: "Lio/micronaut/http/server/netty/RoutingInBoundHandler;",
            method: "accept",
            descriptors: &[
                "(Lio/netty/channel/ChannelHandlerContext;Lio/netty/handler/codec/http/HttpRequest;Lio/micronaut/http/body/CloseableByteBody;Lio/micronaut/http/server/netty/handler/OutboundAccess;)V",
            ],
            loads: &[0, 2, 3, 4, 1],
            leave: Leave::Returning,
            door: class_file!("agent/MicronautDoor"),
            fork: None,
            needs: None,
        },
    },
    // Of Helidon 4.
    Library {
        server: Server::Helidon,
        point: Point {
            name: "Helidon",
            class: "Lio/helidon/webserver/http/HttpRoutingImpl;",
            method: "route",
            descriptors: &[
                "(Lio/helidon/webserver/ConnectionContext;Lio/helidon/webserver/http/RoutingRequest;Lio/helidon/webserver/http/RoutingResponse;)V",
            ],
            loads: &[0, 2, 1, 3],
            leave: Leave::Returning,
            door: class_file!("agent/HelidonDoor"),
            fork: None,
            needs: None,
        },
    },
    // Of Netty 4.1 and 4.2: a program's own handlers of HTTP extend this class.
    Library {
        server: Server::Netty,
        point: Point {
            name: "Netty",
            class: "Lio/netty/channel/SimpleChannelInboundHandler;",
            method: "channelRead",
            descriptors: &["(Lio/netty/channel/ChannelHandlerContext;Ljava/lang/Object;)V"],
            loads: &[0, 2, 1],
            leave: Leave::Returning,
            door: class_file!("agent/NettyDoor"),
            fork: None,
            needs: Some("Lio/netty/handler/codec/http/FullHttpRequest;"),
        },
    },
];
