"""The command line. Commands that certify are made from claims; every other command is a file that
parses, calls and prints.
"""

import gc
import sys

from pacbound.cli.streams import delivered, guarded_streams

_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run `pacbound` with the arguments of this process."""
    # Nearly all that loading makes stays: to search it for garbage again and again takes a tenth of
    # a short command.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with guarded_streams():
        code = delivered(_run())
    sys.exit(code)


def _run() -> int:
    try:
        # Typer, rich and what reads tables are optional; without them only the remedy is printed.
        # What goes wrong once a command runs ends in the command itself.
        from pacbound.cli.app import app  # noqa: PLC0415

        app(prog_name="pacbound")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        # While the command was still being loaded.
        sys.stderr.write("interrupted; nothing was left half-written\n")
        return 130
    except ImportError as error:
        missing = (error.name or "a package").partition(".")[0]
        if missing == "pacbound":
            # Nothing that can be installed helps: this is a bug.
            sys.excepthook(type(error), error, error.__traceback__)
            return 70
        sys.stderr.write(
            f"The command line needs {missing}, which is not installed. Run: pip install "
            "'pacbound[cli]'\n"
        )
        return 2
    return 0
