"""The public names of the reports, each with the module that it lives in."""

from pacbound.report.certificates import AlarmDisplay as AlarmDisplay
from pacbound.report.certificates import RecallDisplay as RecallDisplay
from pacbound.report.certificates import RiskCoverageDisplay as RiskCoverageDisplay
from pacbound.report.confidence import AccuracyConfidenceDisplay as AccuracyConfidenceDisplay
from pacbound.report.confidence import ReliabilityDisplay as ReliabilityDisplay
from pacbound.report.evidence import EvidenceDisplay as EvidenceDisplay
from pacbound.report.methods import DesiredAchievedDisplay as DesiredAchievedDisplay
from pacbound.report.methods import DesiredSafetyDisplay as DesiredSafetyDisplay
from pacbound.report.methods import ErrorCostDisplay as ErrorCostDisplay
from pacbound.report.methods import MethodOptions as MethodOptions
from pacbound.report.methods import SuccessSafetyDisplay as SuccessSafetyDisplay
from pacbound.report.page.writing import ReportedCertificate as ReportedCertificate
from pacbound.report.page.writing import WrittenReport as WrittenReport
from pacbound.report.page.writing import write_report as write_report
from pacbound.report.plans import LooksDisplay as LooksDisplay
from pacbound.report.plans import PlanDisplay as PlanDisplay
from pacbound.report.rollout_paths import Drive as Drive
from pacbound.report.rollout_paths import FloorPlan as FloorPlan
from pacbound.report.rollout_paths import RolloutDisplay as RolloutDisplay
from pacbound.report.rollout_paths import Shape as Shape
