"""Sentences that name options of the command line, for whoever calls a function in Python instead."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from eventide.errors import EventideError

Function = TypeVar("Function", bound=Callable[..., Any])
QUOTE = "'"
FLAGS = ("allow-refused", "new-epoch", "new-columns", "take-over", "after-restore", "dry-run", "follow")
_OTHER_NAMES = {"set": "parameters"}
_OF_BOTH = re.compile(r"\(--[a-z-]+, in Python ([^)]*)\)")
_BESIDES = re.compile(r" \(in Python [^)]*\)")
_VALUE = r"'[^']*'|(?=[A-Z0-9%])[\w/%:.-]*[\w/]|(?:wide|long|none)\b|[smun]s?(?=[;.,]|$)"
_OPTION = re.compile(rf"`[^`]*`|(?<![\w/.-])--([a-z]+(?:-[a-z]+)*)(?: ({_VALUE}))?")


def told_in_python(function: Function) -> Function:
    """The same function, whose errors name parameters."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except EventideError as problem:
            if len(problem.args) == 1 and isinstance(problem.args[0], str):
                problem.args = (in_python(problem.args[0]),)
            raise

    return cast("Function", called)


def in_python(sentence: str) -> str:
    """The same with names of parameters; what stands between backticks is a command and stays one.

    >>> in_python("count them with --other; to publish nonetheless, give --allow-refused")
    'count them with other=; to publish nonetheless, give allow_refused=True'
    >>> in_python("such as --zone UTC or --zone Europe/Berlin (in Python zone=)")
    "such as zone='UTC' or zone='Europe/Berlin'"
    >>> in_python("say how they are written (--time-format, in Python time_format=)")
    'say how they are written (time_format=)'
    >>> in_python("give --population 'guests'; make it with `eventide account create --epsilon 1`")
    "give population='guests'; make it with `eventide account create --epsilon 1`"
    >>> in_python("no time that --time-format '%m/%d/%Y' describes")
    "no time that time_format='%m/%d/%Y' describes"
    >>> in_python("these have other columns now: give --new-columns, and leave --layout wide out")
    "these have other columns now: give new_columns=True, and leave layout='wide' out"
    """
    return _OPTION.sub(_parameter, _BESIDES.sub("", _OF_BOTH.sub(r"(\1)", sentence)))


def _parameter(found: re.Match[str]) -> str:
    option, value = found.groups(default="")
    if not option:
        return found[0]
    name = _OTHER_NAMES.get(option, option.replace("-", "_"))
    if option in FLAGS:
        return f"{name}=True"
    return f"{name}={value if not value or value.startswith(QUOTE) else repr(value)}"
