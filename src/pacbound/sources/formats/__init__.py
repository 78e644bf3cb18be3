"""The formats of tables in files: what reads, and what writes, each of them."""
