"""The classifier's images: files on disk, and batches of tensors."""
