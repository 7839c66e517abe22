//! Memory of records, kept from one run of a process to its next: the first touch of new memory takes longer than
//! writing records to it.

use super::{Departure, Hop};
use std::sync::Mutex;

/// Bytes that records have room for at first. They take no memory before there are records; a buffer of this size grows
/// by changes of the address space, where the allocator copies a smaller one.
const ROOM: usize = 64 << 20;

/// A larger buffer is not kept.
const MOST: usize = 2 * ROOM;

/// Memory that no run uses.
static SPARE: Mutex<(Vec<Hop>, Vec<Departure>)> = Mutex::new((vec![], vec![]));

/// Memory for the records of a run, without any.
pub(super) fn take() -> (Vec<Hop>, Vec<Departure>) {
    let (hops, departures) = SPARE.lock().map(|mut spare| std::mem::take(&mut *spare)).unwrap_or_default();
    (with_room(hops), with_room(departures))
}

/// Keeps memory that is no longer used.
pub(super) fn keep(hops: Vec<Hop>, departures: Vec<Departure>) {
    if let Ok(mut spare) = SPARE.lock() {
        *spare = (kept(hops), kept(departures));
    }
}

fn with_room<T>(mut records: Vec<T>) -> Vec<T> {
    records.reserve_exact(ROOM / size_of::<T>());
    records
}

fn kept<T>(mut records: Vec<T>) -> Vec<T> {
    records.clear();
    if records.capacity() * size_of::<T>() <= MOST { records } else { vec![] }
}
