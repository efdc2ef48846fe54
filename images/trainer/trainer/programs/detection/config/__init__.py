"""The pipeline configuration: its sections, its two file formats, and its error messages."""
