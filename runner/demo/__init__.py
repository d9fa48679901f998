"""A scripted model behind both real wires: fixed rules, real kernels, for demos and tests."""
