"""The detector: SSD on MobileNetV2, its anchors, loss, weights and post-processing."""
