"""`python -m eventide` is the command `eventide`."""

from eventide.cli import main

if __name__ == "__main__":
    main()
