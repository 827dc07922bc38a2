package rows.pmd;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import net.sourceforge.pmd.PMDConfiguration;
import net.sourceforge.pmd.PmdAnalysis;
import net.sourceforge.pmd.lang.document.FileId;
import net.sourceforge.pmd.lang.java.JavaLanguageModule;
import net.sourceforge.pmd.lang.rule.RuleSet;
import net.sourceforge.pmd.reporting.Report;
import net.sourceforge.pmd.reporting.RuleViolation;
import rows.Checksum;
import rows.Row;
import rows.Settings;
import rows.SourceJar;

/** PMD checks packages of Apache Commons Lang against a fixed list of rules. */
public final class Pmd implements Row {
    private static final String SOURCES = "commons-lang3-3.20.0-sources.jar";

    /** Of the whole, an iteration would take too long. */
    private static final List<String> PACKAGES =
            List.of(
                    "org/apache/commons/lang3/builder/",
                    "org/apache/commons/lang3/reflect/",
                    "org/apache/commons/lang3/time/");

    /** The version of the language that the sources are written in. */
    private static final String LANGUAGE_VERSION = "11";

    /**
     * Rules on the tree, by XPath, on symbols, on data flow and on types; none whose verdict depends on
     * the library of the JDK that runs it.
     */
    private static final List<String> RULES =
            List.of(
                    "category/java/bestpractices.xml/ForLoopCanBeForeach",
                    "category/java/bestpractices.xml/OneDeclarationPerLine",
                    "category/java/bestpractices.xml/UnusedAssignment",
                    "category/java/bestpractices.xml/UnusedFormalParameter",
                    "category/java/bestpractices.xml/UnusedLocalVariable",
                    "category/java/bestpractices.xml/UnusedPrivateMethod",
                    "category/java/codestyle.xml/ConfusingTernary",
                    "category/java/codestyle.xml/UnnecessaryFullyQualifiedName",
                    "category/java/codestyle.xml/UselessParentheses",
                    "category/java/design.xml/CognitiveComplexity",
                    "category/java/design.xml/CyclomaticComplexity",
                    "category/java/design.xml/NPathComplexity",
                    "category/java/design.xml/SimplifyBooleanReturns",
                    "category/java/errorprone.xml/AssignmentInOperand",
                    "category/java/errorprone.xml/EmptyCatchBlock",
                    "category/java/errorprone.xml/ReturnEmptyCollectionRatherThanNull");

    private static final long EXPECTED = 0x435d92f2b12ac39aL;

    private final SortedMap<String, String> sources = new TreeMap<>();

    public Pmd(Settings settings) throws IOException {
        SourceJar.read(settings.inputs().resolve(SOURCES))
                .forEach(
                        (path, text) -> {
                            if (PACKAGES.stream().anyMatch(path::startsWith)) {
                                sources.put(path, text);
                            }
                        });
    }

    /** Rules are many, and each is compiled late. */
    @Override
    public int warmups() {
        return 8;
    }

    @Override
    public int iterations() {
        return 14;
    }

    @Override
    public long operations() {
        return sources.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() {
        Report report = check();
        if (!report.getProcessingErrors().isEmpty()) {
            throw new IllegalStateException(
                    "a file was not checked: " + report.getProcessingErrors().get(0).getDetail());
        }
        Checksum checksum = new Checksum();
        for (RuleViolation violation :
                report.getViolations().stream().sorted(RuleViolation.DEFAULT_COMPARATOR).toList()) {
            checksum.add(violation.getFileId().getOriginalPath());
            checksum.add(violation.getBeginLine());
            checksum.add(violation.getRule().getName());
            checksum.add(violation.getDescription());
        }
        return checksum.value();
    }

    private Report check() {
        PMDConfiguration configuration = new PMDConfiguration();
        // Zero means the calling thread. The allocation of threads that end could not be counted.
        configuration.setThreads(0);
        configuration.setIgnoreIncrementalAnalysis(true);
        configuration.setDefaultLanguageVersion(
                JavaLanguageModule.getInstance().getVersion(LANGUAGE_VERSION));
        try (PmdAnalysis analysis = PmdAnalysis.create(configuration)) {
            for (String rule : RULES) {
                RuleSet rules = analysis.newRuleSetLoader().loadFromResource(rule);
                analysis.addRuleSet(rules);
            }
            for (Map.Entry<String, String> source : sources.entrySet()) {
                analysis.files()
                        .addSourceFile(FileId.fromPathLikeString(source.getKey()), source.getValue());
            }
            return analysis.performAnalysisAndCollectReport();
        }
    }
}
