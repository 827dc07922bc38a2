package dev.heapwarden.agent;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** The door of a server that calls on an event loop, and whose requests go on there and elsewhere afterwards. */
abstract class EventLoopDoor extends LibraryDoor {
    /** Requests that were let in, of which the latest are remembered. A power of two. */
    private static final int REMEMBERED = 16;

    private final AtomicReferenceArray<WeakReference<Object>> latest =
            new AtomicReferenceArray<>(REMEMBERED);
    private final AtomicInteger next = new AtomicInteger();

    EventLoopDoor(Container library) {
        super(library);
    }

    @Override
    final boolean staysOnThread() {
        return false;
    }

    /**
     * Unless the program asks for its requests itself: they are left to it then. What the door has let in is asked
     * again on another thread, where the door's probe has ended, and nothing would ever come in.
     */
    @Override
    final boolean isAsked() {
        return !Loaders.asksItself(service(null, null));
    }

    /** The one object of a request that every part of the server sees. */
    Object identity(Object[] call) throws Throwable {
        return call[1];
    }

    @Override
    final boolean wasLetIn(Object[] call) throws Throwable {
        Object asked = identity(call);
        for (int at = 0; at < REMEMBERED; at++) {
            WeakReference<Object> known = latest.get(at);
            if (known != null && known.refersTo(asked)) {
                return true;
            }
        }
        return false;
    }

    @Override
    final void letIn(Object[] call) throws Throwable {
        int at = next.getAndIncrement() & REMEMBERED - 1;
        latest.set(at, new WeakReference<>(identity(call)));
    }
}
