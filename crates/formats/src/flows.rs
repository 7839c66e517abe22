//! Flow lists as HPCC's ns-3 fork and those after it read them (`simulation/mix/flow.txt`, github.com/alibaba-edu/
//! High-Precision-Congestion-Control): the first line counts the flows; each line after it is one flow, `source
//! destination priority-group destination-port bytes start-in-seconds`. More flows than that are an error, as
//! fewer are: the fork would not read them. Other text may follow, as in the published files.
//!
//! Hosts have the numbers of the network's file, or on a fabric without a file their own. The priority group becomes
//! the flow's traffic class. The port is not used: hosts choose ports themselves. The starts may be in any order.

use super::reader::{FilePlace, TextLine, lines};
use super::{ImportError, ListedFlow};
use firstlight_units::{Bytes, Span};

const COLUMNS: [&str; 6] = ["source", "destination", "priority group", "port", "bytes", "start in seconds"];

/// Reads a list; `file` is its name for errors, `hosts` has the number of each host of the fabric, ascending.
///
/// # Errors
/// When a line is wrong: with its place, and what would be right.
pub fn read(text: &str, file: &str, hosts: &[u32]) -> Result<Vec<ListedFlow>, ImportError> {
    let mut lines = lines(file, text, Some('#'));
    let Some(first) = lines.next() else {
        return Err(FilePlace::start(file).error("it is empty: the first line counts the flows"));
    };
    let [count] = first.columns(["number of flows"])?;
    let count: usize = count.whole("how many flows follow", 0, 1 << 30)?;
    let mut flows = vec![];
    for line in lines.by_ref().take(count) {
        flows.push(flow(&line, hosts)?);
    }
    let more = lines.filter(is_flow).count();
    if more > 0 {
        let problem = format!("{count} flows are announced, and {} follow: count them anew", count + more);
        return Err(first.words[0].error(problem));
    }
    if flows.len() < count {
        let problem = format!("{count} flows are announced, and {} follow: count them anew", flows.len());
        return Err(first.words[0].error(problem));
    }
    Ok(flows)
}

/// Whether a line has as many numbers as a flow.
fn is_flow(line: &TextLine<'_>) -> bool {
    line.words.len() == COLUMNS.len() && line.words.iter().all(|word| word.text.parse::<f64>().is_ok())
}

fn flow(line: &TextLine<'_>, hosts: &[u32]) -> Result<ListedFlow, ImportError> {
    let [src, dst, group, port, bytes, start] = line.columns(COLUMNS)?;
    let flow = ListedFlow {
        src: src.host("the sending host", hosts)?,
        dst: dst.host("the receiving host", hosts)?,
        class: Some(group.whole("a priority group", 0, 7)?),
        size: Some(Bytes::new(bytes.whole("how many bytes it sends", 1, 1 << 60)?)),
        start: seconds(start.text).ok_or_else(|| {
            let found = start.text;
            start.error(format!("expected its start in seconds, found '{found}': write for example 2.000001"))
        })?,
        trigger: None,
        place: (start.place.line, start.place.column),
    };
    port.whole("the receiver's port", 0, u16::MAX)?;
    if flow.src == flow.dst {
        return Err(dst.error(format!("host {} sends to itself: write another one", dst.text)));
    }
    Ok(flow)
}

/// A decimal number of seconds, without rounding.
fn seconds(text: &str) -> Option<Span> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    format!("{text}s").parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::HostId;

    fn error(text: &str) -> String {
        read(text, "flows.txt", &[0, 1, 2, 3]).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn published_lists_are_read() {
        let text = "2\n2 1 3 100 200000000 2\n3 1 0 100 5000 2.000000001\n\nFirst line: # of flows\n...\n";
        let flows = read(text, "flows.txt", &[0, 1, 2, 3]).unwrap();
        let ends: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst, flow.class)).collect();
        assert_eq!(ends, [(HostId(2), HostId(1), Some(3)), (HostId(3), HostId(1), Some(0))]);
        assert_eq!(flows[0].size, Some(Bytes::new(200_000_000)));
        assert_eq!(flows[1].start, Span::from_secs(2) + Span::from_ns(1));
        assert_eq!(flows[1].place, (3, 16));
    }

    #[test]
    fn a_list_may_have_no_flow() {
        assert_eq!(read("0\n", "flows.txt", &[0, 1]), Ok(vec![]));
        assert_eq!(error("0\n0 1 3 100 5 2\n"), "flows.txt:1:1: 0 flows are announced, and 1 follow: count them anew");
    }

    #[test]
    fn wrong_lines_are_named() {
        let all = "a line has source, destination, priority group, port, bytes, start in seconds";
        assert_eq!(error(""), "flows.txt:1:1: it is empty: the first line counts the flows");
        assert_eq!(error("0 1 3 100 5 2"), "flows.txt:1:3: '1' is one word too many: a line has number of flows");
        assert_eq!(
            error("two"),
            "flows.txt:1:1: expected how many flows follow, found 'two': write a whole number from 0 to 1073741824"
        );
        assert_eq!(error("2\n0 1 3 100 5 2\n"), "flows.txt:1:1: 2 flows are announced, and 1 follow: count them anew");
        assert_eq!(
            error("1\n0 1 3 100 5 2\n\n1 0 3 100 5 2\nand so on\n2 0 3 100 5 2\n"),
            "flows.txt:1:1: 1 flows are announced, and 3 follow: count them anew"
        );
        assert_eq!(error("1\n0 1 3 100 5\n"), format!("flows.txt:2:12: start in seconds is missing: {all}"));
        assert_eq!(error("1\n0 1 3 100 5 2 9\n"), format!("flows.txt:2:15: '9' is one word too many: {all}"));
        assert_eq!(
            error("1\n0 4 3 100 5 2\n"),
            "flows.txt:2:3: expected the receiving host, found '4': write a whole number from 0 to 3"
        );
        assert_eq!(error("1\n1 1 3 100 5 2\n"), "flows.txt:2:3: host 1 sends to itself: write another one");
        assert_eq!(
            error("1\n0 1 8 100 5 2\n"),
            "flows.txt:2:5: expected a priority group, found '8': write a whole number from 0 to 7"
        );
        assert_eq!(
            error("1\n0 1 3 65536 5 2\n"),
            "flows.txt:2:7: expected the receiver's port, found '65536': write a whole number from 0 to 65535"
        );
        assert_eq!(
            error("1\n0 1 3 100 0 2\n"),
            "flows.txt:2:11: expected how many bytes it sends, found '0': write a whole number from 1 to \
             1152921504606846976"
        );
        assert_eq!(
            error("1\n0 1 3 100 5 -2\n"),
            "flows.txt:2:13: expected its start in seconds, found '-2': write for example 2.000001"
        );
        assert_eq!(
            error("1\n0 1 3 100 5 2s\n"),
            "flows.txt:2:13: expected its start in seconds, found '2s': write for example 2.000001"
        );
        assert_eq!(
            error("1\n0 1 3 100 5 0.0000000000001\n"),
            "flows.txt:2:13: expected its start in seconds, found '0.0000000000001': write for example 2.000001"
        );
    }
}
