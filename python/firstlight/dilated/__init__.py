"""Linux hosts in dilated time: this machine's kernel and real programs, on a fabric that is slowed down."""
