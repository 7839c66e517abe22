//! Steady traffic that adds up to a demand matrix from a file.
//!
//! An entry is a multiple of `rate`. Its pair gets flows of one size at constant spacing, so that they come to that
//! rate of payload; the first one starts at a random part of the spacing, so that pairs do not start together. Entries
//! are of racks, whose hosts take turns, or, where a fabric has no racks, of hosts.

use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use firstlight_formats::matrix;
use firstlight_net::uniform;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Moments are kept in parts of a picosecond, so that they do not drift.
const FRACTION: u32 = 32;

/// Steady flows that add up to a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemandMatrix {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The matrix, its path relative to the experiment's: a line for each sending rack (host, where there are no
    /// racks), entries separated by commas, 0 in the diagonal.
    pub file: String,
    /// The rate of payload of an entry of 1.
    pub rate: Rate,
    /// How much each flow sends.
    pub size: Bytes,
}

impl Workload for DemandMatrix {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    /// The flows, pair by pair.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        expander.starts(self.shared.common.start, Span::ZERO)?;
        let (units, hosts) = expander.directory.units();
        let (path, text) = expander.read_file("file", &self.file)?;
        let entries = matrix::read(&text, &path, units).map_err(|error| expander.imported("file", error))?;
        let mut random = expander.random("phases");
        let (mut pairs, mut starts): (Vec<HostPair>, Vec<Span>) = (vec![], vec![]);
        for (from, row) in entries.iter().enumerate() {
            for (to, &entry) in row.iter().enumerate().filter(|(_, entry)| **entry > 0.0) {
                let phase = uniform(&mut random, 1 << 32);
                for (turn, at) in self.moments(entry, phase, expander.duration()).enumerate() {
                    pairs.push((from * hosts + (to + turn) % hosts, to * hosts + (from + turn) % hosts));
                    starts.push(at);
                    if pairs.len() > MOST_FLOWS {
                        let text =
                            format!("more than {MOST_FLOWS} flows would start: use larger ones, or a lower rate");
                        return Err(expander.problem("size", text));
                    }
                }
            }
        }
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &pairs)?;
        for (flow, start) in flows.iter_mut().zip(starts) {
            (flow.start, flow.size) = (start, Some(self.size));
        }
        Ok(Expansion { flows, ..Expansion::default() })
    }
}

impl DemandMatrix {
    /// When the flows of an entry start. The first one starts at the part `phase`, in 2^-32, of the spacing.
    fn moments(&self, entry: f64, phase: u64, end: Span) -> impl Iterator<Item = Span> {
        let gap = self.size.get() as f64 * 8e12 / (self.rate.as_bps() as f64 * entry);
        let gap = (gap.min(2f64.powi(63)) * 2f64.powi(FRACTION as i32)) as u128;
        let phase = (gap * u128::from(phase)) >> 32;
        let start = self.shared.common.start.as_ps();
        let moments = (0u128..).map(move |nth| (phase + gap * nth) >> FRACTION);
        let moments = moments.map_while(move |at| u64::try_from(at).ok()?.checked_add(start).map(Span::from_ps));
        moments.take_while(move |at| *at < end)
    }
}
