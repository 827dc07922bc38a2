/** Turns new gRPC calls away while their service is over its memory limit. */
@NullMarked
package dev.heapwarden.grpc;

import org.jspecify.annotations.NullMarked;
