//! Flows: from the entries that a user writes to one record for each connection.

use super::error::{Problem, SpecError};
use super::value::Hosts;
use super::values::Values;
use firstlight_circuits::RackId;
use firstlight_net::HostId;
use firstlight_transport::CcConfig;
use firstlight_units::{Bytes, Span};

/// Connections that one host can have: its ports from 10000 on.
const MOST_PER_HOST: usize = 50_000;
/// Connections of one experiment.
const MOST: usize = 1_000_000;

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The `[[flows]]` entry that it comes from, counted from 0.
    pub entry: usize,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Congestion control.
    pub cc: CcConfig,
    /// How much it sends; nothing for a flow that sends until the end.
    pub size: Option<Bytes>,
    /// When it may start first.
    pub start: Span,
    /// It starts at random within this span after `start`.
    pub jitter: Span,
}

impl Flow {
    /// Its racks, when it leaves its own.
    pub fn racks(&self, hosts_per_rack: usize) -> Option<(RackId, RackId)> {
        let rack = |host: HostId| RackId((host.index() / hosts_per_rack) as u16);
        let (src, dst) = (rack(self.src), rack(self.dst));
        (src != dst).then_some((src, dst))
    }
}

/// The hosts of the fabric, by rack.
struct Shape {
    /// None on a star.
    racks: Option<usize>,
    hosts: usize,
}

impl Shape {
    fn of(values: &Values) -> Self {
        match values.integer_opt("fabric.racks") {
            Some(racks) => {
                let per_rack = values.integer("fabric.hosts_per_rack");
                Shape { racks: Some(racks as usize), hosts: (racks * per_rack) as usize }
            }
            None => Shape { racks: None, hosts: values.integer("fabric.hosts") as usize },
        }
    }

    fn per_rack(&self) -> usize {
        self.hosts / self.racks.unwrap_or(1)
    }

    /// The hosts that a name stands for.
    fn hosts(&self, name: Hosts) -> Result<Vec<usize>, String> {
        let rack = |rack: u32| match self.racks {
            None => Err(format!("a star has no racks: write host0 to host{} or all", self.hosts - 1)),
            Some(racks) if rack as usize >= racks => {
                Err(format!("there is no rack{rack}: the fabric has rack0 to rack{}", racks - 1))
            }
            Some(_) => Ok(rack as usize * self.per_rack()),
        };
        match name {
            Hosts::All => Ok((0..self.hosts).collect()),
            Hosts::Rack(r) => rack(r).map(|first| (first..first + self.per_rack()).collect()),
            Hosts::Host(host) if (host as usize) < self.hosts => Ok(vec![host as usize]),
            Hosts::Host(host) => Err(format!("there is no host{host}: the fabric has host0 to host{}", self.hosts - 1)),
            Hosts::RackHost(r, host) => {
                let (first, last) = (rack(r)?, self.per_rack() - 1);
                if host as usize > last {
                    return Err(format!("there is no rack{r}.host{host}: the rack has host0 to host{last}"));
                }
                Ok(vec![first + host as usize])
            }
        }
    }
}

/// One record for each connection, in the order of the entries.
pub(crate) fn expand(values: &Values) -> Result<Vec<Flow>, SpecError> {
    let shape = Shape::of(values);
    let mut flows = vec![];
    let mut problems = vec![];
    for entry in 0..values.count("flows") {
        let table = Entry { values, shape: &shape, index: entry };
        match table.flows() {
            Ok(more) => flows.extend(more),
            Err(problem) => problems.push(*problem),
        }
        if flows.len() > MOST {
            let text = format!("{} flows and more are too many: use at most {MOST}", flows.len());
            problems.push(values.problem(&format!("flows.{entry}.count"), text));
            break;
        }
    }
    if problems.is_empty() {
        problems.extend(crowded(values, &flows, shape.hosts));
    }
    if problems.is_empty() { Ok(flows) } else { Err(SpecError { problems }) }
}

fn crowded(values: &Values, flows: &[Flow], hosts: usize) -> Option<Problem> {
    let mut connections = vec![0usize; hosts];
    for flow in flows {
        for host in [flow.src, flow.dst] {
            connections[host.index()] += 1;
            if connections[host.index()] > MOST_PER_HOST {
                let text =
                    format!("host{} has more than {MOST_PER_HOST} connections, all that its ports allow", host.0);
                return Some(values.problem(&format!("flows.{}", flow.entry), text));
            }
        }
    }
    None
}

/// One `[[flows]]` table.
struct Entry<'a> {
    values: &'a Values,
    shape: &'a Shape,
    index: usize,
}

