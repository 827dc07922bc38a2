/** Turns new requests for a Spring Boot application away while it is over its memory limit. */
@NullMarked
package dev.heapwarden.spring;

import org.jspecify.annotations.NullMarked;
