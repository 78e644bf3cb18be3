"""The public names of the reports, each with the module that it lives in."""

from pacbound.report.certificates import AlarmDisplay as AlarmDisplay
from pacbound.report.certificates import RecallDisplay as RecallDisplay
from pacbound.report.certificates import RiskCoverageDisplay as RiskCoverageDisplay
from pacbound.report.confidence import ReliabilityDisplay as ReliabilityDisplay
from pacbound.report.evidence import EvidenceDisplay as EvidenceDisplay
from pacbound.report.page.writing import ReportedCertificate as ReportedCertificate
from pacbound.report.page.writing import WrittenReport as WrittenReport
from pacbound.report.page.writing import write_report as write_report
from pacbound.report.plans import LooksDisplay as LooksDisplay
from pacbound.report.plans import PlanDisplay as PlanDisplay
