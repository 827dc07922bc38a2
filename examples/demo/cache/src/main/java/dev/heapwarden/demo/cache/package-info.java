/** The application {@code /cache}: once warm it holds the same number of bytes for ever. */
package dev.heapwarden.demo.cache;
