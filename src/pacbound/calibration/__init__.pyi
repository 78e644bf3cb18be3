from pacbound.calibration.calibrator import PACCalibrator as PACCalibrator
from pacbound.calibration.metrics import expected_calibration_error as expected_calibration_error
from pacbound.calibration.metrics import induced_calibration_error as induced_calibration_error

__all__: list[str]
