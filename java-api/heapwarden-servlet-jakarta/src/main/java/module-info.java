/** A servlet filter that turns new requests away while their service is over its memory limit. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // It has no other name.
module dev.heapwarden.servlet.jakarta {
    requires dev.heapwarden;
    requires transitive jakarta.servlet;
    requires static org.jspecify;

    exports dev.heapwarden.servlet.jakarta;

    provides jakarta.servlet.ServletContainerInitializer with
            dev.heapwarden.servlet.jakarta.AdmissionInitializer;
}
