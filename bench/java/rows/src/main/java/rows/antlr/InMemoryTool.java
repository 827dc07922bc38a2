package rows.antlr;

import java.io.StringWriter;
import java.io.Writer;
import java.util.SortedMap;
import java.util.TreeMap;
import org.antlr.v4.Tool;
import org.antlr.v4.tool.ANTLRMessage;
import org.antlr.v4.tool.ANTLRToolListener;
import org.antlr.v4.tool.Grammar;
import org.antlr.v4.tool.ast.GrammarRootAST;

/** The tool, whose output is kept instead of written. */
final class InMemoryTool extends Tool {
    private final SortedMap<String, StringWriter> files = new TreeMap<>();

    InMemoryTool() {
        super(new String[] {"-visitor"});
        removeListeners();
        addListener(new Refusal());
    }

    /** Generates a parser and a lexer of a combined grammar, and returns it, ready to interpret. */
    Grammar generate(String name, String text) {
        GrammarRootAST tree = parseGrammarFromString(text);
        Grammar grammar = createGrammar(tree);
        grammar.fileName = name + ".g4";
        process(grammar, true);
        return grammar;
    }

    /** Returns the generated text by the name of its file. */
    SortedMap<String, StringWriter> files() {
        return files;
    }

    @Override
    public Writer getOutputFileWriter(Grammar grammar, String fileName) {
        StringWriter file = new StringWriter();
        files.put(fileName, file);
        return file;
    }

    /** The grammars are sound: whatever the tool has to say is an error of the row. */
    private static final class Refusal implements ANTLRToolListener {
        @Override
        public void info(String message) {}

        @Override
        public void error(ANTLRMessage message) {
            throw new IllegalStateException(message.toString());
        }

        @Override
        public void warning(ANTLRMessage message) {
            throw new IllegalStateException(message.toString());
        }
    }
}
