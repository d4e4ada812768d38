"""What the tests of the Docker adapter share: images, the type of a fixture, a misbehaving engine."""
