//! The engine as a kernel in virtual time loads it: a C interface (`linux/kernel/firstlight.h`), and the life of one run
//! behind it.
//!
//! [`firstlight_open`] reads the run's directory and builds the experiment; the kernel then hands in its hosts' packets
//! and the guest program's messages, and at the end the result lies in the directory. Calls come with interrupts off, on
//! a small stack: what is not small goes aside, to a stack of its own ([`aside`](aside::aside)).

// Called from C: each call says why it is sound.
#[allow(unsafe_code)]
mod abi;
// Holds signals back.
#[allow(unsafe_code)]
mod aside;
mod directory;
mod driver;
mod flow_state;
mod outcome;
mod session;
mod wire;

pub use abi::{ABI, Connection, Engine, Host, NEVER, firstlight_open};
pub use driver::{CE, Cookie, Device, Driver, ECE, Kernel};
