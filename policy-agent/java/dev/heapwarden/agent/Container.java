package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Finds methods of a container's classes by the names of their types, and nothing else of these classes.
 *
 * <p>In the handles, every type that is not the JDK's is {@code Object}: callers need no casts.
 */
final class Container {
    private static final MethodHandle IS_INSTANCE = isInstance();

    private final ClassLoader loader;
    private final MethodHandles.Lookup lookup;

    /**
     * A container.
     *
     * @param point a class of it, whose private methods are found too
     * @param near a lookup with full access in the point's module
     */
    Container(Class<?> point, MethodHandles.Lookup near) throws IllegalAccessException {
        this.loader = point.getClassLoader();
        this.lookup = MethodHandles.privateLookupIn(point, near);
    }

    /** A method that is called as Java code calls it: an override takes its place. */
    MethodHandle method(String owner, String returned, String name, String... parameters)
            throws ReflectiveOperationException {
        return adapt(lookup.findVirtual(type(owner), name, types(returned, parameters)));
    }

    /** A method of the point itself, also if the object's class overrides it. */
    MethodHandle own(String returned, String name, String... parameters)
            throws ReflectiveOperationException {
        Class<?> point = lookup.lookupClass();
        return adapt(lookup.findSpecial(point, name, types(returned, parameters), point));
    }

    /** A static method. */
    MethodHandle function(String owner, String returned, String name, String... parameters)
            throws ReflectiveOperationException {
        return adapt(lookup.findStatic(type(owner), name, types(returned, parameters)));
    }

    /** A constructor. */
    MethodHandle made(String owner, String... parameters) throws ReflectiveOperationException {
        return adapt(lookup.findConstructor(type(owner), types("void", parameters)));
    }

    /** The value of a static field, which may be private. Initialises its class. */
    Object constant(String owner, String type, String name) throws ReflectiveOperationException {
        Class<?> declaring = type(owner);
        return MethodHandles.privateLookupIn(declaring, lookup)
                .findStaticVarHandle(declaring, name, type(type))
                .get();
    }

    /** The loader of the point. Null for the boot loader. */
    ClassLoader loader() {
        return loader;
    }

    /** Whether an object is of a type: takes an {@code Object}, returns a {@code boolean}. */
    MethodHandle instance(String type) throws ReflectiveOperationException {
        return IS_INSTANCE.bindTo(type(type));
    }

    private MethodType types(String returned, String... parameters)
            throws ClassNotFoundException {
        Class<?>[] found = new Class<?>[parameters.length];
        for (int at = 0; at < found.length; at++) {
            found[at] = type(parameters[at]);
        }
        return MethodType.methodType(type(returned), found);
    }

    private static MethodHandle isInstance() {
        try {
            return MethodHandles.lookup()
                    .findVirtual(
                            Class.class,
                            "isInstance",
                            MethodType.methodType(boolean.class, Object.class));
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private Class<?> type(String name) throws ClassNotFoundException {
        switch (name) {
            case "void":
                return void.class;
            case "boolean":
                return boolean.class;
            case "int":
                return int.class;
            default:
                return Class.forName(name, false, loader);
        }
    }

    private static MethodHandle adapt(MethodHandle handle) {
        MethodType type = handle.type();
        for (int at = 0; at < type.parameterCount(); at++) {
            type = type.changeParameterType(at, plain(type.parameterType(at)));
        }
        return handle.asType(type.changeReturnType(plain(type.returnType())));
    }

    private static Class<?> plain(Class<?> type) {
        return type.getClassLoader() == null ? type : Object.class;
    }
}
