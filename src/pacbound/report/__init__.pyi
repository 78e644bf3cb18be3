"""The public names of the reports, each with the module that it lives in."""

from pacbound.report.page.entries import ReportedCertificate as ReportedCertificate
from pacbound.report.page.writing import WrittenReport as WrittenReport
from pacbound.report.page.writing import write_report as write_report
from pacbound.report.plotting import plot as plot
