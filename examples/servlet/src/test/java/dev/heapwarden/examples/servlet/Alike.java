package dev.heapwarden.examples.servlet;

/** Below the agent's package by name, but the application's own. */
final class Alike extends RuntimeException {
    private static final long serialVersionUID = 1;
}
