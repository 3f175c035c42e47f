"""Two worlds: the whole system runs twice on inputs that differ in one person's events inside one window.

The meter gives the same noisy answers in both, so everything that is seen must be the same, byte for byte; whatever is
not has come around the meter.
"""

from eventide.audit.two_worlds.check import WorldsAgree, WorldsDiffer, check_two_worlds
from eventide.audit.two_worlds.view import Unseen
from eventide.audit.two_worlds.world import Crash, OnlyA, OnlyB, World

__all__ = ["Crash", "OnlyA", "OnlyB", "Unseen", "World", "WorldsAgree", "WorldsDiffer", "check_two_worlds"]
