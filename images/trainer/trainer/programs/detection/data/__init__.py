"""TFRecords, label maps, and batches of augmented images with boxes."""
