"""From other annotations to TFRecords: `python3 -m trainer.detection.convert coco|voc --help`."""
