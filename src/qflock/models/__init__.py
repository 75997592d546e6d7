"""Ready models and their data, each an example of the public interface."""
