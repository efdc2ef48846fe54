"""Makes the sample set of detection while the image is built: handwritten digits on cluttered
canvases.

python3 -m trainer.programs.detection.scenes DIGITS TARGET
"""
