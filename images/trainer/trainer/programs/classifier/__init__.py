"""The image classifier: class folders, MobileNetV2 or a small CNN, by every way of training.

Run as chief or worker it trains (see mode.py for who does what), as evaluator it follows the
checkpoints.
"""
