"""A network with one early exit, trained on Fashion-MNIST; its held-out predictions are the table
that pacbound ships."""
