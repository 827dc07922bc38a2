/** A Spring Boot application that says which tenant it works for. */
package dev.heapwarden.examples.boot;
