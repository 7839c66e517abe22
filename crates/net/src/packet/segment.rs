//! The view of a packet as a segment of TCP.

use super::{Attributes, FlowTuple, Packet, STAMPS};
use std::ops::{Deref, DerefMut};

/// TCP header flags, in the wire's bit positions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// The connection is reset.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push: the sender's application has written up to here.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// ECN-Echo.
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced.
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets `flags`.
    #[inline]
    pub const fn insert(&mut self, flags: TcpFlags) {
        self.0 |= flags.0;
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

impl std::fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [
            (Self::SYN, 'S'),
            (Self::FIN, 'F'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::ACK, '.'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
        ];
        names.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, c)| write!(f, "{c}"))
    }
}

/// A SACK block: sequence numbers `start..end` have arrived (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// The sequence number after the block's last.
    pub end: u32,
}

/// The fields of a segment's header that [`Packet::write_tcp`] writes: all but ports and options of variable length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Receive window in the header, before scaling.
    pub window: u16,
    /// Flags.
    pub flags: TcpFlags,
    /// Timestamp value (RFC 7323).
    pub tsval: u32,
    /// Timestamp echo reply (RFC 7323).
    pub tsecr: u32,
}

/// Which word of the record holds which field. Timestamps of the interfaces take the place of the second and the third
/// SACK block, as the TCP option takes their room; what a SYN announces takes that of the first.
const SEQ: usize = 0;
const ACK: usize = 1;
const TSVAL: usize = 2;
const TSECR: usize = 3;
const SACK: usize = 4;
const _: () = assert!(SACK + 2 == STAMPS, "stamps take the room of the second and the third SACK block");

/// A packet that is a segment of TCP. It has [`Packet`]'s methods as well.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a>(pub(super) &'a Packet);

impl Deref for TcpSegment<'_> {
    type Target = Packet;
    #[inline]
    fn deref(&self) -> &Packet {
        self.0
    }
}

impl TcpSegment<'_> {
    /// Sequence number of the first payload byte.
    #[inline]
    pub const fn seq(&self) -> u32 {
        self.0.words[SEQ]
    }

    /// Acknowledgement number.
    #[inline]
    pub const fn ack(&self) -> u32 {
        self.0.words[ACK]
    }

    /// Receive window in the header, before scaling.
    #[inline]
    pub const fn window(&self) -> u16 {
        self.0.half
    }

    /// Flags.
    #[inline]
    pub const fn flags(&self) -> TcpFlags {
        self.0.flags
    }

    /// Timestamp value (RFC 7323).
    #[inline]
    pub const fn tsval(&self) -> u32 {
        self.0.words[TSVAL]
    }

    /// Timestamp echo reply (RFC 7323).
    #[inline]
    pub const fn tsecr(&self) -> u32 {
        self.0.words[TSECR]
    }

    /// How many SACK blocks the segment has.
    #[inline]
    pub const fn sacks(&self) -> u8 {
        self.0.sacks()
    }

    /// The SACK blocks, most recent first.
    #[inline]
    pub fn sack_blocks(&self) -> impl ExactSizeIterator<Item = SackBlock> + use<'_> {
        let words = &self.0.words[SACK..SACK + 2 * usize::from(self.sacks())];
        words.chunks_exact(2).map(|edges| SackBlock { start: edges[0], end: edges[1] })
    }

    /// The largest segment and the window scale that the SYN of a real host announces.
    pub fn announced(&self) -> Option<(u16, u8)> {
        let [segment, scale] = [self.0.words[SACK], self.0.words[SACK + 1]];
        (self.flags().has(TcpFlags::SYN) && self.sacks() == 0 && segment > 0).then_some((segment as u16, scale as u8))
    }

    /// Which options the SYN lacks, as [`TcpSegmentMut::set_absent_options`] has set them.
    pub const fn absent_options(&self) -> u8 {
        (self.0.words[SACK + 1] >> 8) as u8
    }
}

/// A packet that is a segment of TCP, to be changed. It has [`Packet`]'s methods as well.
#[derive(Debug)]
pub struct TcpSegmentMut<'a>(pub(super) &'a mut Packet);

impl Deref for TcpSegmentMut<'_> {
    type Target = Packet;
    #[inline]
    fn deref(&self) -> &Packet {
        self.0
    }
}

impl DerefMut for TcpSegmentMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Packet {
        self.0
    }
}

