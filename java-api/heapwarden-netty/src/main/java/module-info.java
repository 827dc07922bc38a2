/** A Netty handler that turns new HTTP requests away while their service is over its memory limit. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // They have no other names.
module dev.heapwarden.netty {
    requires dev.heapwarden;
    requires transitive io.netty.transport;
    requires io.netty.buffer;
    requires io.netty.codec;
    requires io.netty.codec.http;
    requires io.netty.common;
    requires static org.jspecify;

    exports dev.heapwarden.netty;
}
