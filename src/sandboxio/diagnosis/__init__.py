"""What `sandboxio doctor` finds out: versions, installed backends, and whether each one works.

The values are in `report`, finding them out in `examination`, and what is kept out of them in
`privacy`.
"""

from sandboxio.diagnosis.examination import checks_of, doctor, examine
from sandboxio.diagnosis.report import BackendReport, Check, DoctorReport

__all__ = ["BackendReport", "Check", "DoctorReport", "checks_of", "doctor", "examine"]
