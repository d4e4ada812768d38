"""What the tests of the Docker adapter share: images, sandboxes, a misbehaving engine."""
