"""The pipeline configuration: its sections, its two file formats, what is wrong with one."""
