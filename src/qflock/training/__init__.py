"""The training loop on `tf.distribute`, run directories, checkpoints and metrics."""
