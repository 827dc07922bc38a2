package dev.heapwarden.demo.grow;

import dev.heapwarden.demo.holdings.HoldingsServlet;
import dev.heapwarden.demo.holdings.Truth;
import jakarta.servlet.http.HttpServletResponse;

/** Answers each request by keeping a little more. */
public final class GrowServlet extends HoldingsServlet {
    private static final long serialVersionUID = 1L;
    private static final int PAYLOADS_PER_REQUEST = 24;

    private transient Hoard hoard;

    /** Creates the servlet; the container then calls {@link #init}. */
    public GrowServlet() {}

    @Override
    public void init() {
        hoard = new Hoard(mebibytes("maximum-mib"));
    }

    @Override
    protected int work() {
        for (int i = 0; i < PAYLOADS_PER_REQUEST; i++) {
            if (!hoard.add()) {
                return INSUFFICIENT_STORAGE;
            }
        }
        return HttpServletResponse.SC_OK;
    }

    @Override
    protected Truth truth() {
        return new Truth(hoard.bytes(), 0, hoard.entries());
    }

    @Override
    protected void release() {
        hoard.clear();
    }
}
