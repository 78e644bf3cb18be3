"""The command line: each verb in a file of its own, which parses, calls and prints."""

import sys


def main() -> None:
    """Run `pacbound` with the arguments of this process."""
    try:
        # Typer, rich and what reads tables are optional; without them only the remedy is printed.
        # What goes wrong once a command runs ends in the command itself.
        from pacbound.cli.app import app  # noqa: PLC0415

        app(prog_name="pacbound")
    except KeyboardInterrupt:
        # While the command was still being loaded.
        sys.stderr.write("interrupted; nothing was left half-written\n")
        sys.exit(130)
    except ImportError as error:
        missing = (error.name or "a package").partition(".")[0]
        if missing == "pacbound":
            # Nothing that can be installed helps: this is a bug.
            sys.excepthook(type(error), error, error.__traceback__)
            sys.exit(70)
        sys.stderr.write(
            f"The command line needs {missing}, which is not installed. Run: pip install "
            "'pacbound[cli]'\n"
        )
        sys.exit(2)
