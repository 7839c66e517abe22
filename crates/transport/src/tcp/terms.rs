//! The settings that hold for one connection: those of its own host, and what the handshake has agreed on.
//!
//! SYN packets announce the largest segment, the window scale, and whether SACK and timestamps are offered (RFC 9293,
//! 7323, 2018). A SYN without an announcement comes from a host with the same settings.

use super::timer::Ticks;
use crate::config::{LATENCY_OPTION, TcpConfig};
use firstlight_net::{TcpSegment, TcpSegmentMut};
use std::ops::Deref;

/// IPv4 and TCP header without options, in bytes.
const BARE_HEADER: u16 = 40;
/// The timestamp option with its padding, in bytes.
const TIMESTAMPS: u16 = 12;
/// Payload of a segment for which every path has room, in bytes (RFC 9293, section 3.7.1).
pub(super) const DEFAULT_SEGMENT: u32 = 536;
/// Payload of the smallest segment to which a window bounds segments, in bytes.
const LEAST_SEGMENT: u64 = 48;
/// The largest window scale (RFC 7323, section 2.3).
pub(super) const LARGEST_SCALE: u8 = 14;

/// The settings of one connection. Until the peer's SYN arrives, the peer is taken to have the same settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    config: TcpConfig,
    /// Payload bytes of the largest segment that both ends take.
    pub(crate) whole: u32,
    /// Payload bytes of the largest segment that this end sends, which the peer's window bounds.
    pub(crate) mss: u32,
    /// The largest segment that the peer takes, options included, in bytes.
    pub(crate) segment: u16,
    /// Bytes of IP and TCP header on every packet but SYNs, without SACK blocks.
    pub(crate) header: u16,
    /// Bytes of the option for timestamps of the interfaces; 0 without it.
    pub(crate) option: u16,
    /// SACK may be sent and is understood.
    pub(crate) sack: bool,
    /// Packets carry timestamps (RFC 7323).
    pub(crate) timestamps: bool,
    /// Windows are scaled (RFC 7323).
    pub(crate) scaling: bool,
}

impl Deref for Terms {
    type Target = TcpConfig;

    fn deref(&self) -> &TcpConfig {
        &self.config
    }
}

/// How much a segment, or a chunk of unsent data, takes at most of the largest window that the peer has offered: half,
/// where that window is larger than a default segment.
pub(super) fn share_of(window: u64) -> u64 {
    if window > DEFAULT_SEGMENT.into() { window / 2 } else { window }
}

impl Terms {
    /// What holds when the peer has the same settings. `stamped` packets carry timestamps of the interfaces.
    pub(crate) fn new(config: &TcpConfig, stamped: bool) -> Self {
        let option = if stamped { LATENCY_OPTION } else { 0 };
        let TcpConfig { sack, timestamps, .. } = *config;
        let ticks = Ticks::new(config.tick);
        // A kernel keeps these in whole ticks of its clock.
        let rto_variance = config.rto_variance.map(|floor| ticks.whole(floor));
        let config = TcpConfig { rto_min: ticks.whole(config.rto_min), rto_variance, ..*config };
        let mut terms =
            Terms { config, whole: 0, mss: 0, segment: 0, header: 0, option, sack, timestamps, scaling: true };
        terms.settle(u16::MAX);
        terms
    }

    /// Takes over what the peer's SYN announces; `segment` is its largest segment.
    pub(crate) fn agree(&mut self, peer: &Announcement) {
        self.sack &= peer.sack;
        self.timestamps &= peer.timestamps;
        self.scaling = peer.scale.is_some();
        self.settle(peer.segment);
    }

    fn settle(&mut self, segment: u16) {
        let options = self.option + if self.timestamps { TIMESTAMPS } else { 0 };
        self.header = BARE_HEADER + options;
        self.segment = segment.min(self.config.mtu - BARE_HEADER);
        self.whole = u32::from(self.segment.saturating_sub(options).max(1));
        self.mss = self.whole;
    }

    /// The peer has offered at most so many bytes, which bounds segments, as in Linux.
    #[inline]
    pub(crate) fn bound(&mut self, window: u64) {
        if 0 < window && window < 2 * u64::from(self.whole) {
            self.mss = self.whole.min(share_of(window).max(LEAST_SEGMENT) as u32);
        } else {
            self.mss = self.whole;
        }
    }

    /// The most packets that the congestion window may count.
    pub(crate) fn window_cap(&self) -> u32 {
        self.config.max_window.unwrap_or(u32::MAX)
    }

    /// By how many bits this end shifts the windows that it offers.
    pub(crate) fn scale(&self) -> u8 {
        if self.scaling { self.config.window_scale().min(LARGEST_SCALE) } else { 0 }
    }

    /// Payload bytes of the largest segment that this end takes. Its windows begin with these and grow by them. As in
    /// Linux, the option for timestamps of the interfaces (DX, Swift, TIMELY) is not subtracted here: it shortens the
    /// segments that are sent ([`Terms::settle`]).
    pub(crate) fn own_mss(&self) -> u32 {
        let options = if self.timestamps { TIMESTAMPS } else { 0 };
        u32::from(self.config.mtu - BARE_HEADER - options)
    }

    /// What this end's SYN announces.
    pub(crate) fn announcement(&self) -> Announcement {
        Announcement {
            segment: self.config.mtu - BARE_HEADER,
            scale: self.scaling.then(|| self.scale()),
            sack: self.sack,
            timestamps: self.timestamps,
        }
    }

