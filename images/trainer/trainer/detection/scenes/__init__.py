"""Build time: the detection sample set, handwritten digits on cluttered canvases.

python3 -m trainer.detection.scenes DIGITS TARGET
"""
