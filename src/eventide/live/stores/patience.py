"""What a writer does while its store cannot be used: waits and asks again, or not.

Waiting costs nobody's privacy. What is asked again is what was asked before: a step that was drawn is written with the
same bytes until it is durable, and is never drawn a second time for that. So what is published does not depend on which
attempts failed, and though a disk may be full for one more digit, that tells only of a value that is charged and comes
out in the end. If whoever waits is told to stop, the draw is discarded with the process, as after a crash: nothing of
it was visible, and nobody looked at it to decide whether to stop.
"""

from __future__ import annotations

from eventide.live.stores.database import Unavailable


class Patience:
    """None: the fault is raised at once, for whoever can start again."""

    looks = False
    """Whether a server that goes away is to be missed at once, and not only when it is needed."""

    def lost(self) -> None:
        """Called when a server went away; the database waits for it a while by itself."""

    def wait(self, fault: Unavailable) -> None:
        """Return when it is time to ask again, or raise the fault."""
        raise fault

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any longer, not even for a server that may be back in a moment."""
        return False

    def healed(self) -> None:
        """Called whenever the store did what it was asked."""
