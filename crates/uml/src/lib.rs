//! The engine as a kernel in virtual time loads it: a C interface (`linux/kernel/firstlight.h`) to one run.
//!
//! [`firstlight_open`] reads the run's directory and builds the experiment. The kernel then hands in its hosts' packets
//! ([`KernelDriver`]) and the guest program's messages. At the end the result is in the directory. The kernel calls
//! with interrupts off, on a small stack: work that needs more gets a stack of its own
//! ([`on_large_stack`](large_stack::on_large_stack)). Hosts in dilated time use the same [`Session`] with the machine's
//! kernel.

// Called from C: each function says why it is sound.
#[allow(unsafe_code)]
mod abi;
mod directory;
mod driver;
mod flow_state;
mod frame;
// Blocks signals.
#[allow(unsafe_code)]
mod large_stack;
mod outcome;
mod session;

pub use abi::{ABI, AbiConnection, AbiEngine, AbiHost, AbiProcessors, NEVER, firstlight_open};
pub use directory::{RunDirectory, SessionError};
pub use driver::{CE, Cookie, Device, ECE, KernelCalls, KernelDriver};
pub use session::{RefusedMessage, Session};
