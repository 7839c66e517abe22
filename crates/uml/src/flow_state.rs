//! Converts the reports of a connection's ends (TCP_INFO) to the state of a flow.

use firstlight_linux::TcpInfo;
use firstlight_sim::FlowState;
use firstlight_units::Span;

/// Sets the sender's part of a flow's state.
pub(crate) fn set_sender(state: &mut FlowState, info: &TcpInfo) {
    let us = |n: u32| Span::from_us(n.into());
    // A kernel counts the SYN as one byte.
    state.bytes_acked = info.bytes_acked.saturating_sub(1);
    state.cwnd = info.cwnd;
    state.srtt = Some(us(info.rtt_us)).filter(|rtt| !rtt.is_zero());
    state.min_rtt = info.min_rtt_us.map(us);
    state.sender.packets_sent = info.data_segs_out.into();
    state.sender.retransmits = info.total_retrans.into();
    state.sender.timeouts = info.total_rto.into();
    state.sender.duplicates = info.dsack_dups.into();
    state.sender.reorderings = info.reord_seen.into();
}

/// Sets the receiver's part of a flow's state.
pub(crate) fn set_receiver(state: &mut FlowState, info: &TcpInfo) {
    state.bytes_received = info.bytes_received;
}
