package dev.heapwarden.demo.report;

import dev.heapwarden.demo.holdings.HoldingsServlet;
import dev.heapwarden.demo.holdings.Truth;
import dev.heapwarden.demo.xml.XmlException;
import dev.heapwarden.demo.xml.XmlParser;
import jakarta.servlet.http.HttpServletResponse;

/** Answers each request by writing a report, parsing it with the shared library and filing it. */
public final class ReportServlet extends HoldingsServlet {
    private static final long serialVersionUID = 1L;

    private transient ReportWriter writer;
    private transient Archive archive;

    /** Creates the servlet; the container then calls {@link #init}. */
    public ReportServlet() {}

    @Override
    public void init() {
        writer = new ReportWriter();
        archive = new Archive(Integer.parseInt(getInitParameter("documents").strip()));
    }

    @Override
    protected int work() {
        String text;
        synchronized (writer) {
            text = writer.next();
        }
        try {
            archive.keep(XmlParser.parse(text));
        } catch (XmlException e) {
            throw new IllegalStateException("a report that this application wrote is no XML", e);
        }
        return HttpServletResponse.SC_OK;
    }

    @Override
    protected Truth truth() {
        return new Truth(archive.ownBytes(), archive.documentBytes(), archive.entries());
    }

    @Override
    protected void release() {
        archive.clear();
    }
}
