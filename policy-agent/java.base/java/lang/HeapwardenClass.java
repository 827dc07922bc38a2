package java.lang;

import java.lang.ref.WeakReference;

/** The number of a class, which this does not keep loaded. */
final class HeapwardenClass extends WeakReference<Class<?>> {
    final int number;

    HeapwardenClass(Class<?> of, int number) {
        super(of);
        this.number = number;
    }
}
