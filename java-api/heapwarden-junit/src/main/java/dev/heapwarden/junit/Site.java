package dev.heapwarden.junit;

import java.util.ArrayList;
import java.util.List;

/** Where a part of what is live of a class was allocated. Immutable. */
final class Site {
    /** How many values the agent gives of a place. */
    private static final int COLUMNS = 2;

    /** The agent's text for a frame that it has not looked up yet. */
    private static final String PENDING = "(not named yet)";

    /** From the program's first frame down. */
    final List<String> frames;

    /** In thousandths. */
    final long share;

    Site(List<String> frames, long share) {
        this.frames = List.copyOf(frames);
        this.share = share;
    }

    /** In the order of the agent's {@code Bridge.sites}. */
    static List<Site> of(Object[] sites) {
        List<Site> found = new ArrayList<>();
        for (int at = 0; at + COLUMNS <= sites.length; at += COLUMNS) {
            found.add(
                    new Site(
                            List.of(((String) sites[at]).split("\n")), (Long) sites[at + 1]));
        }
        return found;
    }

    /** Whether all frames have names. */
    boolean isNamed() {
        return !frames.contains(PENDING);
    }
}
