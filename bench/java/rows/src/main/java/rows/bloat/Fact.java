package rows.bloat;

import java.util.Objects;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.analysis.BasicValue;
import org.objectweb.asm.tree.analysis.Value;

/**
 * The facts about a value that hold whichever way it came about.
 *
 * @param basic its kind
 * @param constant its number, if it is an int and known; else null
 * @param present whether it is a reference that cannot be null
 * @param origin where it was made or last cast, if that is known; else null
 */
record Fact(BasicValue basic, Integer constant, boolean present, TypeInsnNode origin) implements Value {
    static Fact of(BasicValue basic) {
        return basic == null ? null : new Fact(basic, null, false, null);
    }

    static Fact number(int constant) {
        return new Fact(BasicValue.INT_VALUE, constant, false, null);
    }

    static Fact reference(boolean present, TypeInsnNode origin) {
        return new Fact(BasicValue.REFERENCE_VALUE, null, present, origin);
    }

    /** Returns the facts that still hold where two ways meet. */
    Fact merge(Fact other) {
        if (equals(other)) {
            return this;
        }
        if (!basic.equals(other.basic)) {
            return of(BasicValue.UNINITIALIZED_VALUE);
        }
        return new Fact(
                basic,
                Objects.equals(constant, other.constant) ? constant : null,
                present && other.present,
                origin == other.origin ? origin : null);
    }

    @Override
    public int getSize() {
        return basic.getSize();
    }
}
