//! Flows from a file: a flow list, or a connection matrix of csg-htsim.

use super::{Common, Expansion, Workload, after};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use crate::tables::Connections;
use firstlight_formats::{ImportError, ListedFlow, connections, flows};
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A list of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowFile {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Hosts and congestion control.
    #[serde(flatten)]
    pub connections: Connections,
    /// The list, its path relative to the experiment's: a flow list as HPCC's ns-3 reads it or, if its name ends in
    /// `.cm`, a connection matrix of csg-htsim.
    #[schemars(extend("examples" = ["flows.txt"]))]
    pub file: String,
    /// How many flows: the first ones of the list.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "flows", "x-without" = "all"))]
    pub flows: Option<u32>,
}

impl Workload for FlowFile {
    fn common(&self) -> &Common {
        &self.common
    }

    fn connections(&self) -> Option<&Connections> {
        Some(&self.connections)
    }

    /// The flows of the file, in its order.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let (path, text) = expander.read_file("file", &self.file)?;
        let matrix = Path::new(&path).extension().is_some_and(|extension| extension == "cm");
        let read = if matrix { connections::read } else { flows::read };
        let listed =
            read(&text, &path, &expander.directory.numbers).map_err(|error| expander.imported("file", error))?;
        let asked = self.flows.map(|flows| flows as usize);
        let listed = &listed[..listed.len().min(asked.unwrap_or(MOST_FLOWS + 1))];
        let pairs: Vec<HostPair> = listed.iter().map(|flow| (flow.src.index(), flow.dst.index())).collect();
        let mut flows = expander.between(&self.connections, self.common.class, &pairs)?;
        expander.starts(self.common.start, Span::ZERO)?;
        let own_class = expander.has("class");
        for (flow, listed) in flows.iter_mut().zip(listed) {
            let ListedFlow { size, start, class, place, .. } = listed;
            flow.start = after(*start, self.common.start, 1);
            if flow.start >= expander.duration() {
                let problem = format!(
                    "the flow would start at {}, after the run's end: use a longer duration, or fewer flows",
                    flow.start
                );
                let (file, (line, column)) = (path.clone(), *place);
                return Err(expander.imported("file", ImportError { file, line, column, problem }));
            }
            flow.size = *size;
            if let (Some(class), false) = (class, own_class) {
                flow.class = *class;
            }
        }
        Ok(Expansion { flows, asked, ..Expansion::default() })
    }
}
