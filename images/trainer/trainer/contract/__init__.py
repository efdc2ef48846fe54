"""What the host (`cluster_kit/`) and the image (`images/trainer/`) agree on, said once for both.

The standard library only, and nothing of either side. The image has it as `trainer.contract`; on
the host `cluster_kit/contract` is a link to this directory. The tables of the README are made from
it (`make docs`).
"""
