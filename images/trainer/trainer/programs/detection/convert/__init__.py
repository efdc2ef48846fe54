"""Converts annotations to TFRecords: python3 -m trainer.programs.detection.convert --help."""
