"""What people look at: a page about certificates, and figures.

`write_report` writes a page about certificates in one HTML file, and needs nothing but numpy and
scipy. Displays hold a figure as data, `figure`, and draw it with matplotlib:

| display | shows |
|---|---|
| `ReliabilityDisplay` | certified intervals, or claimed ones, against accuracy |
| `AlarmDisplay` | false alarms and misses, and the certified thresholds |
| `RecallDisplay` | positives found and rows flagged, and the certified threshold |
| `RiskCoverageDisplay` | wrong answers against rows answered, and the certified threshold |
| `LooksDisplay` | planned looks: what each may show, and when one is likely to pass |
| `PlanDisplay` | what a larger sample would give, estimated from a pilot |
| `EvidenceDisplay` | the evidence of a monitor over its labels, and its alarms |

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings;
`ax=` draws on your own axes. The names stand in `__init__.pyi`.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
