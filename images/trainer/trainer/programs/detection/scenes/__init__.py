"""Build time: the detection sample set, handwritten digits on cluttered canvases.

python3 -m trainer.programs.detection.scenes DIGITS TARGET
"""
