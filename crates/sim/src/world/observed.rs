//! External hosts whose packets are followed: what happens at their endpoints is recorded, so that it is known what
//! released each packet.

use super::World;
use firstlight_net::{FlowTuple, HostId, Packet, PacketId};

impl World {
    /// From now on it is recorded what releases the packets of external hosts. They must be in virtual time.
    /// `processors`: computing takes time on them.
    pub fn follow_external_hosts(&mut self, processors: bool) {
        self.follows = true;
        if let Some(causes) = self.fabric.causes().filter(|_| processors) {
            causes.give_processors();
        }
    }

    /// Whether writes of external hosts' programs have to be reported ([`World::on_program_write`]).
    pub fn records_writes(&self) -> bool {
        self.follows || self.fabric.records_writes()
    }

    /// A program on an external host begins to write `bytes` to its connection, or ends a write that was shorter: see
    /// [`crate::Fabric::on_program_write`].
    pub fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        if self.fabric.records_writes() {
            self.fabric.on_program_write(connection, sequence, bytes);
        }
        if let Some(endpoint) = self.followed(connection.src, connection.sport)
            && let Some(causes) = self.fabric.causes()
        {
            causes.on_external_write(endpoint, sequence, bytes);
        }
    }

    /// A program's connection on an external host is over.
    pub fn on_program_close(&mut self, connection: FlowTuple) {
        if self.fabric.records_writes() {
            self.fabric.on_program_close(connection);
        }
    }

    /// The endpoint of an external flow at this port of a host, if external hosts are followed.
    fn followed(&self, host: HostId, port: u16) -> Option<usize> {
        if !self.follows {
            return None;
        }
        let endpoint = self.endpoints.at(host, port)?;
        self.flows[self.endpoints.flow_at(endpoint)].config.external.then_some(endpoint)
    }

    /// An external host is about to hand in a packet.
    #[cold]
    pub(super) fn follow_departure(&mut self, packet: &Packet) {
        let endpoint = self.followed(packet.src(), packet.sport());
        let flow = endpoint.map(|endpoint| &self.flows[self.endpoints.flow_at(endpoint)].config);
        let Some(causes) = self.fabric.causes() else { return };
        match endpoint.zip(flow) {
            Some((endpoint, flow)) => causes.on_external(endpoint, packet, self.now, flow),
            None => causes.on_other(),
        }
    }

    /// An external host has handed in a packet: notes when it leaves the interface, where that is known.
    #[cold]
    pub(super) fn follow_leaving(&mut self, packet: &Packet) {
        if let Some(at) = self.fabric.departure(packet.src())
            && let Some(endpoint) = self.followed(packet.src(), packet.sport())
            && let Some(causes) = self.fabric.causes()
        {
            causes.on_external_leaving(endpoint, at);
        }
    }

    /// A packet has left its interface, of an external host or not.
    #[cold]
    pub(super) fn follow_sent(&mut self, id: PacketId) {
        let packet = self.fabric.packet(id);
        if let Some(endpoint) = self.followed(packet.src(), packet.sport())
            && let Some(causes) = self.fabric.causes()
        {
            causes.on_external_leaving(endpoint, self.now);
        }
    }

    /// A packet has arrived at a host, external or not.
    #[cold]
    pub(super) fn follow_arrival(&mut self, id: PacketId, host: HostId) {
        let packet = *self.fabric.packet(id);
        if let Some(endpoint) = self.followed(host, packet.dport())
            && let Some(causes) = self.fabric.causes()
        {
            causes.on_external_arrival(endpoint, id, &packet, self.now);
        }
    }

    /// The interface of an external host has room again.
    #[cold]
    pub(super) fn follow_room(&mut self, host: HostId) {
        if let Some(causes) = self.fabric.causes() {
            causes.on_external_room(host, self.now);
        }
    }

    /// The receiver of an external flow has all bytes of the flow, or of a message.
    #[cold]
    pub(super) fn follow_delivery(&mut self, flow: usize) {
        let receiver = self.endpoints.of_flows[flow][1];
        if let Some(causes) = self.fabric.causes() {
            causes.on_delivery(receiver, flow, 0, self.now);
        }
    }
}
