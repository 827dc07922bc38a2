package dev.heapwarden.agent;

/** The door of a server that calls on an event loop, and whose requests go on there and elsewhere afterwards. */
abstract class EventLoopDoor extends LibraryDoor {
    /**
     * Whether the program has asked for a request of its own. It is left to it then: what a door has let in is asked
     * again on another thread, where the door's probe has ended, and nothing would ever come in.
     */
    private static volatile boolean isLeftToProgram;

    EventLoopDoor(Container library) {
        super(library);
    }

    /** The program asks for its requests, behind the door. */
    static void leaveToProgram() {
        isLeftToProgram = true;
    }

    @Override
    final boolean isAsked() {
        return !isLeftToProgram;
    }

    @Override
    final boolean staysOnThread() {
        return false;
    }
}
