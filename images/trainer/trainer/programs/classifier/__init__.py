"""An image classifier on folders of images: MobileNetV2 or a small CNN, with every strategy.

As chief or worker the program trains (see mode.py for what each task does); as evaluator it scores
the checkpoints.
"""