impl TcpSegmentMut<'_> {
    /// Sets `flags` in addition to those that are set.
    #[inline]
    pub const fn insert_flags(&mut self, flags: TcpFlags) {
        self.0.flags.insert(flags);
    }

    /// Sets the acknowledgement number.
    #[inline]
    pub const fn set_ack(&mut self, ack: u32) {
        self.0.words[ACK] = ack;
    }

    /// Sets the receive window in the header, before scaling.
    #[inline]
    pub const fn set_window(&mut self, window: u16) {
        self.0.half = window;
    }

    /// Sets the timestamp echo reply.
    #[inline]
    pub const fn set_tsecr(&mut self, tsecr: u32) {
        self.0.words[TSECR] = tsecr;
    }

    /// Sets the timestamp value.
    pub const fn set_tsval(&mut self, tsval: u32) {
        self.0.words[TSVAL] = tsval;
    }

    /// Adds `bytes` bytes of payload.
    #[inline]
    pub const fn add_payload(&mut self, bytes: u16) {
        self.0.size += bytes;
    }

    /// Adds `bytes` bytes of options to the header.
    #[inline]
    pub const fn add_options(&mut self, bytes: u8) {
        self.0.header += bytes;
        self.0.size += bytes as u16;
    }

    /// Adds a SACK block.
    ///
    /// # Panics
    /// When there is no room: three fit, one beside timestamps of the interfaces.
    pub fn push_sack(&mut self, block: SackBlock) {
        let (count, room) = (self.0.sacks(), if self.0.has_stamps() { 1 } else { 3 });
        assert!(count < room, "a segment has room for {room} SACK blocks");
        let at = SACK + 2 * usize::from(count);
        self.0.words[at..at + 2].copy_from_slice(&[block.start, block.end]);
        self.0.attributes.0 += 1 << Attributes::SACKS.trailing_zeros();
    }

    /// Sets what a SYN announces: its largest segment, and the window scale.
    pub const fn announce(&mut self, segment: u16, scale: u8) {
        self.0.words[SACK] = segment as u32;
        self.0.words[SACK + 1] = scale as u32;
    }

    /// Sets which options a SYN lacks, after [`TcpSegmentMut::announce`]; what each bit means is up to the endpoints.
    pub const fn set_absent_options(&mut self, bits: u8) {
        self.0.words[SACK + 1] |= (bits as u32) << 8;
    }
}

impl Packet {
    /// A segment of TCP with these sizes of header (IP's included) and payload.
    pub fn new_tcp(tuple: FlowTuple, header: u8, payload: u16, tcp: TcpHeader) -> Packet {
        let mut packet = Packet::default();
        packet.write_tcp(tuple, header, tcp).add_payload(payload);
        packet
    }

    /// Makes the record that of a segment without payload, in place; `header` is the length of all headers in bytes.
    #[inline(always)]
    pub fn write_tcp(&mut self, tuple: FlowTuple, header: u8, tcp: TcpHeader) -> TcpSegmentMut<'_> {
        let TcpHeader { seq, ack, window, flags, tsval, tsecr } = tcp;
        let FlowTuple { src, sport, dst, dport } = tuple;
        let (size, words) = (header.into(), [seq, ack, tsval, tsecr, 0, 0, 0, 0, 0, 0]);
        *self = Packet { size, header, src, dst, sport, dport, half: window, flags, words, ..Packet::default() };
        TcpSegmentMut(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_holds_what_was_written() {
        let flags = TcpFlags::ACK | TcpFlags::PSH;
        let tcp = TcpHeader { seq: 1, ack: 2, window: 3, flags, tsval: 4, tsecr: 5 };
        let mut packet = Packet::new_tcp(FlowTuple::default(), 52, 1448, tcp);
        let mut segment = packet.tcp_mut().unwrap();
        let blocks = [10, 20, 30].map(|start| SackBlock { start, end: start + 1 });
        blocks.iter().for_each(|block| segment.push_sack(*block));
        segment.add_options(28);
        segment.insert_flags(TcpFlags::ECE);
        let segment = packet.tcp().unwrap();
        assert!(segment.sack_blocks().eq(blocks));
        assert_eq!((segment.size(), segment.header(), segment.payload()), (1528, 80, 1448));
        assert_eq!((segment.seq(), segment.ack(), segment.window()), (1, 2, 3));
        assert_eq!((segment.tsval(), segment.tsecr()), (4, 5));
        assert_eq!(segment.flags(), flags | TcpFlags::ECE);
        assert_eq!(segment.announced(), None);
    }

    #[test]
    fn only_a_syn_without_blocks_announces() {
        let announced = |flags| {
            let mut packet = Packet::default();
            let mut segment = packet.write_tcp(FlowTuple::default(), 60, TcpHeader { flags, ..TcpHeader::default() });
            segment.announce(8960, 9);
            packet.tcp().unwrap().announced()
        };
        assert_eq!((announced(TcpFlags::SYN), announced(TcpFlags::ACK)), (Some((8960, 9)), None));
    }
}
