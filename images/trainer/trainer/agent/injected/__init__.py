"""Code that runs in the process of a program, including users' programs.

It uses only the standard library and nothing of `trainer`: a program can have a package of that
name. The supervisor starts some files by their path. on_path/ is put on a program's PYTHONPATH;
for_programs/ is put at the end of the PYTHONPATH of users' programs, which can import its modules.
The trainer itself imports the modules that it needs from here, too.
"""
