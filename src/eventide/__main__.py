"""`python -m eventide` is the command `eventide`, with the same exit codes."""

from eventide.cli import main

if __name__ == "__main__":
    main()
