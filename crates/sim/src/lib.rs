//! The engine: a fabric stepped through discrete events, and the simulated hosts at its edge.
//!
//! [`Fabric`] is everything between the hosts; the owner of the clock steps it. [`World`] is its first driver:
//! simulated TCP endpoints, run as fast as possible.

mod arena;
mod capture;
pub mod causes;
mod config;
mod connection_table;
mod conserve;
mod control_loop;
mod digest;
mod events;
mod external_hosts;
mod fabric;
mod flow;
mod meter;
mod notices;
mod prefetch;
mod probe;
mod recorder;
mod report;
mod series;
mod stream;
mod timeline;
mod wait_queues;
mod world;

pub use capture::CaptureSink;
pub use config::*;
pub use conserve::Imbalance;
pub use fabric::{Exit, Fabric};
pub use report::{
    CircuitReport, DeadlockReport, MeterReport, NetworkReport, PairReport, PauseCause, PauseEvent, PauseReport,
    PausedPort, PortKind, PortReport, QcnReport, QueueReport, QueueSample, RateSample, SeriesReport, Totals,
};
pub use stream::{Xoshiro256PlusPlus, stream, uniform};
pub use {
    external_hosts::ExternalHosts,
    flow::{FlowConfig, FlowProgress, FlowReport, FlowState},
    probe::{ProbeConfig, ProbeReport, ProbeSample},
    timeline::TimelineSink,
    world::World,
};

/// The first local port of every host: the k-th end of a flow there has port 10000 + k.
pub const FIRST_PORT: u16 = 10_000;