impl Entry<'_> {
    fn path(&self, key: &str) -> String {
        format!("flows.{}.{key}", self.index)
    }

    fn problem(&self, key: &str, text: impl Into<String>) -> Box<Problem> {
        Box::new(self.values.problem(&self.path(key), text))
    }

    fn flows(&self) -> Result<Vec<Flow>, Box<Problem>> {
        let pairs = self.pairs()?;
        let per_pair = self.values.integer(&self.path("count")) as usize;
        let count = pairs.len() * per_pair;
        let share = self.share(count)?;
        let (start, jitter) = self.start()?;
        let name = self.values.text_opt(&self.path("cc")).unwrap_or_else(|| self.values.text("tcp.cc"));
        let cc = controller(self.values, &name);
        let each = pairs.iter().flat_map(|pair| std::iter::repeat_n(pair, per_pair)).take(MOST + 1);
        let flow = |(nth, &(src, dst)): (usize, &(usize, usize))| Flow {
            entry: self.index,
            src: HostId(src as u16),
            dst: HostId(dst as u16),
            cc,
            size: share.map(|(size, longer)| Bytes::new(size + u64::from((nth as u64) < longer))),
            start,
            jitter,
        };
        Ok(each.enumerate().map(flow).collect())
    }

    /// Who sends to whom.
    fn pairs(&self) -> Result<Vec<(usize, usize)>, Box<Problem>> {
        let side = |key: &str| {
            let name = self.values.hosts(&self.path(key));
            self.shape.hosts(name).map(|hosts| (name, hosts)).map_err(|text| self.problem(key, text))
        };
        let ((from, senders), (to, receivers)) = (side("from")?, side("to")?);
        let single = |name| matches!(name, Hosts::Host(_) | Hosts::RackHost(..));
        let pairs: Vec<(usize, usize)> = match (from, to) {
            (Hosts::Rack(a), Hosts::Rack(b)) if a == b => {
                return Err(self.problem("to", format!("{to} would send to itself: name another rack or a host")));
            }
            (Hosts::Rack(_), Hosts::Rack(_)) => senders.into_iter().zip(receivers).collect(),
            _ if single(from) || single(to) => {
                let all = senders.iter().flat_map(|&src| receivers.iter().map(move |&dst| (src, dst)));
                all.filter(|(src, dst)| src != dst).collect()
            }
            _ => {
                let text = format!("{from} to {to} is not a pattern: use a rack to a rack, or a host at one end");
                return Err(self.problem("to", text));
            }
        };
        if pairs.is_empty() {
            return Err(self.problem("to", format!("{to} would send to itself: name another host")));
        }
        Ok(pairs)
    }

    /// Bytes for each flow, and how many of the first ones send one byte more.
    fn share(&self, count: usize) -> Result<Option<(u64, u64)>, Box<Problem>> {
        let size = self.values.size_opt(&self.path("size"));
        let total = self.values.size_opt(&self.path("total"));
        match (size, total) {
            (Some(_), Some(_)) => Err(self.problem("total", "size and total exclude each other: keep one")),
            (Some(size), None) => Ok(Some((size.get(), 0))),
            (None, Some(total)) if total.get() < count as u64 => {
                Err(self.problem("total", format!("{total} is too little for {count} flows: use at least {count}B")))
            }
            (None, Some(total)) => Ok(Some((total.get() / count as u64, total.get() % count as u64))),
            (None, None) => Ok(None),
        }
    }

    fn start(&self) -> Result<(Span, Span), Box<Problem>> {
        let (start, jitter) = (self.values.span(&self.path("start")), self.values.span(&self.path("jitter")));
        let duration = self.values.span("duration");
        let latest = start.as_ps().checked_add(jitter.as_ps());
        if latest.is_none_or(|latest| latest >= duration.as_ps()) {
            let key = if start >= duration || jitter.is_zero() { "start" } else { "jitter" };
            let text = format!(
                "the flow may start after the run's end: start + jitter must be less than duration, {duration}"
            );
            return Err(self.problem(key, text));
        }
        Ok((start, jitter))
    }
}

/// The controller of that name, with the parameters that its table gives.
fn controller(values: &Values, name: &str) -> CcConfig {
    let mut config = CcConfig::from_name(name).expect("the registry takes its names from the controllers");
    match &mut config {
        CcConfig::NewReno(_) => {}
        CcConfig::Cubic(cubic) => {
            cubic.beta = values.number("cubic.beta");
            cubic.fast_convergence = values.flag("cubic.fast_convergence");
            cubic.hystart = values.flag("cubic.hystart");
            cubic.coarse = values.flag("cubic.coarse");
        }
        CcConfig::Dctcp(dctcp) => {
            dctcp.g = values.number("dctcp.g");
            dctcp.initial_alpha = values.number("dctcp.initial_alpha");
        }
        CcConfig::ReTcp(retcp) => {
            retcp.alpha = values.number("retcp.alpha");
            retcp.beta = values.number("retcp.beta");
        }
    }
    config
}
