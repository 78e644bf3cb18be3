"""Sources open rows and deliver them. They know nothing of what rows are counted for.

A source delivers rows that stay in an engine, as a frame, or rows in batches, and names files by
what is in them. `opening` opens tables, `batches` says what a source delivers, `paths` which files
are meant, `notation` how values are written, `fingerprints` what is in a file.
"""
