"""Linux hosts: kernels in virtual time, how they are built, stored and run."""
