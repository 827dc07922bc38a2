/** Turns new requests for a Spring Boot application away while it is over its memory limit. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // They have no other names.
module dev.heapwarden.spring {
    requires dev.heapwarden;
    requires static dev.heapwarden.servlet.jakarta;
    requires static jakarta.servlet;
    requires static org.jspecify;
    requires static org.reactivestreams;
    requires static reactor.core;
    requires spring.beans;
    requires spring.boot;
    requires spring.boot.autoconfigure;
    requires spring.context;
    requires spring.core;
    requires static transitive spring.web;

    exports dev.heapwarden.spring;

    opens dev.heapwarden.spring;
}
