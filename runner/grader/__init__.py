"""The judge: a trusted parent that decides, and an untrusted child that runs the kernel."""
