import java.io.StringReader;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.function.Supplier;

/** As {@link Shapes}, of newer releases: records, lambdas, type annotations, names beyond ASCII. */
class Newer {
    @Target(ElementType.TYPE_USE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Marked {
        int[] numbers() default {};

        Class<?>[] classes() default {};
    }

    record Übergabe(@Marked Object value, long[] numbers) {
        Übergabe {
            if (value == null) throw new IllegalArgumentException();
        }

        Übergabe twice(Übergabe other) {
            while (other != null && other.numbers.length < 3) other = new Übergabe(this, new long[4]);
            return other;
        }
    }

    static Object typed(Object given) throws Exception {
        @Marked(numbers = {1, 2}, classes = {String.class, int[].class}) Object local = (@Marked Object) given;
        try (@Marked StringReader reader = new StringReader("text")) {
            reader.read();
            local = new @Marked Object();
        } catch (@Marked(numbers = 3) RuntimeException e) {
            local = e;
        }
        if (local instanceof String text && text.length() > 2) return text + given;
        return local;
    }

    static Supplier<Object> lambda(int size) {
        Supplier<Object> first = () -> new char[size];
        Supplier<Object> second = Object::new;
        return size > 3 ? first : second;
    }

    static int chosen(String text) {
        return switch (text) {
            case "a", "b" -> 1;
            case "c" -> {
                int[] made = new int[2];
                yield made.length;
            }
            default -> text.length();
        };
    }
}
