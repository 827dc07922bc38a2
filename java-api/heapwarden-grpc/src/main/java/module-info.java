/** A gRPC server interceptor that turns new calls away while their service is over its memory limit. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // It has no other name.
module dev.heapwarden.grpc {
    requires dev.heapwarden;
    requires transitive io.grpc;
    requires static org.jspecify;

    exports dev.heapwarden.grpc;
}
