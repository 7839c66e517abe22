//! The view of a packet as QCN's notification of congestion.

use super::{FlowTuple, Packet, PacketKind};

/// Bytes of a notification.
const SIZE: u8 = 64;
/// The highest traffic class, which notifications have.
const CLASS: u8 = 7;
/// The word of the record that holds the feedback.
const FEEDBACK: usize = 0;

/// QCN's notification, from a switch to the sender of a packet that the switch has sampled.
#[derive(Clone, Copy, Debug)]
pub struct CongestionNotification<'a>(pub(super) &'a Packet);

impl CongestionNotification<'_> {
    /// How much congestion there is, 1 to 63.
    #[inline]
    pub const fn feedback(&self) -> u8 {
        self.0.words[FEEDBACK] as u8
    }

    /// The flow that is to be slowed down.
    pub const fn flow(&self) -> FlowTuple {
        self.0.tuple().reversed()
    }
}

impl Packet {
    /// A notification to the sender of `sampled`: 64 bytes of the highest class, with the flow's ends reversed.
    pub fn new_notification(sampled: &Packet, feedback: u8) -> Packet {
        let mut packet = Packet::new(PacketKind::Notification, sampled.tuple().reversed(), SIZE.into(), SIZE);
        packet.words[FEEDBACK] = feedback.into();
        packet.with_class(CLASS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, TcpHeader};

    #[test]
    fn a_notification_goes_back_to_the_sender() {
        let tuple = FlowTuple { src: HostId(1), sport: 3, dst: HostId(2), dport: 4 };
        let sampled = Packet::new_tcp(tuple, 40, 1460, TcpHeader::default());
        let back = Packet::new_notification(&sampled, 63);
        assert_eq!(back.tuple(), FlowTuple { src: HostId(2), sport: 4, dst: HostId(1), dport: 3 });
        let notification = back.notification().unwrap();
        assert_eq!((notification.feedback(), notification.flow()), (63, tuple));
        assert_eq!((back.class(), back.size(), back.is_data(), back.has_stamps()), (7, 64, false, false));
    }
}
