//! The engine as a kernel in virtual time loads it: a C interface (`linux/kernel/firstlight.h`), and the life of one run
//! behind it.
//!
//! [`firstlight_open`] reads the run's directory and builds the experiment; the kernel then hands in its hosts' packets
//! and the guest program's messages, and at the end the result lies in the directory. Calls come with interrupts off, on
//! a small stack: what is not small goes aside, to a stack of its own ([`aside`](aside::aside)).

// The one crate that is called from C: `abi` says for each call why it is sound, `aside` for the signals it holds back.
#![allow(unsafe_code)]

mod abi;
mod aside;
mod directory;
mod outcome;
mod session;

pub use abi::{ABI, Connection, Engine, Host, NEVER, firstlight_open};
