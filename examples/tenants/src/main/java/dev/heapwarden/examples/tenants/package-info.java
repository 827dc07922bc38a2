/** Three tenants on one executor, one of them hostile. */
package dev.heapwarden.examples.tenants;
