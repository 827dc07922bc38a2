package rows.antlr;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;

/**
 * A made-up programming language: its grammar, and programs in it. Dialects have the shape in common,
 * and differ in their statements and in the operators of each precedence. The same number gives the same
 * dialect.
 */
final class Dialect {
    private static final String[] SYMBOLS = {"+", "-", "*", "/", "%", "&", "|", "^", "<", ">", "~", "@"};
    private static final int LEAST_STATEMENTS = 40;
    private static final int MAX_STATEMENTS = 80;
    private static final int MAX_ARGUMENTS = 4;
    private static final int DEEPEST_BLOCK = 3;
    private static final int DEEPEST_EXPRESSION = 4;

    private final Random random;
    private final String name;
    private final List<Statement> statements = new ArrayList<>();
    private final List<List<String>> precedences = new ArrayList<>();

    /**
     * A kind of statement.
     *
     * @param option word before an argument that may be left out; null for none
     * @param block whether statements follow in braces
     */
    private record Statement(String keyword, int arguments, String option, boolean block) {}

    Dialect(int number) {
        random = new Random(number);
        name = "Dialect" + number;
        int count = random.nextInt(LEAST_STATEMENTS, MAX_STATEMENTS);
        for (int i = 0; i < count; i++) {
            statements.add(
                    new Statement(
                            "do" + i,
                            random.nextInt(MAX_ARGUMENTS + 1),
                            random.nextBoolean() ? "with" + i % 7 : null,
                            random.nextInt(3) == 0));
        }
        // Each symbol once alone and once doubled, so that the lexer must look ahead.
        for (String symbol : SYMBOLS) {
            if (precedences.isEmpty() || random.nextBoolean()) {
                precedences.add(new ArrayList<>());
            }
            List<String> level = precedences.get(precedences.size() - 1);
            level.add(symbol);
            level.add(symbol + symbol);
        }
    }

    String name() {
        return name;
    }

    /** In the notation of ANTLR 4. */
    String grammar() {
        StringBuilder text = new StringBuilder("grammar " + name + ";\n\n");
        text.append("program : statement* EOF ;\n\nblock : '{' statement* '}' ;\n\nstatement\n");
        for (int i = 0; i < statements.size(); i++) {
            text.append(i == 0 ? "    : " : "    | ").append("statement").append(i).append('\n');
        }
        text.append("    ;\n\n");
        for (int i = 0; i < statements.size(); i++) {
            text.append("statement").append(i).append(" : ");
            text.append(rule(statements.get(i))).append(" ;\n\n");
        }
        text.append("expression\n    : primary # Leaf\n");
        for (int level = 0; level < precedences.size(); level++) {
            StringJoiner operators = new StringJoiner("' | '", "('", "')");
            precedences.get(level).forEach(operators::add);
            text.append("    | left=expression operator=").append(operators);
            text.append(" right=expression # Level").append(level).append('\n');
        }
        text.append("    ;\n\nprimary : NAME | NUMBER | TEXT | '(' expression ')' | call ;\n\n");
        text.append("call : NAME '[' (expression (',' expression)*)? ']' ;\n\n");
        text.append("NAME : [a-z_] [a-z0-9_]* ;\nNUMBER : [0-9]+ ('.' [0-9]+)? ;\n");
        text.append("TEXT : '\"' (~[\"\\\\] | '\\\\' .)* '\"' ;\nSPACE : [ \\t\\r\\n]+ -> skip ;\n");
        return text.append("COMMENT : '#' ~[\\n]* -> channel(HIDDEN) ;\n").toString();
    }

    private static String rule(Statement statement) {
        StringJoiner parts = new StringJoiner(" ");
        parts.add("'" + statement.keyword() + "'");
        for (int i = 0; i < statement.arguments(); i++) {
            parts.add((i == 0 ? "" : "',' ") + "expression");
        }
        if (statement.option() != null) {
            parts.add("('" + statement.option() + "' NAME '=' expression)?");
        }
        return parts.add(statement.block() ? "block" : "';'").toString();
    }

    /** A program of so many statements, not counting those within others. */
    String program(int length) {
        StringBuilder text = new StringBuilder("# A program in " + name + "\n");
        for (int i = 0; i < length; i++) {
            statement(text, 0);
        }
        return text.toString();
    }

    private void statement(StringBuilder text, int depth) {
        Statement statement = statements.get(random.nextInt(statements.size()));
        if (statement.block() && depth == DEEPEST_BLOCK) {
            return;
        }
        text.append("  ".repeat(depth)).append(statement.keyword());
        for (int i = 0; i < statement.arguments(); i++) {
            text.append(i == 0 ? " " : ", ");
            expression(text, 0);
        }
        if (statement.option() != null && random.nextBoolean()) {
            text.append(' ').append(statement.option()).append(' ').append(word()).append(" = ");
            expression(text, 0);
        }
        if (!statement.block()) {
            text.append(";\n");
            return;
        }
        text.append(" {\n");
        for (int i = random.nextInt(4); i > 0; i--) {
            statement(text, depth + 1);
        }
        text.append("  ".repeat(depth)).append("}\n");
    }

    private void expression(StringBuilder text, int depth) {
        int kind = depth >= DEEPEST_EXPRESSION ? random.nextInt(3) : random.nextInt(8);
        switch (kind) {
            case 0 -> text.append(word());
            case 1 -> text.append(random.nextInt(10_000));
            case 2 -> text.append('"').append(word()).append(" \\\" ").append(word()).append('"');
            case 3 -> {
                text.append('(');
                expression(text, depth + 1);
                text.append(')');
            }
            case 4 -> {
                text.append(word()).append('[');
                expression(text, depth + 1);
                text.append(", ");
                expression(text, depth + 1);
                text.append(']');
            }
            default -> {
                List<String> level = precedences.get(random.nextInt(precedences.size()));
                expression(text, depth + 1);
                text.append(' ').append(level.get(random.nextInt(level.size()))).append(' ');
                expression(text, depth + 1);
            }
        }
    }

    private String word() {
        return "name_" + random.nextInt(500);
    }
}
