//! Where packets live: records in one vector, reused through a free list.

use firstlight_net::{Packet, PacketId};

/// The packets inside a fabric, and those that have left it but were not released yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Arena {
    /// A place for a packet, to be written there: what it holds is an old one.
    #[inline]
    pub(crate) fn reserve(&mut self) -> PacketId {
        self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            PacketId((self.packets.len() - 1) as u32)
        })
    }

    #[inline]
    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.index()]
    }

    /// A packet that may be needed soon, if there is one of that number.
    #[inline]
    pub(crate) fn peek(&self, id: PacketId) -> Option<&Packet> {
        self.packets.get(id.index())
    }

    #[inline]
    pub(crate) fn release(&mut self, id: PacketId) {
        debug_assert!(!self.free.contains(&id), "packet {id:?} is released once");
        self.free.push(id);
    }

    /// Packets that are not free.
    pub(crate) fn live(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }
}
