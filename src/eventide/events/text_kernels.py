"""What kernels that read texts in Arrow's buffers share: which bytes are blanks.

One rule for all of them, so that a text means the same as a name and as a time.
"""

from __future__ import annotations

from eventide.compiling import kernel


@kernel(nogil=True, inline="always")
def trimmed(data, begin, end):  # type: ignore[no-untyped-def]
    """Where a text begins and ends without its outer blanks."""
    while begin < end and data[begin] <= 32:
        begin += 1
    while begin < end and data[end - 1] <= 32:
        end -= 1
    return begin, end
