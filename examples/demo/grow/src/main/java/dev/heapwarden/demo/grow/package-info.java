/** The application {@code /grow}: every request leaves something behind. */
package dev.heapwarden.demo.grow;
