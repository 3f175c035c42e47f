"""A function over many inputs, in this process or in several.

A worker that loses its parent, however that ended, ends by itself after the input it is at.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

from eventide.errors import StateError

Input = TypeVar("Input")
Output = TypeVar("Output")


def in_processes(
    function: Callable[[Input], Output], inputs: Iterable[tuple[int, Input]], processes: int
) -> Iterator[tuple[int, Output]]:
    """Numbered inputs to numbered outputs, in the order in which they are ready.

    With more than one process, function, inputs and outputs are sent between them.
    """
    inputs = list(inputs)
    processes = min(processes, len(inputs))
    if processes <= 1:
        yield from ((number, function(given)) for number, given in inputs)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and pyarrow
    workers = {}
    try:
        for number in range(processes):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, function, number == 0), daemon=True)
            worker.start()
            theirs.close()
            workers[ours] = worker
        yield from _shared_out(list(workers), inputs)
    finally:
        for worker in workers.values():
            worker.terminate()
            worker.join()


def _shared_out(workers: list[Connection], inputs: list[tuple[int, Input]]) -> Iterator[tuple[int, Output]]:
    """Hand the next input to whoever has none."""
    waiting = iter(inputs)
    busy = set(workers)
    try:
        for worker in workers:
            worker.send(next(waiting))
        while busy:
            for worker in busy.intersection(multiprocessing.connection.wait(list(busy))):
                number, output, problem = worker.recv()
                if problem is not None:
                    raise problem
                following = next(waiting, None)
                if following is None:
                    busy.remove(worker)
                else:
                    worker.send(following)
                yield number, output
    except (EOFError, ConnectionError):
        raise StateError(
            "a worker process ended, perhaps because memory ran out; finished cells are kept: run the same command "
            "again, with fewer processes"
        ) from None


def _work(inputs: Connection, function: Callable[[Input], Output], logs: bool) -> None:
    """Work; what all workers would log alike, only one of them logs."""
    if not logs:
        logging.getLogger("eventide").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted as well, and ends this process
    try:
        while True:
            number, given = inputs.recv()
            try:
                inputs.send((number, function(given), None))
            except Exception as problem:
                inputs.send((number, None, problem))
    except (EOFError, ConnectionError):
        return  # the parent is gone
