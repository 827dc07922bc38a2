package tenant;

/** A part of the bazaar. */
enum Stall {
    COLLECTIONS(Goods::collections),
    STREAMS(Goods::streams),
    TEXT(Goods::text),
    FORMATS(Goods::formats),
    NUMBERS(Goods::numbers),
    TIMES(Goods::times),
    CODES(Goods::codes),
    FILES(Goods::files),
    SERIALIZATION(Works::serialization),
    REFLECTION(Works::reflection),
    CLASSES(Works::classes),
    FUTURES(Works::futures),
    EXECUTORS(Works::executors),
    SHARED_MAPS(Works::sharedMaps),
    LOCKS(Works::locks),
    LOGGING(Works::logging);

    private final Service service;

    interface Service {
        Object serve(long seed) throws Throwable;
    }

    Stall(Service service) {
        this.service = service;
    }

    Object serve(long seed) {
        try {
            return service.serve(seed);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(name(), e);
        }
    }
}
