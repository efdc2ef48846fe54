"""Scoring the detector: mAP, drawings, and the evaluator that follows the checkpoints."""
