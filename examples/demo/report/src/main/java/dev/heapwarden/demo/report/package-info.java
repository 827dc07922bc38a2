/**
 * The application {@code /report}: writes XML, has the shared library parse it, drops nearly all of
 * it and keeps the latest documents.
 */
package dev.heapwarden.demo.report;
