"""Real Linux hosts: kernels in virtual time, how they are built, kept and run."""
