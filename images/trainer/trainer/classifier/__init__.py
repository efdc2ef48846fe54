"""The image classifier: class folders, MobileNetV2 or a small CNN, ParameterServerStrategy.

Run as chief (or lone worker) it trains, as evaluator it follows the checkpoints.
"""
