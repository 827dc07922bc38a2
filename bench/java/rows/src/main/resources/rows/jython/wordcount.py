"""Dictionaries, sorting, regular expressions and JSON: words of a made-up text are counted."""

import json
import re

WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
SYLLABLES = ["ba", "ko", "ri", "tu", "le", "sa", "mi", "no"]


def numbers(seed):
    """A linear congruential generator (Park and Miller, 1988)."""
    while True:
        seed = seed * 16807 % 2147483647
        yield seed


def text(length):
    words = []
    chance = numbers(42)
    for _ in range(length):
        count = 1 + next(chance) % 3
        word = "".join(SYLLABLES[next(chance) % len(SYLLABLES)] for _ in range(count))
        if next(chance) % 10 == 0:
            word += "-" + SYLLABLES[next(chance) % len(SYLLABLES)]
        words.append(word.capitalize() if next(chance) % 12 == 0 else word)
    return ", ".join(words)


def run():
    counts = {}
    first = {}
    for found in WORD.finditer(text(8000).lower()):
        word = found.group()
        counts[word] = counts.get(word, 0) + 1
        first.setdefault(word, found.start())
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    table = [{"word": word, "count": counts[word], "first": first[word]} for word in ranked[:400]]
    stored = json.dumps(table, sort_keys=True)
    if json.loads(stored) != table:
        raise ValueError("JSON does not come back as it went")
    return stored
