package rows.antlr;

import java.util.ArrayList;
import java.util.List;
import org.antlr.v4.runtime.BailErrorStrategy;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.LexerInterpreter;
import org.antlr.v4.runtime.ParserInterpreter;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.tree.ErrorNode;
import org.antlr.v4.runtime.tree.ParseTree;
import org.antlr.v4.runtime.tree.ParseTreeListener;
import org.antlr.v4.runtime.tree.ParseTreeWalker;
import org.antlr.v4.runtime.tree.TerminalNode;
import org.antlr.v4.tool.Grammar;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/** ANTLR generates parsers of several grammars, and parses a program by each. */
public final class Antlr implements Row {
    private static final int DIALECTS = 10;

    /** Statements of the outermost level in a program. */
    private static final int PROGRAM_LENGTH = 400;

    private static final long EXPECTED = 0x4ec80ee4a80c9f85L;

    private final List<Language> languages = new ArrayList<>();

    /** A dialect, and a text in it. */
    private record Language(String name, String grammar, String program) {}

    public Antlr(Settings settings) {
        for (int number = 1; number <= DIALECTS; number++) {
            Dialect dialect = new Dialect(number);
            languages.add(
                    new Language(dialect.name(), dialect.grammar(), dialect.program(PROGRAM_LENGTH)));
        }
    }

    /** Iterations are short, and get shorter for long. */
    @Override
    public int warmups() {
        return 8;
    }

    @Override
    public int iterations() {
        return 16;
    }

    @Override
    public long operations() {
        return languages.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() {
        Checksum checksum = new Checksum();
        for (Language language : languages) {
            InMemoryTool tool = new InMemoryTool();
            Grammar grammar = tool.generate(language.name(), language.grammar());
            tool.files()
                    .forEach(
                            (name, text) -> {
                                checksum.add(name);
                                checksum.add(text.getBuffer());
                            });
            ParseTreeWalker.DEFAULT.walk(new Visitor(checksum), parse(grammar, language.program()));
        }
        return checksum.value();
    }

    private static ParseTree parse(Grammar grammar, String program) {
        LexerInterpreter lexer = grammar.createLexerInterpreter(CharStreams.fromString(program));
        lexer.removeErrorListeners();
        ParserInterpreter parser = grammar.createParserInterpreter(new CommonTokenStream(lexer));
        // A program that does not parse is an error of the row.
        parser.setErrorHandler(new BailErrorStrategy());
        return parser.parse(grammar.getRule("program").index);
    }

    /** Takes each node of a tree. */
    private record Visitor(Checksum checksum) implements ParseTreeListener {
        @Override
        public void enterEveryRule(ParserRuleContext rule) {
            checksum.add(rule.getRuleIndex());
        }

        @Override
        public void exitEveryRule(ParserRuleContext rule) {
            checksum.add(rule.getChildCount());
        }

        @Override
        public void visitTerminal(TerminalNode token) {
            checksum.add(token.getText());
        }

        @Override
        public void visitErrorNode(ErrorNode node) {
            throw new IllegalStateException("the program does not parse at " + node.getText());
        }
    }
}
