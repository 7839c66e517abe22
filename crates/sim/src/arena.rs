//! Where packets live: records in one vector, reused through a free list.

use firstlight_net::{Packet, PacketId};

/// The packets inside a fabric, and those that have left it but were not released yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Arena {
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id.index()] = packet;
            return id;
        }
        self.packets.push(packet);
        PacketId((self.packets.len() - 1) as u32)
    }

    #[inline]
    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.index()]
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
