//! A first-in first-out queue in a ring whose size is a power of two; it grows when full and never shrinks.

/// The queue. Counters wrap; the mask brings them back into the ring.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Box<[T]>,
    first: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// An empty ring with room for `capacity` items (rounded up to a power of two) before it first grows.
    pub fn with_capacity(capacity: usize) -> Self {
        Ring { slots: vec![T::default(); capacity.next_power_of_two()].into(), first: 0, len: 0 }
    }

    /// How many items wait.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// True when none waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn index(&self, nth: u32) -> usize {
        self.first.wrapping_add(nth) as usize & (self.slots.len() - 1)
    }

    /// Adds an item at the tail.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.len);
        self.slots[index] = item;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let items: Vec<T> = self.iter().collect();
        let mut slots = vec![T::default(); self.slots.len() * 2];
        slots[..items.len()].copy_from_slice(&items);
        self.slots = slots.into();
        self.first = 0;
    }

    /// Takes the item at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.front()?;
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(item)
    }

    /// Takes the item at the tail.
    pub fn pop_back(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        Some(self.slots[self.index(self.len)])
    }

    /// The item at the head.
    #[inline]
    pub fn front(&self) -> Option<T> {
        if self.is_empty() { None } else { Some(self.slots[self.index(0)]) }
    }

    /// The item at the head; if the ring is empty, the last item that was at the head.
    #[inline]
    pub fn head(&self) -> &T {
        &self.slots[self.index(0)]
    }

    /// The `nth` item counted from the head.
    ///
    /// # Panics
    /// When fewer items wait.
    #[inline]
    pub fn get(&self, nth: u32) -> T {
        assert!(nth < self.len, "item {nth} of a ring that holds {}", self.len);
        self.slots[self.index(nth)]
    }

    /// All items from head to tail.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|nth| self.slots[self.index(nth)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_as_a_deque(ops in prop::collection::vec(0u32..5, 0..200), capacity in 1usize..9) {
            let mut ring = Ring::with_capacity(capacity);
            let mut model = VecDeque::new();
            for (value, op) in ops.into_iter().enumerate() {
                match op {
                    0 => prop_assert_eq!(ring.pop(), model.pop_front()),
                    1 => prop_assert_eq!(ring.pop_back(), model.pop_back()),
                    _ => {
                        ring.push(value);
                        model.push_back(value);
                    }
                }
                prop_assert_eq!(ring.front(), model.front().copied());
                prop_assert_eq!(ring.iter().collect::<VecDeque<_>>(), model.clone());
            }
        }
    }
}
