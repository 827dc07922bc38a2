package curves;

/** The kinds of work, by their names and arguments. */
final class Works {
    private Works() {}

    static Work named(String name, String[] args, int first) throws Exception {
        switch (name) {
            case "churn":
                return new Churn(number(args, first), number(args, first + 1));
            case "chain":
                return new Deep(number(args, first), number(args, first + 1), number(args, first + 2));
            case "threads":
                return new Crowd(number(args, first), number(args, first + 1), number(args, first + 2));
            case "held":
                return new Held(number(args, first), number(args, first + 1), number(args, first + 2));
            case "services":
                return new Services(
                        number(args, first), number(args, first + 1), number(args, first + 2));
            default:
                throw new IllegalArgumentException("no work is called " + name);
        }
    }

    private static int number(String[] args, int index) {
        return Integer.parseInt(args[index]);
    }
}
