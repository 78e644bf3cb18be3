"""What people look at: a page about certificates, and figures.

`write_report` writes a page about certificates in one HTML file, and needs nothing but numpy and
scipy. Displays hold a figure as data, `figure`, and draw it with matplotlib:

| display | shows |
|---|---|
| `ReliabilityDisplay` | certified intervals, or claimed ones, against accuracy |
| `AccuracyConfidenceDisplay` | accuracy and coverage above a threshold |
| `AlarmDisplay` | false alarms and misses, and the certified thresholds |
| `RecallDisplay` | positives found and rows flagged, and the certified threshold |
| `RiskCoverageDisplay` | wrong answers against rows answered, and the certified threshold |
| `ErrorCostDisplay` | error against cost of cascades, and the error that was asked for |
| `DesiredAchievedDisplay` | the error increase allowed, and the one that test rows showed |
| `SuccessSafetyDisplay` | success against safety of shields, and the safety that was asked for |
| `DesiredSafetyDisplay` | the safety that was asked for, and the one that test rollouts showed |
| `LooksDisplay` | planned looks: what each may show, and when one is likely to pass |
| `PlanDisplay` | what a larger sample would give, estimated from a pilot |
| `EvidenceDisplay` | the evidence of a monitor over its labels, and its alarms |
| `RolloutDisplay` | rollouts from above, with the shield off and on |

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings;
`ax=` draws on your own axes.
"""

from pacbound.report.certificates import AlarmDisplay, RecallDisplay, RiskCoverageDisplay
from pacbound.report.confidence import AccuracyConfidenceDisplay, ReliabilityDisplay
from pacbound.report.evidence import EvidenceDisplay
from pacbound.report.methods import (
    DesiredAchievedDisplay,
    DesiredSafetyDisplay,
    ErrorCostDisplay,
    SuccessSafetyDisplay,
)
from pacbound.report.page.writing import ReportedCertificate, WrittenReport, write_report
from pacbound.report.plans import LooksDisplay, PlanDisplay
from pacbound.report.rollout_paths import Drive, FloorPlan, RolloutDisplay, Shape

__all__ = [
    "AccuracyConfidenceDisplay",
    "AlarmDisplay",
    "DesiredAchievedDisplay",
    "DesiredSafetyDisplay",
    "Drive",
    "ErrorCostDisplay",
    "EvidenceDisplay",
    "FloorPlan",
    "LooksDisplay",
    "PlanDisplay",
    "RecallDisplay",
    "ReliabilityDisplay",
    "ReportedCertificate",
    "RiskCoverageDisplay",
    "RolloutDisplay",
    "Shape",
    "SuccessSafetyDisplay",
    "WrittenReport",
    "write_report",
]
