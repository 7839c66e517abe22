//! The engine: a fabric stepped through discrete events, and the simulated hosts at its edge.
//!
//! [`Fabric`] is all that lies between the hosts; whoever owns the clock steps it. [`World`] is its
//! first driver: simulated TCP endpoints, run as fast as they can.

mod arena;
mod capture;
mod config;
mod conserve;
mod control;
mod digest;
mod ends;
mod events;
mod fabric;
mod flow;
mod lines;
mod meter;
mod outside;
mod prefetch;
mod probe;
mod report;
mod series;
mod stream;
mod world;

pub use capture::CaptureSink;
pub use config::{
    AdapterConfig, CircuitConfig, ConfigError, ControlConfig, DemandSource, GraphConfig, HostLinks, HybridConfig,
    InterfaceConfig, MeterConfig, PacketConfig, ReceiveConfig, Resize, SeriesConfig, SwitchConfig, VoqConfig,
    WatchConfig,
};
pub use conserve::Imbalance;
pub use fabric::{Exit, Fabric};
pub use report::{
    CircuitReport, DeadlockReport, MeterReport, NetworkReport, PairReport, PauseCause, PauseEvent, PauseReport,
    PausedPort, PortKind, PortReport, QcnReport, QueueReport, QueueSample, RateSample, SeriesReport, Totals,
};
pub use stream::{Xoshiro256PlusPlus, stream, uniform};
pub use {
    flow::{FlowConfig, FlowReport, FlowState},
    outside::Outside,
    probe::{ProbeConfig, ProbeReport, ProbeSample},
    world::World,
};

/// The first local port of every host: the k-th end of a flow there has port 10000 + k.
pub(crate) const FIRST_PORT: u16 = 10_000;
