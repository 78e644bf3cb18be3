"""Calibration: intervals for the true confidence of predictions, the faces they are reached by, and
the metrics around them.
"""
