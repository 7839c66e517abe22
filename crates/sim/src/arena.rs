//! Where packets live: records in one vector, reused through a free list.

use firstlight_net::{Packet, PacketId};

/// The packets inside a fabric, and those that have left it but were not released yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Arena {
    /// A free record for a new packet, which the caller writes there and then takes. It still holds an old packet.
    #[inline]
    pub(crate) fn spare(&mut self) -> PacketId {
        match self.free.last() {
            Some(id) => *id,
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> PacketId {
        let id = PacketId(self.packets.len() as u32);
        self.packets.push(Packet::default());
        self.free.push(id);
        id
    }

    /// The place that was spare is taken.
    #[inline]
    pub(crate) fn take(&mut self, id: PacketId) {
        debug_assert!(self.free.last() == Some(&id), "packet {id:?} is taken while it is spare");
        self.free.pop();
    }

    #[inline]
    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.index()]
    }

    /// The packet of that number, if there is one, as a hint for the processor's cache: it may be needed soon.
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
