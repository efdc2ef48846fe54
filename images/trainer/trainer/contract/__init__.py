"""Defines what the host (`cluster_kit/`) and the image (`images/trainer/`) agree on.

It imports only the standard library. The image has it as `trainer.contract`; on
the host `cluster_kit/contract` is a link to this directory. The tables of the README are made from
it (`make docs`).
"""
