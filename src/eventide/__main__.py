"""`python -m eventide` is the command `eventide`.

Promises the same exit codes. Imports `cli` and nothing else.
"""

from eventide.cli import main

if __name__ == "__main__":
    main()
