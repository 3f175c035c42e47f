"""State that can be saved at any step: a class names its mutable fields once, in `state`.

Promises that `restore(snapshot())` continues exactly; the saved form is plain data (numbers, strings, arrays, nested
dictionaries), never code.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from eventide.errors import StateError


class Stateful:
    """Something whose mutable fields are listed in `state`; fields of base classes are included.

    A field may be a dictionary of such things, with the same keys for ever.
    """

    __slots__ = ()
    state: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        """A copy of the state as plain data."""
        return {name: _plain(getattr(self, name)) for name in self._state_names()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Take over a state that `snapshot` gave."""
        if set(snapshot) != set(self._state_names()):
            raise StateError(f"the saved state does not fit {type(self).__name__}; it is damaged or of another version")
        for name, saved in snapshot.items():
            held = getattr(self, name)
            if hasattr(held, "restore"):
                held.restore(saved)
            elif isinstance(held, dict) and any(hasattr(part, "restore") for part in held.values()):
                for key, part in held.items():
                    part.restore(saved[key])
            else:
                setattr(self, name, _plain(saved))

    def _state_names(self) -> list[str]:
        return [name for cls in reversed(type(self).__mro__) for name in vars(cls).get("state", ())]


def _plain(value: Any) -> Any:
    if hasattr(value, "snapshot"):
        return value.snapshot()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
