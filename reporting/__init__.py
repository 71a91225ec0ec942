"""What a run tells its reader: scores, plots, TensorBoard, the live view. Plain numbers in, files out."""
