"""Arithmetic on lists: matrices are multiplied exactly, in whole numbers and in fractions."""

from fractions import Fraction


def product(left, right):
    columns = zip(*right)
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def solve(matrix, right):
    """Gauss's elimination, in fractions."""
    rows = [[Fraction(x) for x in row] + [Fraction(y)] for row, y in zip(matrix, right)]
    size = len(rows)
    for at in range(size):
        pivot = [row for row in range(at, size) if rows[row][at] != 0][0]
        rows[at], rows[pivot] = rows[pivot], rows[at]
        first = rows[at][at]
        rows[at] = [x / first for x in rows[at]]
        for other in range(size):
            if other != at and rows[other][at] != 0:
                factor = rows[other][at]
                rows[other] = [x - factor * y for x, y in zip(rows[other], rows[at])]
    return [row[-1] for row in rows]


def run():
    size = 28
    matrix = [[(i * 7 + j * 11) % 13 - 6 for j in range(size)] for i in range(size)]
    power = matrix
    for _ in range(5):
        power = product(power, matrix)
    small = [[1 + (i * i + j * 3) % 7 + (i == j) * 11 for j in range(9)] for i in range(9)]
    answer = solve(small, range(9))
    check = [sum(a * x for a, x in zip(row, answer)) for row in small]
    if check != range(9):
        raise ValueError("the equations are not solved: %r" % check)
    return "%d %s" % (sum(map(sum, power)), " ".join(map(str, answer)))
