//! A large stack for work that would not fit on the kernel's.
//!
//! It is a thread's, which lives for this one call while the caller waits. Signals are the kernel's clock and its
//! interrupts, handled on its own stacks: the thread takes none. The caller's kernel must not be called from there.

use std::io;
use std::mem::MaybeUninit;

const STACK: usize = 8 << 20;
const NAME: &str = "firstlight aside";

/// Does `work` on a large stack and waits for it.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let before = block_signals();
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(STACK).spawn_scoped(scope, work)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    });
    restore_signals(&before);
    result
}

/// Whether the caller is such work.
pub(crate) fn is_aside() -> bool {
    std::thread::current().name() == Some(NAME)
}

fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset fills `all`, and pthread_sigmask, which fails only for an unknown first argument, `before`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: `before` is a set that pthread_sigmask gave.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_its_own_stack_and_its_result_comes_back() {
        let deep = || {
            let large = [1u8; 4 << 20];
            (std::hint::black_box(&large).iter().map(|byte| usize::from(*byte)).sum::<usize>(), is_aside())
        };
        assert_eq!(aside(deep).unwrap(), (4 << 20, true));
        assert!(!is_aside());
    }
}
