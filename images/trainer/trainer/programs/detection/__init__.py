"""Object detection: SSD on MobileNet, trained in graph mode or by a coordinator.

The input is TFRecords with the features of the Object Detection API; see `pipeline` for the
configuration.
"""
