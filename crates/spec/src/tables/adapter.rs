//! `[adapter]`: the buffers of the hosts' interfaces.

use firstlight_net::fabric::{AdapterConfig, ReceiveConfig};
use firstlight_units::{Bytes, Rate, SettingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The buffers of the hosts' interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdapterTable {
    /// Bytes that a host's interface may hold before they are sent. While it holds as many, the host's stack waits, and
    /// so do its programs; nothing is lost.
    #[schemars(extend("x-without" = "no limit"))]
    pub send_buffer: Option<Bytes>,
    /// The rate at which a host takes arrived data from the interface, over its bus.
    #[schemars(extend("x-without" = "at once"))]
    pub drain: Option<Rate>,
    /// Bytes that may wait for `adapter.drain`. Packets beyond are lost; with `[pfc]` the switch is paused before that.
    #[schemars(extend("x-without" = "with `adapter.drain`: 512kB"))]
    pub receive_buffer: Option<Bytes>,
}

impl AdapterTable {
    /// Checks that a receive buffer is given only with a rate at which it is emptied.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let idle = self.receive_buffer.is_some() && self.drain.is_none();
        let problem = "has no effect: hosts take arriving packets at once; add adapter.drain, or take this out";
        SettingError::unless(!idle, "receive_buffer", problem)
    }

    /// The engine's configuration.
    pub(crate) fn config(&self) -> AdapterConfig {
        let buffer = self.receive_buffer.unwrap_or(ReceiveConfig::BUFFER);
        AdapterConfig {
            send_buffer: self.send_buffer,
            receive: self.drain.map(|drain| ReceiveConfig { drain, buffer }),
        }
    }
}
