"""The built-in programs, one package each: `run NAME` starts `trainer.programs.NAME`."""
