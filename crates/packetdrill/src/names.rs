//! The values of a connection that scripts can name: `tcp_info` and the memory of sockets.

use crate::host::ScriptHost;
use firstlight_transport::{CongestionState, Info, Refusals};
use firstlight_units::Span;
use std::collections::BTreeMap;

/// Linux's value of a threshold that has not been found yet.
const NO_THRESHOLD: u64 = i32::MAX as u64;

impl ScriptHost {
    /// The names with their values, of the connection that the script is about.
    pub(crate) fn names(&self) -> BTreeMap<&'static str, u64> {
        let mut names = BTreeMap::from(CONSTANTS);
        let Some(link) = self.current.map(|link| &self.links[link]) else { return names };
        let info = link.connection.info(self.now);
        names.extend(of_congestion(&info));
        names.extend(of_traffic(&info));
        names.insert("SK_MEMINFO_RCVBUF", link.connection.receive_buffer().get());
        names.insert("SK_MEMINFO_SNDBUF", link.connection.send_buffer().get());
        names
    }

    /// A counter of the kernel, of all connections; `None` where there is none of that name.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let sum = |of: fn(&Refusals) -> u64| self.links.iter().map(|link| of(&link.connection.refusals())).sum();
        match name {
            "TcpExtBeyondWindow" => Some(sum(|refusals| refusals.beyond_window)),
            "TcpExtTCPRcvQDrop" => Some(sum(|refusals| refusals.no_memory)),
            "TcpExtTCPZeroWindowDrop" => Some(sum(|refusals| refusals.window_closed)),
            _ => None,
        }
    }
}

const CONSTANTS: [(&str, u64); 6] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_SYN_DATA", 32),
];

fn of_congestion(info: &Info) -> [(&'static str, u64); 12] {
    let state = match info.congestion {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Reduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    };
    [
        ("tcpi_ca_state", state),
        ("tcpi_snd_cwnd", info.cwnd.into()),
        ("tcpi_snd_ssthresh", info.ssthresh.map_or(NO_THRESHOLD, u64::from)),
        ("tcpi_unacked", info.unacked.into()),
        ("tcpi_sacked", info.sacked.into()),
        ("tcpi_lost", info.lost.into()),
        ("tcpi_retrans", info.retransmitted.into()),
        ("tcpi_reordering", info.reordering.into()),
        ("tcpi_reord_seen", info.reorderings),
        ("tcpi_probes", info.probes.into()),
        ("tcpi_backoff", info.backoff.into()),
        ("tcpi_options", 0),
    ]
}

fn of_traffic(info: &Info) -> [(&'static str, u64); 10] {
    let us = |span: Span| span.as_ps() / 1_000_000;
    [
        ("tcpi_rtt", info.srtt.map_or(0, us)),
        ("tcpi_min_rtt", info.min_rtt.map_or(0, us)),
        ("tcpi_snd_mss", info.mss.into()),
        ("tcpi_rcv_mss", info.peer_mss.into()),
        ("tcpi_advmss", info.own_mss.into()),
        ("tcpi_bytes_received", info.bytes_received),
        ("tcpi_last_data_recv", us(info.since_data) / 1000),
        ("tcpi_busy_time", us(info.busy)),
        ("tcpi_rwnd_limited", us(info.limited_by_window)),
        ("tcpi_sndbuf_limited", us(info.limited_by_buffer)),
    ]
}
