//! A transmitter and the link behind it, for senders that choose their next packet when the transmitter comes free.

use crate::{PacketId, Ring, Serializer};
use firstlight_units::{Span, Time};

/// A packet in flight on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flight {
    /// When the packet arrives at the far end.
    pub(crate) arrives: Time,
    /// The packet.
    pub(crate) id: PacketId,
}

/// The transmitter and its link. One event is pending for all packets in flight: the first packet's arrival.
#[derive(Clone, Debug)]
pub struct Line {
    free: Time,
    serializer: Serializer,
    delay: Span,
    flights: Ring<Flight>,
    sent: u64,
    arrived: u64,
}

impl Line {
    /// A line with this serialization and this (already stretched) propagation delay.
    pub fn new(serializer: Serializer, delay: Span) -> Self {
        Line { free: Time::ZERO, serializer, delay, flights: Ring::with_capacity(16), sent: 0, arrived: 0 }
    }

    /// How long packets last on the line, and from there to the far end.
    pub fn link(&self) -> (Serializer, Span) {
        (self.serializer, self.delay)
    }

    /// When the transmitter becomes free, or became free.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free
    }

    /// When a packet of `bytes` that starts at `now`, or as soon as the transmitter is free, has been serialized.
    #[inline]
    pub fn end_of(&self, bytes: u16, now: Time) -> Time {
        self.free.max(now) + self.serializer.time(bytes)
    }

    /// Sends a packet at `now`. Returns its arrival when no other is in flight: the caller then schedules it.
    ///
    /// # Panics
    /// When the transmitter is busy.
    #[inline]
    pub fn send(&mut self, id: PacketId, bytes: u16, now: Time) -> Option<Time> {
        assert!(self.free <= now, "a line sends one packet at a time");
        self.free = now + self.serializer.time(bytes);
        self.sent += 1;
        let arrives = self.free + self.delay;
        let alone = self.flights.is_empty();
        self.flights.push(Flight { arrives, id });
        alone.then_some(arrives)
    }

    /// The transmitter is busy with an Ethernet frame of `bytes` from `now` on that is none of the packets: they are
    /// counted without it.
    ///
    /// # Panics
    /// When the transmitter is busy.
    pub fn hold(&mut self, bytes: u16, now: Time) {
        assert!(self.free <= now, "a line sends one frame at a time");
        self.free = now + self.serializer.frame_time(bytes);
    }

    /// Takes the packet that arrives now, and returns when the next one arrives.
    ///
    /// # Panics
    /// When none is in flight.
    #[inline]
    pub fn arrive(&mut self) -> (PacketId, Option<Time>) {
        let flight = self.flights.pop().expect("an arrival is pending only while a packet is in flight");
        self.arrived += 1;
        (flight.id, self.flights.front().map(|next| next.arrives))
    }

    /// When the next packet arrives, if one is in flight.
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        self.flights.front().map(|flight| flight.arrives)
    }

    /// Packets in flight or in service.
    pub fn held(&self) -> u64 {
        u64::from(self.flights.len())
    }

    /// Packets sent since the start.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets arrived since the start.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }
}
