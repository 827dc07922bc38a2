package rows;

import java.util.Map;
import java.util.TreeMap;

/** All rows, by name. */
final class Rows {
    private static final Map<String, Opener> ALL = new TreeMap<>();

    static {
        ALL.put("antlr", rows.antlr.Antlr::new);
        ALL.put("bloat", rows.bloat.Bloat::new);
        ALL.put("chart", rows.chart.Chart::new);
        ALL.put("eclipse", rows.eclipse.Eclipse::new);
        ALL.put("fop", rows.fop.Fop::new);
        ALL.put("hsqldb", rows.hsqldb.Hsqldb::new);
        ALL.put("jbb", rows.jbb.Jbb::new);
        ALL.put("jython", rows.jython.Jython::new);
        ALL.put("luindex", rows.luindex.Luindex::new);
        ALL.put("lusearch", rows.lusearch.Lusearch::new);
        ALL.put("pmd", rows.pmd.Pmd::new);
        ALL.put("xalan", rows.xalan.Xalan::new);
    }

    private Rows() {}

    /** Builds a row: its inputs and its live data. */
    @FunctionalInterface
    interface Opener {
        Row open(Settings settings) throws Exception;
    }

    static Iterable<String> names() {
        return ALL.keySet();
    }

    /** The row of that name, or null. */
    static Opener named(String name) {
        return ALL.get(name);
    }
}
