"""The page about certificates: one HTML file that needs nothing else.

| file | holds |
|---|---|
| `writing.py` | `write_report`: from certificates to a page, with style and script inside |
| `entries.py` | what goes on the page, verified |
| `section.py` | what is said about one certificate, its figures and its monitors |
| `markup.py` | HTML that is escaped by construction |

No number is computed here: figures come from the claim of the certificate.
"""
