/** Takes Heapwarden's scopes along with Micrometer's context propagation. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // It has no other name.
module dev.heapwarden.micrometer {
    requires dev.heapwarden;
    requires transitive context.propagation;
    requires static org.jspecify;

    exports dev.heapwarden.micrometer;

    provides io.micrometer.context.ThreadLocalAccessor with
            dev.heapwarden.micrometer.ScopeAccessor;
}
