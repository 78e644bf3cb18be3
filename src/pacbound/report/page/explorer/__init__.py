"""What the library would decide from the counts of a certificate at other values of xi and delta.

| file | holds |
|---|---|
| `grid.py` | which values are tried, so that it takes seconds, and what was found at each |
| `readings.py` | what is decided at one pair of values, for each kind of certificate |
| `cascades.py` | the same for cascades, whose certificates do not keep every count |

Nothing of it is certified: xi and delta must be fixed before labels are seen. The procedures decide
again, from the counts that the certificate holds, and nothing here knows any statistics.
"""
