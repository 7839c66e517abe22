//! A large stack for work that needs more than the kernel's stack.
//!
//! The stack belongs to a thread that lives for one call while the caller waits. The kernel's clock and interrupts are
//! signals, which the kernel handles on its own stacks: the thread blocks them. The thread must not call the kernel.

use std::io;
use std::mem::MaybeUninit;

/// Size of the stack in bytes.
const STACK: usize = 8 << 20;
/// Name of the thread.
const NAME: &str = "firstlight";

/// Does `work` on a large stack and waits for it.
///
/// # Errors
/// When the system cannot start a thread.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let before = block_signals();
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(STACK).spawn_scoped(scope, work)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    });
    restore_signals(&before);
    result
}

/// Whether the caller runs on a large stack.
pub(crate) fn is_on_large_stack() -> bool {
    std::thread::current().name() == Some(NAME)
}

fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset fills `all`, and pthread_sigmask fills `before`: it fails only for an unknown first argument.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: `before` is a set that pthread_sigmask has filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_a_large_stack_and_returns_its_result() {
        let deep = || {
            let large = [1u8; 4 << 20];
            (std::hint::black_box(&large).iter().map(|byte| usize::from(*byte)).sum::<usize>(), is_on_large_stack())
        };
        assert_eq!(on_large_stack(deep).unwrap(), (4 << 20, true));
        assert!(!is_on_large_stack());
    }
}
