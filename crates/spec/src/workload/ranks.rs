//! The hosts of a parallel application's ranks.

use super::shuffle_first;
use crate::error::Problem;
use crate::expander::Expander;
use crate::host_name::HostName;
use firstlight_formats::placement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which hosts have ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RankKeys {
    /// The hosts that have ranks, one each.
    pub among: HostName,
    /// How ranks are placed on these hosts: `packed`, rank 0 on the first one and so on; `spread`, over the racks in
    /// turn; `shuffled`, at random. Anything else is a file, its path relative to the experiment's, with the host of
    /// each rank in a line, as `host3` or `rack0.host3`.
    #[schemars(extend("examples" = ["spread"]))]
    pub placement: String,
}

impl Default for RankKeys {
    fn default() -> Self {
        RankKeys { among: HostName::All, placement: "packed".into() }
    }
}

impl RankKeys {
    /// The hosts that have ranks, in the order of the ranks.
    pub(super) fn hosts(&self, expander: &Expander<'_>) -> Result<Vec<usize>, Box<Problem>> {
        let mut hosts = expander.hosts("among", self.among)?;
        match self.placement.as_str() {
            "packed" => {}
            "spread" => {
                let per_rack = expander.directory.units().1;
                hosts.sort_by_key(|host| (host % per_rack, host / per_rack));
            }
            "shuffled" => {
                let all = hosts.len();
                shuffle_first(&mut expander.random("ranks"), &mut hosts, all);
            }
            file => {
                if expander.has("among") {
                    let text = "has no effect: the file of placement has the hosts; take one of the two out";
                    return Err(expander.problem("among", text));
                }
                return from_file(expander, file);
            }
        }
        Ok(hosts)
    }
}

fn from_file(expander: &Expander<'_>, file: &str) -> Result<Vec<usize>, Box<Problem>> {
    let (path, text) = expander.read_file("placement", file).map_err(|problem| {
        let text = format!("{}; write packed, spread, shuffled or a file", problem.problem);
        expander.problem("placement", text)
    })?;
    let host = |name: &str| match name.parse::<HostName>()? {
        single if single.is_single() => Ok(expander.directory.hosts(single)?[0]),
        many => Err(format!("{many} is not one host: write for example host0")),
    };
    placement::read(&text, &path, host).map_err(|error| expander.imported("placement", error))
}
