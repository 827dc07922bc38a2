/** Turns new HTTP requests of a Netty server away while its service is over its memory limit. */
@NullMarked
package dev.heapwarden.netty;

import org.jspecify.annotations.NullMarked;
