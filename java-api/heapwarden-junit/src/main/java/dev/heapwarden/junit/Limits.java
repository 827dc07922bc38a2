package dev.heapwarden.junit;

import java.lang.annotation.Annotation;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/** The limits of one test. Immutable. */
final class Limits {
    /** Null for none. Bytes. */
    final @Nullable Long maxLiveBytes;

    /** Null for none. Bytes. */
    final @Nullable Long maxAllocatedBytes;

    Limits(@Nullable Long maxLiveBytes, @Nullable Long maxAllocatedBytes) {
        this.maxLiveBytes = maxLiveBytes;
        this.maxAllocatedBytes = maxAllocatedBytes;
    }

    /**
     * Those of the test or class that the context is of.
     *
     * @throws ExtensionConfigurationException if an annotation has no size
     */
    static Limits of(ExtensionContext context) {
        return new Limits(
                find(context, MaxLive.class)
                        .map(found -> size("@MaxLive", found.value(), context))
                        .orElse(null),
                find(context, MaxAllocated.class)
                        .map(found -> size("@MaxAllocated", found.value(), context))
                        .orElse(null));
    }

    /** Whether there is none. */
    boolean isEmpty() {
        return maxLiveBytes == null && maxAllocatedBytes == null;
    }

    /**
     * The method's annotation, else its class's, else that of the class around that. A dynamic test
     * has none itself, but is beneath the method that made it.
     */
    static <A extends Annotation> Optional<A> find(
            ExtensionContext context, Class<A> annotation) {
        Optional<A> found = Optional.empty();
        for (ExtensionContext at = context;
                found.isEmpty() && at != null;
                at = at.getParent().orElse(null)) {
            found =
                    at.getElement()
                            .flatMap(here -> AnnotationSupport.findAnnotation(here, annotation));
        }
        return found;
    }

    /** The bytes of a size that stands in an annotation. */
    static Long size(String annotation, String value, ExtensionContext context) {
        try {
            return Size.parse(value);
        } catch (IllegalArgumentException wrong) {
            throw new ExtensionConfigurationException(
                    annotation + " of " + context.getDisplayName() + ": " + wrong.getMessage(),
                    wrong);
        }
    }
}
