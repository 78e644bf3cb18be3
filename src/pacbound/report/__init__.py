"""What people look at: a page about certificates, and figures.

`write_report` writes a page about certificates in one HTML file, and needs nothing but numpy and
scipy. `plot` draws a figure by matplotlib: of a certificate, a monitor, a plan, or of what was
claimed for held-out rows. `certificate.plot()` is the same for certificates.

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings;
`ax=` draws on your own axes. The names stand in `__init__.pyi`.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
