/** Memory limits for tests that run on JUnit 5 or 6, held by the agent Heapwarden. */
@org.jspecify.annotations.NullMarked
module dev.heapwarden.junit {
    requires dev.heapwarden;
    requires transitive org.junit.jupiter.api;
    requires org.junit.platform.commons;
    requires static org.jspecify;

    exports dev.heapwarden.junit;

    opens dev.heapwarden.junit to
            org.junit.platform.commons;
}