    /// Bytes of IP and TCP header of a SYN: each option is padded to whole words, and SACK-permitted fills the padding
    /// of the timestamps where both are there.
    pub(crate) fn syn_header(&self) -> u16 {
        let segment = 4;
        let sack = if self.sack && !self.timestamps { 4 } else { 0 };
        let stamps = if self.timestamps { TIMESTAMPS } else { 0 };
        let scale = if self.scaling { 4 } else { 0 };
        BARE_HEADER + segment + sack + stamps + scale + self.option
    }
}

/// What a SYN announces of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// The largest segment in bytes, options of later packets included (RFC 9293, section 3.7.1).
    pub segment: u16,
    /// By how many bits its windows will be shifted; `None`: they will not (RFC 7323).
    pub scale: Option<u8>,
    /// SACK is permitted (RFC 2018).
    pub sack: bool,
    /// The SYN carries timestamps (RFC 7323).
    pub timestamps: bool,
}

/// Options that a SYN lacks.
const UNSCALED: u8 = 1;
const WITHOUT_SACK: u8 = 2;
const WITHOUT_TIMESTAMPS: u8 = 4;

impl Announcement {
    /// Reads what a SYN announces; `None` when the record has no announcement.
    pub fn read(syn: TcpSegment<'_>) -> Option<Self> {
        let (segment, scale) = syn.announced()?;
        let bits = syn.absent_options();
        Some(Announcement {
            segment,
            scale: (bits & UNSCALED == 0).then_some(scale),
            sack: bits & WITHOUT_SACK == 0,
            timestamps: bits & WITHOUT_TIMESTAMPS == 0,
        })
    }

    /// Writes the announcement into the record of a SYN, where [`TcpSegment::announced`] looks too.
    pub fn write(&self, syn: &mut TcpSegmentMut<'_>) {
        let bit = |there: bool, bit: u8| if there { 0 } else { bit };
        let bits = bit(self.scale.is_some(), UNSCALED)
            | bit(self.sack, WITHOUT_SACK)
            | bit(self.timestamps, WITHOUT_TIMESTAMPS);
        syn.announce(self.segment, self.scale.unwrap_or(0));
        syn.set_absent_options(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StackConfig;
    use firstlight_net::{FlowTuple, Packet, TcpFlags, TcpHeader};
    use firstlight_units::{Bytes, Span};

    fn sizes(timestamps: bool, sack: bool, stamped: bool) -> (u32, u16, u16) {
        let terms = Terms::new(&TcpConfig { mtu: 1500, timestamps, sack, ..TcpConfig::default() }, stamped);
        (terms.mss, terms.header, terms.syn_header())
    }

    #[test]
    fn options_take_their_room() {
        assert_eq!(sizes(true, true, false), (1448, 52, 60));
        assert_eq!(sizes(true, false, false), (1448, 52, 60));
        assert_eq!(sizes(false, true, false), (1460, 40, 52));
        assert_eq!(sizes(false, false, false), (1460, 40, 48));
        assert_eq!(sizes(true, true, true), (1432, 68, 76));
    }

    /// A buffer with room for windows of 6 MB takes 9.4 MB where packets have 1500 bytes (measured: Linux 7.2).
    #[test]
    fn the_scale_is_that_of_the_buffer() {
        let scale = |tcp| Terms::new(&TcpConfig { mtu: 1500, ..tcp }, false).scale();
        let of = |window| scale(TcpConfig { receive_window: Bytes::new(window), ..TcpConfig::default() });
        assert_eq!([256_000, 5_000_000, 6_000_000].map(of), [7, 7, 8]);
        let stack = StackConfig { receive_memory: Some(Bytes::new(6 << 20)), ..StackConfig::default() };
        assert_eq!(scale(TcpConfig { stack, ..TcpConfig::default() }), 7, "a kernel's default");
    }

    /// A kernel with ticks of 4 ms makes 12 ms of 10 ms.
    #[test]
    fn least_timeouts_are_whole_ticks() {
        let config =
            TcpConfig { rto_min: Span::from_ms(10), rto_variance: Some(Span::from_ms(1)), ..TcpConfig::default() };
        let of = |ms| Terms::new(&TcpConfig { tick: Span::from_ms(ms), ..config }, false);
        assert_eq!([4, 1, 0].map(|ms| of(ms).rto_min), [12, 10, 10].map(Span::from_ms));
        assert_eq!([4, 0].map(|ms| of(ms).rto_variance), [4, 1].map(|ms| Some(Span::from_ms(ms))));
    }

    #[test]
    fn an_announcement_is_read_as_it_was_written() {
        let tcp = TcpHeader { flags: TcpFlags::SYN, ..TcpHeader::default() };
        let empty = Packet::new_tcp(FlowTuple::default(), 60, 0, tcp);
        for (scale, sack, timestamps) in [(Some(7), true, true), (None, false, true), (Some(0), true, false)] {
            let announcement = Announcement { segment: 1000, scale, sack, timestamps };
            let mut syn = empty;
            announcement.write(&mut syn.tcp_mut().unwrap());
            assert_eq!(Announcement::read(syn.tcp().unwrap()), Some(announcement));
        }
        assert_eq!(Announcement::read(empty.tcp().unwrap()), None);
    }

    #[test]
    fn the_smaller_segment_and_common_options_hold() {
        let mut terms = Terms::new(&TcpConfig { mtu: 1500, ..TcpConfig::default() }, false);
        terms.agree(&Announcement { segment: 1000, scale: None, sack: false, timestamps: true });
        assert_eq!((terms.mss, terms.header, terms.scale(), terms.sack), (988, 52, 0, false));
        terms.agree(&Announcement { segment: 9000, scale: Some(2), sack: true, timestamps: false });
        assert_eq!((terms.mss, terms.header, terms.sack), (1460, 40, false));
    }
}
