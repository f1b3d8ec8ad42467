"""Between brokers and the controller."""
