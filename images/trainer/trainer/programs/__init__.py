"""The built-in programs, each in its package: `run NAME` starts `trainer.programs.NAME`."""
