//! Asking for memory before it is needed: where the processor cannot foresee an access, the event set can.

/// Brings the cache line at the beginning of `data` nearer. It changes nothing else, and does nothing where the
/// processor is of another kind.
#[inline]
pub(crate) fn prefetch<T>(data: &T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch of any address is a hint, and this one is a reference's.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(data).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}
