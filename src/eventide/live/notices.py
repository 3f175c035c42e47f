"""What an operator is told once and need not act on: shown also where only warnings are, with no number of events."""

from __future__ import annotations

import logging

NOTICES = logging.getLogger("eventide.live.notices")
