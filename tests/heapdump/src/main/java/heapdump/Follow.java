package heapdump;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.netbeans.lib.profiler.heap.Heap;
import org.netbeans.lib.profiler.heap.HeapFactory;
import org.netbeans.lib.profiler.heap.Instance;
import org.netbeans.lib.profiler.heap.JavaClass;
import org.netbeans.lib.profiler.heap.ObjectArrayInstance;

/**
 * Follows a chain of references in a heap dump, and says how many objects of a class are at its end.
 *
 * <p>Arguments: the dump, the class of the static field, the field ({@code *}: all objects of the class instead), then a class and a field (or {@code [*]}) for
 * each step, then the class at the end. A step may be repeated.
 */
public final class Follow {
    private Follow() {}

    public static void main(String[] arguments) throws IOException {
        Heap heap = HeapFactory.createHeap(new File(arguments[0]));
        List<Instance> at = new ArrayList<>();
        for (Object each : heap.getAllClasses()) {
            JavaClass type = (JavaClass) each;
            if (type.getName().equals(arguments[1])) {
                if (arguments[2].equals("*")) {
                    for (Object one : type.getInstances()) {
                        at.add((Instance) one);
                    }
                    continue;
                }
                Object value = type.getValueOfStaticField(arguments[2]);
                if (value instanceof Instance) {
                    at.add((Instance) value);
                }
            }
        }
        for (int step = 3; step + 1 < arguments.length; step += 2) {
            at = followed(at, arguments[step], arguments[step + 1]);
        }
        String last = arguments[arguments.length - 1];
        long found = at.stream().filter(one -> one.getJavaClass().getName().equals(last)).count();
        System.out.println("found " + found);
    }

    /** The objects behind one step, taken once or several times in a row. */
    private static List<Instance> followed(List<Instance> from, String type, String via) {
        Map<Long, Instance> reached = new LinkedHashMap<>();
        List<Instance> next = from;
        while (!next.isEmpty()) {
            List<Instance> behind = new ArrayList<>();
            for (Instance one : next) {
                if (!one.getJavaClass().getName().equals(type)) {
                    continue;
                }
                for (Instance other : behind(one, via)) {
                    if (reached.putIfAbsent(other.getInstanceId(), other) == null) {
                        behind.add(other);
                    }
                }
            }
            next = behind;
        }
        return new ArrayList<>(reached.values());
    }

    private static List<Instance> behind(Instance one, String via) {
        List<Instance> found = new ArrayList<>();
        if (one instanceof ObjectArrayInstance) {
            for (Object value : ((ObjectArrayInstance) one).getValues()) {
                if (value instanceof Instance) {
                    found.add((Instance) value);
                }
            }
            return found;
        }
        Object value = one.getValueOfField(via);
        if (value instanceof Instance) {
            found.add((Instance) value);
        }
        return found;
    }
}
