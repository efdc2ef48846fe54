"""Object detection: SSD on MobileNet, trained in graph mode or by a coordinator.

Input are TFRecords with the Object Detection API's features; see `pipeline` for the configuration.
"""
