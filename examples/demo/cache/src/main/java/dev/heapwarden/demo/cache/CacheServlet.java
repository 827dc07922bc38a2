package dev.heapwarden.demo.cache;

import dev.heapwarden.demo.holdings.HoldingsServlet;
import dev.heapwarden.demo.holdings.Truth;
import jakarta.servlet.http.HttpServletResponse;

/** Answers each request by replacing a few entries of the cache. */
public final class CacheServlet extends HoldingsServlet {
    private static final long serialVersionUID = 1L;
    private static final int ENTRIES_PER_REQUEST = 8;

    private transient EntryCache cache;

    /** Creates the servlet; the container then calls {@link #init}. */
    public CacheServlet() {}

    @Override
    public void init() {
        cache = new EntryCache(mebibytes("maximum-mib"));
    }

    @Override
    protected int work() {
        for (int i = 0; i < ENTRIES_PER_REQUEST; i++) {
            cache.fill();
        }
        return HttpServletResponse.SC_OK;
    }

    @Override
    protected Truth truth() {
        return new Truth(cache.bytes(), 0, cache.entries());
    }

    @Override
    protected void release() {
        cache.clear();
    }
}
