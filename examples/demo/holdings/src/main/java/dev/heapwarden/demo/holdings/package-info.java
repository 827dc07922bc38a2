/**
 * An application's own count of the memory it holds, to the byte: the truth that Heapwarden's accounts are checked against.
 *
 * <p>Packed into each web application, so that each has its own copy under its own class loader.
 */
package dev.heapwarden.demo.holdings;
