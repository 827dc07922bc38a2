"""Generators and recursion: queens on a board, permutations, primes and knights' ways."""

import itertools
from collections import deque


def queens(size, row=0, columns=(), up=frozenset(), down=frozenset()):
    if row == size:
        yield columns
        return
    for column in range(size):
        if column not in columns and row + column not in up and row - column not in down:
            for board in queens(
                size, row + 1, columns + (column,), up | {row + column}, down | {row - column}
            ):
                yield board


def primes():
    divisors = {}
    for number in itertools.count(2):
        factors = divisors.pop(number, None)
        if factors is None:
            yield number
            divisors[number * number] = [number]
        else:
            for factor in factors:
                divisors.setdefault(number + factor, []).append(factor)


def knight(size, start):
    steps = [(1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)]
    distance = {start: 0}
    waiting = deque([start])
    while waiting:
        x, y = waiting.popleft()
        for dx, dy in steps:
            to = (x + dx, y + dy)
            if 0 <= to[0] < size and 0 <= to[1] < size and to not in distance:
                distance[to] = distance[(x, y)] + 1
                waiting.append(to)
    return distance


def run():
    boards = list(queens(7))
    ordered = sum(1 for p in itertools.permutations(range(7)) if p[0] < p[-1])
    prime = sum(itertools.islice(primes(), 3000))
    ways = knight(60, (0, 0))
    return "%d %r %d %d %d" % (len(boards), boards[-1], ordered, prime, sum(ways.values()))
