//! Transport endpoints: a TCP without I/O or a clock, and its congestion controllers, one file each.
//!
//! The endpoint ([`Connection`]) follows RFC 9293 (TCP), 6298 (retransmission timer), 2018 and 2883 (SACK, DSACK), 8985
//! (RACK-TLP), 6937 (proportional rate reduction), 5682 (F-RTO), 7323 (timestamps) and 3168 (ECN), and takes Linux's
//! choices where these leave one: windows counted in packets, an initial window of 10, a floor of 200 ms under the
//! variance term of the timeout, delayed ACKs of 40 ms that are off for the first packets, compressed SACKs.
//! Controllers may ask for timestamps of the network interfaces and for pacing. `now` is always an argument. [`cc`]
//! holds the controllers; [`cc::CcConfig::from_name`] finds one.
//!
//! Left out: urgent data, window scaling as a negotiation (the scale is derived from the configured window), path MTU
//! discovery and segmentation offload.

mod autotune;
pub mod cc;
mod config;
mod tcp;

pub use autotune::Autotune;
pub use cc::CcConfig;
pub use config::{EctSyn, Endpoint, Memory, StackConfig, TcpConfig};
pub use tcp::{
    Alarms, Announcement, CongestionState, Connection, ConnectionFailure, Info, ReadRate, Refusals, Send, Standing,
    State, Stats, WINDOW_OF_2012, Wait, reset_for,
};
