"""`python -m pacbound` runs the command `pacbound`."""

from pacbound.cli import main

if __name__ == "__main__":
    main()
