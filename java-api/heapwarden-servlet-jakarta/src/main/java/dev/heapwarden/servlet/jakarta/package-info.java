/**
 * Turns new requests away while their service is over its memory limit: for servers whose entry the agent
 * does not guard by itself, and for services with {@code door = "off"}.
 */
@NullMarked
package dev.heapwarden.servlet.jakarta;

import org.jspecify.annotations.NullMarked;
