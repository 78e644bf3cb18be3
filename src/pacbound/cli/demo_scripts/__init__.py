"""What `pacbound demo` runs beside commands: short scripts, which it writes beside the data."""
