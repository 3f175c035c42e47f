"""Words of a command line: usual options, with those of one test in their place."""

from __future__ import annotations

SEVERAL = {"--statistic", "--between", "--edges", "--set", "--webhook"}  # may be repeated


def with_last(*words):
    """The words, but of an option that takes one value and is given several times only the last."""
    words = [str(word) for word in words]
    kept = list(words)
    for place in reversed(range(len(words))):
        word = words[place]
        if word.startswith("--") and word not in SEVERAL and word in words[place + 1 :]:
            del kept[place : place + 2]
    return kept
