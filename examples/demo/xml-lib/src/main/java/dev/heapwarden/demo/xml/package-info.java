/**
 * A small XML library that lies in the server, shared by every application.
 *
 * <p>What it allocates is its caller's: {@code heapwarden.toml} names this package with {@code
 * charge = "caller"}.
 */
package dev.heapwarden.demo.xml;
