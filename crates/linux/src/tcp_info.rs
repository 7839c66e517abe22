//! `struct tcp_info` of `linux/tcp.h`, as getsockopt(TCP_INFO) gives it.
//!
//! The structure grows at its end from kernel to kernel: fields that a kernel does not know read as zero.

/// Bytes up to and with `tcpi_total_retrans`, which every kernel gives.
const LEAST: usize = 104;

/// The state of one end of a connection. Times are microseconds of the hosts' clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Number of the connection's state; 1 is ESTABLISHED.
    pub state: u8,
    /// State of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Consecutive retransmission timeouts.
    pub retransmits: u8,
    /// Retransmission timeout.
    pub rto_us: u32,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Unacknowledged packets that SACK has reported.
    pub sacked: u32,
    /// Unacknowledged packets that are considered lost.
    pub lost: u32,
    /// Unacknowledged packets that were retransmitted.
    pub retrans: u32,
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Variation of the round-trip time.
    pub rttvar_us: u32,
    /// Slow start threshold, in packets; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Congestion window, in packets.
    pub cwnd: u32,
    /// Packets that may arrive out of order before one is considered lost.
    pub reordering: u32,
    /// Retransmitted packets since the start.
    pub total_retrans: u32,
    /// Pacing rate in bytes per second; `None` without pacing.
    pub pacing_rate: Option<u64>,
    /// Bytes acknowledged, and one for the SYN.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Packets sent.
    pub segs_out: u32,
    /// Smallest round-trip time; `None` before the first.
    pub min_rtt_us: Option<u32>,
    /// Packets with data sent, retransmissions included.
    pub data_segs_out: u32,
    /// Most recent delivery rate, in bytes per second.
    pub delivery_rate: u64,
    /// How long data were unacknowledged or unsent, in microseconds, but counted in the kernel's ticks.
    pub busy_us: u64,
    /// How long the peer's window held data back, in microseconds.
    pub rwnd_limited_us: u64,
    /// How long the send buffer held the program back, in microseconds.
    pub sndbuf_limited_us: u64,
    /// Packets delivered.
    pub delivered: u32,
    /// Delivered packets that were reported with a congestion mark.
    pub delivered_ce: u32,
    /// Duplicates that the receiver has reported (DSACK).
    pub dsack_dups: u32,
    /// Events of reordering.
    pub reord_seen: u32,
    /// The peer's receive window, in bytes.
    pub snd_wnd: u32,
    /// This end's receive window, in bytes.
    pub rcv_wnd: u32,
    /// Retransmission timeouts since the start.
    pub total_rto: u16,
}

impl TcpInfo {
    /// Packets in flight, as the kernel counts them for the congestion window.
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// Reads the structure's bytes; `None` when even the oldest fields are missing.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST {
            return None;
        }
        let at = Fields(bytes);
        Some(TcpInfo {
            state: bytes[0],
            ca_state: bytes[1],
            retransmits: bytes[2],
            rto_us: at.u32(8),
            unacked: at.u32(24),
            sacked: at.u32(28),
            lost: at.u32(32),
            retrans: at.u32(36),
            rtt_us: at.u32(68),
            rttvar_us: at.u32(72),
            // The kernel's value for no threshold.
            ssthresh: Some(at.u32(76)).filter(|packets| *packets < 0x7fff_ffff),
            cwnd: at.u32(80),
            reordering: at.u32(88),
            total_retrans: at.u32(100),
            pacing_rate: Some(at.u64(104)).filter(|rate| *rate != u64::MAX),
            bytes_acked: at.u64(120),
            bytes_received: at.u64(128),
            segs_out: at.u32(136),
            min_rtt_us: Some(at.u32(148)).filter(|rtt| *rtt != u32::MAX),
            data_segs_out: at.u32(156),
            delivery_rate: at.u64(160),
            busy_us: at.u64(168),
            rwnd_limited_us: at.u64(176),
            sndbuf_limited_us: at.u64(184),
            delivered: at.u32(192),
            delivered_ce: at.u32(196),
            dsack_dups: at.u32(216),
            reord_seen: at.u32(220),
            snd_wnd: at.u32(228),
            rcv_wnd: at.u32(232),
            total_rto: at.u16(240),
        })
    }
}

/// Numbers by their offset in the structure, in this machine's byte order; zero past the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).map_or([0; N], |bytes| bytes.try_into().expect("it is as long as asked for"))
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes whose values are their offsets.
    fn counted(length: usize) -> Vec<u8> {
        (0..length).map(|at| at as u8).collect()
    }

    #[test]
    fn fields_have_the_offsets_of_the_header_file() {
        let info = TcpInfo::parse(&counted(248)).unwrap();
        assert_eq!((info.state, info.ca_state, info.retransmits), (0, 1, 2));
        assert_eq!((info.rtt_us.to_ne_bytes()[0], info.cwnd.to_ne_bytes()[0]), (68, 80));
        assert_eq!((info.bytes_acked.to_ne_bytes()[0], info.bytes_received.to_ne_bytes()[0]), (120, 128));
        let limits = [info.busy_us, info.rwnd_limited_us, info.sndbuf_limited_us];
        assert_eq!(limits.map(|time| time.to_ne_bytes()[0]), [168, 176, 184]);
        assert_eq!((info.data_segs_out.to_ne_bytes()[0], info.total_rto.to_ne_bytes()[0]), (156, 240));
    }

    #[test]
    fn missing_fields_of_older_kernels_are_zero() {
        let info = TcpInfo::parse(&counted(232)).unwrap();
        assert_eq!((info.snd_wnd.to_ne_bytes()[0], info.rcv_wnd, info.total_rto), (228, 0, 0));
        assert_eq!(TcpInfo::parse(&counted(104)).unwrap().bytes_acked, 0);
        (0..104).for_each(|length| assert_eq!(TcpInfo::parse(&counted(length)), None));
        assert!((104..400).all(|length| TcpInfo::parse(&counted(length)).is_some()));
    }

    #[test]
    fn unset_values_are_none() {
        let mut bytes = vec![0; 248];
        bytes[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        bytes[104..112].fill(255);
        bytes[148..152].fill(255);
        let info = TcpInfo::parse(&bytes).unwrap();
        assert_eq!((info.ssthresh, info.pacing_rate, info.min_rtt_us), (None, None, None));
    }
}
