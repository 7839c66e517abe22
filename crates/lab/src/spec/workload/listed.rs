//! Flows from a file: a flow list, or a connection matrix of csg-htsim.

use super::super::error::Problem;
use super::super::flows::{MOST, Pair, Table};
use super::super::hosts::HostKind;
use super::patterns::required;
use super::{Made, after};
use firstlight_formats::{ImportError, ListedFlow, connections, flows};
use std::path::Path;

/// The file's flows, in its order.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let values = table.values;
    required(table, "file", "\"flows.txt\"")?;
    let (path, text) = table.file("file")?;
    let matrix = Path::new(&path).extension().is_some_and(|extension| extension == "cm");
    let read = if matrix { connections::read } else { flows::read };
    let listed = read(&text, &path, &table.shape.numbers).map_err(|error| table.imported("file", error))?;
    let asked = values.integer_opt(&table.path("flows")).map(|flows| flows as usize);
    let listed = &listed[..listed.len().min(asked.unwrap_or(MOST + 1))];
    let pairs: Vec<Pair> = listed.iter().map(|flow| (flow.src.index(), flow.dst.index())).collect();
    let mut made = table.between(&pairs)?;
    let (begin, _) = table.start()?;
    let simulated = values.host_kind_of(&table.entry.to_string()) == HostKind::Simulated;
    let own_class = values.has(&table.path("class"));
    for (flow, listed) in made.iter_mut().zip(listed) {
        let ListedFlow { size, start, class, place, .. } = listed;
        flow.start = after(*start, begin, 1);
        if flow.start >= table.duration() {
            let problem = format!(
                "the flow would start at {}, after the run's end: use a longer duration, or fewer flows",
                flow.start
            );
            let (file, (line, column)) = (path.clone(), *place);
            return Err(table.imported("file", ImportError { file, line, column, problem }));
        }
        flow.size = *size;
        if let (Some(class), true, false) = (class, simulated, own_class) {
            flow.class = *class;
        }
    }
    Ok(Made { flows: made, asked, ..Made::default() })
}
