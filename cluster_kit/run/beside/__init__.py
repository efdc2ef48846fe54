"""What runs beside a job's tasks: TensorBoard, sidecars."""
