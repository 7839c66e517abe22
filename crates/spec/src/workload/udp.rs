//! Applications on UDP, at a constant rate or on and off. Times on and off are fixed, or exponential; a packet goes out
//! at once when a source goes on, and the next ones at the rate's spacing while it is on.

use super::arrivals::Arrivals;
use super::datagrams::{Bursts, Datagrams, Probe};
use super::{Common, Expansion, SharedKeys, Workload, after};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Datagrams at a constant rate, or on and off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Udp {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, as for `[[flows]]`.
    #[schemars(extend("examples" = ["host0"]))]
    pub to: HostName,
    /// The packets' rate, IP headers included.
    pub rate: Rate,
    /// How long each source sends; then it stops.
    #[schemars(extend("x-above" = "0s", "x-without" = "until the run's end"))]
    pub hold: Option<Span>,
    /// How long a source sends before it is silent.
    #[schemars(extend("x-above" = "0s", "x-without" = "all the time"))]
    pub on: Option<Span>,
    /// How long a source is silent before it sends again.
    #[schemars(extend("x-above" = "0s", "x-without" = "see `on`"))]
    pub off: Option<Span>,
    /// These times are drawn at random; `on` and `off` are their means.
    #[serde(default)]
    pub exponential: bool,
    /// What the datagrams are like.
    #[serde(flatten)]
    pub datagrams: Datagrams,
}

impl Workload for Udp {
    fn keys(&self) -> &dyn SharedKeys {
        &self.common
    }

    fn packet(&self) -> Option<Bytes> {
        self.datagrams.packet
    }

    /// An application for each pair of hosts.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let pairs = expander.pairs(self.from, self.to)?;
        let packet = self.datagrams.packet.unwrap_or(expander.experiment.hosts.mtu);
        let interval = ("rate", self.rate.tx_time(packet));
        let one = Probe::new(expander, &self.common, &pairs, packet, interval, self.datagrams.send_buffer)?;
        let mut bursts = self.bursts(expander)?;
        let of = |pair: &HostPair| {
            let all = bursts.draw(expander, &one)?;
            let Some((&(start, count), more)) = all.split_first() else {
                return Err(expander.problem("on", "nothing would be sent: use a longer `on`"));
            };
            Ok(Probe { start, count: Some(count), more: more.to_vec(), ..one.between(*pair) })
        };
        let probes = pairs.iter().map(of).collect::<Result<_, _>>()?;
        Ok(Expansion { probes, ..Expansion::default() })
    }
}

impl Udp {
    fn bursts(&self, expander: &Expander<'_>) -> Result<Bursts, Box<Problem>> {
        let duration = expander.duration();
        let end = self.hold.map_or(duration, |hold| after(self.common.start, hold, 1).min(duration));
        let times = match (self.on, self.off) {
            (Some(on), Some(off)) => Some([on, off]),
            (None, None) if !self.exponential => None,
            (None, _) => return Err(expander.missing("on", "\"1ms\"")),
            (_, None) => return Err(expander.missing("off", "\"1ms\"")),
        };
        let random = times.filter(|_| self.exponential).map(|times| {
            let drawn =
                |nth: usize| Arrivals::new(expander.random(["on", "off"][nth]), Span::ZERO, times[nth].as_ps() as f64);
            [drawn(0), drawn(1)]
        });
        Ok(Bursts { end, times, random })
    }
}
