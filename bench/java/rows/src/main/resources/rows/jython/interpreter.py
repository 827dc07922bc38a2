"""Closures, dictionaries and exceptions: an interpreter of a small Lisp runs programs."""


class Failure(Exception):
    pass


class Scope(dict):
    def __init__(self, names=(), values=(), outer=None):
        dict.__init__(self, zip(names, values))
        self.outer = outer

    def holder(self, name):
        scope = self
        while scope is not None:
            if name in scope:
                return scope
            scope = scope.outer
        raise Failure("nothing is called " + name)


def tokens(text):
    return text.replace("(", " ( ").replace(")", " ) ").split()


def read(words):
    word = words.pop(0)
    if word == "(":
        form = []
        while words[0] != ")":
            form.append(read(words))
        words.pop(0)
        return form
    try:
        return int(word)
    except ValueError:
        return word


def evaluate(form, scope):
    while True:
        if isinstance(form, str):
            return scope.holder(form)[form]
        if not isinstance(form, list):
            return form
        head = form[0]
        if head == "if":
            form = form[2] if evaluate(form[1], scope) else form[3]
        elif head == "define":
            scope[form[1]] = evaluate(form[2], scope)
            return None
        elif head == "lambda":
            return (form[1], form[2], scope)
        else:
            values = [evaluate(part, scope) for part in form]
            function = values[0]
            if isinstance(function, tuple):
                form = function[1]
                scope = Scope(function[0], values[1:], function[2])
            else:
                return function(*values[1:])


def divide(left, right):
    if right == 0:
        raise Failure("division by zero")
    return left // right


BUILT_IN = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": lambda left, right: left % right,
    "<": lambda left, right: left < right,
    "=": lambda left, right: left == right,
    "pair": lambda left, right: (left, right) if right is None else [left, right],
}

PROGRAMS = [
    "(define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))",
    "(fib 15)",
    "(define gcd (lambda (a b) (if (= b 0) a (gcd b (% a b)))))",
    "(define sum (lambda (n total) (if (= n 0) total (sum (- n 1) (+ total (gcd n 360))))))",
    "(sum 700 0)",
    "(define fact (lambda (n) (if (< n 2) 1 (* n (fact (- n 1))))))",
    "(fact 60)",
    "(/ 1 0)",
    "(unknown 1)",
]


def run():
    scope = Scope(BUILT_IN.keys(), BUILT_IN.values())
    results = []
    for program in PROGRAMS:
        try:
            results.append(str(evaluate(read(tokens(program)), scope)))
        except Failure as failure:
            results.append(str(failure))
    return "\n".join(results)
