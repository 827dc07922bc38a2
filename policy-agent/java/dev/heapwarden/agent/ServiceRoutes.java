package dev.heapwarden.agent;

import java.util.Arrays;

/**
 * The routes of one service that the agent has numbers for. A look at one that was met before allocates
 * nothing. Thread-safe: a race may lose an entry, which is asked for again.
 */
final class ServiceRoutes {
    /** Twice as many as there are routes. A power of two. */
    private static final int PLACES = 128;

    /**
     * How often the agent is asked for routes after it has said that there is no room for more: some that
     * it knows may not have been met here.
     */
    private static final int MAX_LATE = 1_024;

    /** See {@link Natives#route}. */
    private static final int NONE = -1;

    private final Route[] routes = new Route[PLACES];

    /** The number of the route of the rest. 0: there may be room for more. {@link #NONE}: no route at all. */
    private volatile int rest;

    private int late;

    /** Immutable, so that threads may find it without a lock. */
    private static final class Route {
        final char[] path;
        final int method;
        final int hash;
        final int number;

        Route(RoutePath of, int number) {
            this.path = Arrays.copyOf(of.chars, of.length);
            this.method = of.method;
            this.hash = of.hash;
            this.number = number;
        }

        /** By each character: a client may know how to make two paths with one hash. */
        boolean is(RoutePath other) {
            return hash == other.hash
                    && method == other.method
                    && Arrays.equals(path, 0, path.length, other.chars, 0, other.length);
        }
    }

    /**
     * The number of a route; 0 if it has none, or not yet.
     *
     * @param loader the number of the service's loader
     */
    int number(int loader, RoutePath path) {
        for (int at = path.hash, tried = 0; tried < PLACES; at++, tried++) {
            Route route = routes[at & PLACES - 1];
            if (route == null) {
                break;
            }
            if (route.is(path)) {
                return route.number;
            }
        }
        int other = rest;
        return other == 0 || late < MAX_LATE ? ask(loader, path) : Math.max(other, 0);
    }

    private int ask(int loader, RoutePath path) {
        if (rest != 0) {
            late++;
        }
        int answer = Natives.route(loader, path.method(), path.path());
        if (answer >= 0) {
            if (answer > 0) {
                put(new Route(path, answer));
            }
            return answer;
        }
        rest = answer == NONE ? NONE : NONE - answer;
        return Math.max(rest, 0);
    }

    private void put(Route route) {
        for (int at = route.hash, tried = 0; tried < PLACES; at++, tried++) {
            if (routes[at & PLACES - 1] == null) {
                routes[at & PLACES - 1] = route;
                return;
            }
        }
    }
}
