package dev.heapwarden.agent;

/** The door of a server that calls on an event loop, and whose requests go on there and elsewhere afterwards. */
abstract class EventLoopDoor extends LibraryDoor {
    EventLoopDoor(Container library) {
        super(library);
    }

    @Override
    final boolean staysOnThread() {
        return false;
    }
}
