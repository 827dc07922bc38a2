package victim;

import dev.heapwarden.Profile;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import victim.profiled.Work;

/**
 * Programs that read their own allocations by calling context.
 *
 * <pre>
 * own ROUNDS           a thread reads its own tree while another works: tuple PATH|TYPE|OBJECTS|ELEMENTS
 * every N OBJECTS      a callback after each N objects: called MADE-BEFORE...
 * many N DIMENSION     the same with arrays of arrays, several at a time
 * threads N ROUNDS     N virtual threads, or platform threads, read theirs: right COUNT
 * ran ROUNDS           calls and instructions: ran PATH|CALLS|BYTECODES
 * failing              a callback that throws
 * misuse               two profiles of a thread, and one of another's
 * </pre>
 */
public final class Profiles {
    private Profiles() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of(
                        "own", words -> own(Integer.parseInt(words[1])),
                        "every",
                                words ->
                                        every(
                                                Long.parseLong(words[1]),
                                                Integer.parseInt(words[2])),
                        "many",
                                words ->
                                        many(
                                                Long.parseLong(words[1]),
                                                Integer.parseInt(words[2])),
                        "threads",
                                words ->
                                        threads(
                                                Integer.parseInt(words[1]),
                                                Integer.parseInt(words[2])),
                        "ran", words -> ran(Integer.parseInt(words[1])),
                        "failing", words -> failing(),
                        "misuse", words -> misuse()));
    }

    private static void own(int rounds) throws Exception {
        Work.run(rounds);
        Thread other = new Thread(() -> Work.run(10 * rounds));
        try (Profile profile = Profile.begin()) {
            Protocol.say("active " + profile.isActive());
            other.start();
            Work.run(rounds);
            tell(profile);
            Work.single();
            Protocol.say("then " + sum(profile));
        }
        other.join();
        try (Profile profile = Profile.begin()) {
            Protocol.say("anew " + sum(profile));
        }
    }

    private static void tell(Profile profile) {
        for (Profile.Context context : profile.read()) {
            for (Profile.Allocation of : context.allocations()) {
                Protocol.say(
                        "tuple "
                                + String.join(">", context.path())
                                + "|"
                                + of.type()
                                + "|"
                                + of.objects()
                                + "|"
                                + of.elements().orElse(-1));
            }
        }
    }

    private static long sum(Profile profile) {
        return profile.read().stream()
                .flatMap(context -> context.allocations().stream())
                .mapToLong(Profile.Allocation::objects)
                .sum();
    }

    private static void every(long every, int objects) {
        List<String> called = new ArrayList<>();
        try (Profile profile = Profile.begin()) {
            profile.every(
                    every,
                    () -> {
                        called.add(Long.toString(Work.made()));
                        // In a package of which contexts are counted, but not now.
                        Work.run(3);
                    });
            Work.count(objects);
            Protocol.say("counted " + sum(profile));
        }
        Work.count(objects);
        Protocol.say("called " + String.join(" ", called));
    }

    private static void many(long every, int dimension) {
        List<String> called = new ArrayList<>();
        try (Profile profile = Profile.begin()) {
            profile.every(every, () -> called.add("x"));
            Work.many(dimension);
            Protocol.say("counted " + sum(profile));
        }
        Protocol.say("called " + called.size());
    }

    private static void threads(int count, int rounds) throws Exception {
        List<Thread> threads = new ArrayList<>();
        long[] sums = new long[count];
        for (int i = 0; i < count; i++) {
            int number = i;
            Runnable work =
                    () -> {
                        try (Profile profile = Profile.begin()) {
                            Work.yielding(rounds + number);
                            sums[number] = sum(profile);
                        }
                    };
            threads.add(ExactWays.factory().newThread(work));
        }
        threads.forEach(Thread::start);
        int right = 0;
        for (int i = 0; i < count; i++) {
            threads.get(i).join();
            right += sums[i] == rounds + i ? 1 : 0;
        }
        Protocol.say("right " + right);
    }

    private static void ran(int rounds) {
        Work.run(rounds);
        try (Profile profile = Profile.begin()) {
            Work.run(rounds);
            for (Profile.Context context : profile.read()) {
                Protocol.say(
                        "ran "
                                + String.join(">", context.path())
                                + "|"
                                + context.calls()
                                + "|"
                                + context.bytecodes());
            }
        }
    }

    private static void failing() {
        try (Profile profile = Profile.begin()) {
            profile.every(
                    10,
                    () -> {
                        throw new IllegalStateException("as it should be");
                    });
            Work.count(100);
            Protocol.say("ended " + profile.failure().isPresent());
            Protocol.say("counted " + sum(profile));
        }
    }

    private static void misuse() throws Exception {
        try (Profile profile = Profile.begin()) {
            Protocol.say("second " + refused(Profile::begin));
            List<String> said = new ArrayList<>();
            Thread other = new Thread(() -> said.add(refused(profile::read)));
            other.start();
            other.join();
            Protocol.say("elsewhere " + said.get(0));
        }
    }

    private static String refused(Runnable what) {
        try {
            what.run();
            return "let in";
        } catch (IllegalStateException expected) {
            return "refused";
        }
    }
}
