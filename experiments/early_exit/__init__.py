"""A public ResNet-56 for CIFAR-10: that its weights load as published, and early heads trained on
it."""
