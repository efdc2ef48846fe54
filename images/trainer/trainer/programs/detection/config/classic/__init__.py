"""The classic `pipeline.config` of the Object Detection API, field by field."""
