"""Certificates: claims that carry the counts they follow from, so that anyone can verify them
without the data.
"""

from pacbound.certificate.applying import AppliedRows
from pacbound.certificate.batch import BatchCertificate
from pacbound.certificate.budget import Budget
from pacbound.certificate.bundle import CertificateBundle, SeveralClaims, certify_together
from pacbound.certificate.document import Certificate, Provenance, Verification
from pacbound.certificate.files import load_certificate

__all__ = [
    "AppliedRows",
    "BatchCertificate",
    "Budget",
    "Certificate",
    "CertificateBundle",
    "Provenance",
    "SeveralClaims",
    "Verification",
    "certify_together",
    "load_certificate",
]
