"""The public names, each with the module that it lives in. This is the only list of them: the
package reads it to know what there is, and loads a name when it is first used.
"""

from pacbound.calibration.calibrator import PACCalibrator as PACCalibrator
from pacbound.cascade import AsyncCascade as AsyncCascade
from pacbound.cascade import BatchStep as BatchStep
from pacbound.cascade import Cascade as Cascade
from pacbound.cascade import answer_batch as answer_batch
from pacbound.cascade import answer_batch_async as answer_batch_async
from pacbound.cascade import batch_step as batch_step
from pacbound.cascade import certified_cost as certified_cost
from pacbound.cascade import design_cascade as design_cascade
from pacbound.cascade import rows_to_label as rows_to_label
from pacbound.claims.abstention import certify_abstention as certify_abstention
from pacbound.claims.bundle import certify_together as certify_together
from pacbound.claims.calibration import calibrate as calibrate
from pacbound.claims.cascade import certify_cascade as certify_cascade
from pacbound.claims.certificate import Certificate as Certificate
from pacbound.claims.certificate import load_certificate as load_certificate
from pacbound.claims.false_alarms import certify_false_alarms as certify_false_alarms
from pacbound.claims.forks import certify_forks as certify_forks
from pacbound.claims.judge import certify_judge as certify_judge
from pacbound.claims.pass_rate import certify_rate as certify_rate
from pacbound.claims.precision import certify_precision as certify_precision
from pacbound.claims.recall import certify_recall as certify_recall
from pacbound.claims.replacement import certify_replacement as certify_replacement
from pacbound.claims.sets import certify_sets as certify_sets
from pacbound.claims.shield import certify_shield as certify_shield
from pacbound.errors import PacboundError as PacboundError
from pacbound.estimators import PACClassifier as PACClassifier
from pacbound.estimators import SelectiveClassifier as SelectiveClassifier
from pacbound.monitor import Monitor as Monitor
from pacbound.planning import plan_from_pilot as plan_from_pilot
from pacbound.shield import Shield as Shield
from pacbound.stats.binomial import binomial_interval as binomial_interval
from pacbound.stats.binomial import binomial_lower as binomial_lower
from pacbound.stats.binomial import binomial_upper as binomial_upper
from pacbound.stats.looks import planned_looks as planned_looks
from pacbound.stats.planning import trials_needed as trials_needed
from pacbound.tally import Tally as Tally

__all__: list[str]
__version__: str
