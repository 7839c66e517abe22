//! What the switches of a packet fabric do, and which of their queues are watched.

use super::error::SpecError;
use super::red;
use super::values::Values;
use firstlight_formats::nearest;
use firstlight_net::topology::{PortId, Topology};
use firstlight_net::{CLASSES, Discipline, Length, Limit, Marking, PhantomConfig, SharedBufferConfig};
use firstlight_sim::SwitchConfig;

/// The switches that checked values describe.
pub(super) fn read(values: &Values) -> Result<SwitchConfig, SpecError> {
    let classes = values.count("switch.classes");
    if classes > CLASSES {
        let text = format!("{classes} classes are too many: a packet's class is 0 to {}", CLASSES - 1);
        return Err(values.problem(&format!("switch.classes.{CLASSES}"), text).into());
    }
    let classes = (0..classes).map(|class| discipline(values, &format!("switch.classes.{class}")));
    let buffer =
        values.size_opt("switch.buffer").map(|size| SharedBufferConfig { size, alpha: values.number("switch.alpha") });
    if let Some(SharedBufferConfig { size, alpha }) = buffer {
        let (room, mtu) = (size.get() as f64 * alpha.min(1.0), values.size("hosts.mtu"));
        if room < mtu.get() as f64 {
            let text = format!("{size} with alpha = {alpha} hold no packet of {mtu} at any port: use more");
            return Err(values.problem("switch.buffer", text).into());
        }
    }
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    let discipline = if classes.is_empty() { discipline(values, "switch")? } else { Discipline::default() };
    Ok(SwitchConfig { discipline, classes, buffer, pfc: None })
}

/// What the keys of one queue say.
fn discipline(values: &Values, table: &str) -> Result<Discipline, SpecError> {
    let path = |key: &str| format!("{table}.{key}");
    let (red, phantom) = (path("red"), path("phantom"));
    let given = [path("ecn"), red.clone(), phantom.clone()];
    let given: Vec<&String> = given.iter().filter(|key| values.has(key) || values.tables.contains_key(*key)).collect();
    if let [first, second, ..] = given[..] {
        return Err(values
            .problem(second, format!("there is {first} already, and a queue marks in one way: take one of them out"))
            .into());
    }
    let limit = match values.length_opt(&path("queue")) {
        None => Limit::None,
        Some(Length::Packets(packets)) => Limit::Packets(packets),
        Some(Length::Bytes(bytes)) => Limit::Bytes(bytes),
    };
    let marking = if values.tables.contains_key(&red) {
        Marking::Red(red::read(values, &red)?)
    } else if values.tables.contains_key(&phantom) {
        let (drain, threshold) = (values.number(&path("phantom.drain")), values.size(&path("phantom.threshold")));
        Marking::Phantom(PhantomConfig { drain, threshold })
    } else {
        values.length_opt(&path("ecn")).map_or(Marking::None, Marking::Threshold)
    };
    let discipline = Discipline { limit, marking };
    discipline.check().map_err(|error| values.problem(&path(error.parameter), error.problem))?;
    Ok(discipline)
}

/// Checks that `measure.queues` names ports of the network, each once.
pub(super) fn watched(values: &Values, topology: &Topology) -> Result<(), SpecError> {
    const KEY: &str = "measure.queues";
    let wanted = values.texts(KEY);
    if values.has(KEY) && wanted.is_empty() {
        return Err(values.problem(KEY, "an empty list watches nothing: name ports, or take it out").into());
    }
    let names = || (0..topology.ports().len()).map(|port| topology.queue_name(PortId(port as u32)));
    for (index, name) in wanted.iter().enumerate() {
        if wanted[..index].contains(name) {
            return Err(values.problem(KEY, format!("'{name}' is there twice: name it once")).into());
        }
        if names().any(|port| port == *name) {
            continue;
        }
        let all: Vec<String> = names().collect();
        let examples = || {
            let between = all.iter().find(|name| name.contains("->"));
            let names: Vec<&str> = all.first().into_iter().chain(between).map(String::as_str).collect();
            format!("ports are called {}", names.join(", "))
        };
        let near = nearest(name, all.iter().map(String::as_str));
        let right = near.map_or_else(examples, |near| format!("did you mean {near}?"));
        return Err(values.problem(KEY, format!("there is no port '{name}': {right}")).into());
    }
    Ok(())
}
