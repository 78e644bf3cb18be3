"""The command line: each verb in a file of its own, which parses, calls and prints."""

import sys


def main() -> None:
    """Run `pacbound` with the arguments of this process."""
    try:
        # Typer and rich are optional; without them only the remedy is printed.
        from pacbound.cli.app import app  # noqa: PLC0415
    except ImportError as error:
        sys.stderr.write(
            f"The command line needs {error.name}, which is not installed. Run: pip install "
            "'pacbound[cli]'\n"
        )
        sys.exit(2)
    app()
