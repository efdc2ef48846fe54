"""What runs inside a program's own process, users' programs included.

Standard library only, and nothing of `trainer`: a program may have a package of that name. The
supervisor starts some files by their path; on_path/ is put on a program's PYTHONPATH, and
for_programs/, at its end, on that of users' programs: its modules, which may use TensorFlow, are
theirs to import. Those that the trainer needs as well are imported from here.
"""
