//! The `topology.txt` of ns-3's datacenter forks, in the form that HPCC's simulator (Li et al., SIGCOMM'19) brought
//! and later ones keep.
//!
//! ```text
//! 5 1 4                 nodes in all, switches, links
//! 4                     the numbers of the switches; all others, from 0 on, are hosts
//! 0 4 100Gbps 1us 0     one end, other end, rate, delay, share of packets lost to bit errors
//! 1 4 100Gbps 1us 0
//! ...
//! ```
//!
//! The simulators of these forks stop reading after the last link; files often have an explanation there. Rates and
//! delays are as ns-3 writes them: a rate without unit is in bits per second, a delay without unit in seconds.
//!
//! Hosts are numbered in the order of their numbers in the file. Names of hosts and switches keep the file's number
//! (`host7`, `switch4`). A host may have several links. Links lose no packets: a note names shares of lost packets
//! above zero.

use super::{Imported, NetworkPlaces};
use crate::ImportError;
use crate::reader::{FilePlace, TextLine, Word, lines};
use firstlight_net::topology::{Cable, Graph, Node};
use firstlight_units::{Rate, Span};

/// Most nodes of a network.
const MOST: u32 = 100_000;
const HEADER: &str = "the numbers of nodes, of switches and of links";
const LINK: &str = "one end, the other end, rate, delay and error rate, as in \"0 4 100Gbps 1us 0\"";

/// Reads a network; `file` is its name for errors.
///
/// # Errors
/// At the first line that is wrong.
pub fn ns3(file: &str, text: &str) -> Result<Imported, ImportError> {
    let start = FilePlace::start(file);
    let mut lines = lines(file, text, None).peekable();
    let header = lines.next().ok_or_else(|| start.error(format!("the file is empty: begin with {HEADER}")))?;
    let words = header.expect(&[3], HEADER)?;
    let nodes = words[0].whole("the number of nodes", 2, MOST)?;
    let switches = words[1].whole("the number of switches", 0, nodes - 2)?;
    let links = words[2].whole("the number of links", 1, u32::MAX)?;
    let mut reader = Ns3Reader::new(nodes, words[0].place);
    reader.switches(&mut lines, switches, header.end)?;
    reader.number_nodes();
    let mut end = header.end;
    for i in 0..links {
        let Some(line) = lines.next() else {
            return Err(end.error(format!("the file ends after {i} links, and line {} says {links}", header.end.line)));
        };
        reader.link(&line)?;
        end = line.end;
    }
    if let Some(line) = lines.next() {
        let more = 1 + lines.count();
        let note = format!("{more} lines follow the {links} links of the first line; they are not read");
        reader.notes.push(line.end.note(note));
    }
    reader.finish()
}

struct Ns3Reader<'a> {
    graph: Graph,
    places: NetworkPlaces<'a>,
    /// Place at which the file calls a node a switch, by the node's number.
    switch: Vec<Option<FilePlace<'a>>>,
    node: Vec<Node>,
    host_numbers: Vec<u32>,
    /// Place of the first link that loses packets, and how many such links there are.
    lossy: Option<(FilePlace<'a>, usize)>,
    notes: Vec<String>,
}

impl<'a> Ns3Reader<'a> {
    fn new(nodes: u32, header: FilePlace<'a>) -> Self {
        Ns3Reader {
            graph: Graph::default(),
            places: NetworkPlaces::new(header),
            switch: vec![None; nodes as usize],
            node: Vec::new(),
            host_numbers: Vec::new(),
            lossy: None,
            notes: Vec::new(),
        }
    }

    /// Reads the switches' numbers, on one line or several.
    fn switches(
        &mut self,
        lines: &mut impl Iterator<Item = TextLine<'a>>,
        switches: u32,
        mut end: FilePlace<'a>,
    ) -> Result<(), ImportError> {
        let mut left = switches;
        while left > 0 {
            let Some(line) = lines.next() else {
                return Err(end.error(format!("the file ends, and {left} of {switches} switch numbers are missing")));
            };
            for word in &line.words {
                if left == 0 {
                    let problem = format!("'{}' is one switch too many: line 1 says {switches}", word.text);
                    return Err(word.error(problem));
                }
                let number = self.number(word, "the number of a switch")?;
                if self.switch[number].replace(word.place).is_some() {
                    return Err(word.error(format!("switch {number} is named twice: name each once")));
                }
                left -= 1;
            }
            end = line.end;
        }
        Ok(())
    }

    fn number_nodes(&mut self) {
        for (number, switch) in self.switch.iter().enumerate() {
            self.node.push(match switch {
                Some(place) => {
                    self.places.switches.push(*place);
                    self.graph.switch(format!("switch{number}"), "switch")
                }
                None => {
                    self.places.hosts.push(self.places.whole);
                    self.host_numbers.push(number as u32);
                    self.graph.host(format!("host{number}"))
                }
            });
        }
    }

    fn number(&self, word: &Word<'_>, what: &str) -> Result<usize, ImportError> {
        word.whole(what, 0, self.switch.len() as u32 - 1).map(|number| number as usize)
    }

    fn link(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let words = line.expect(&[5], LINK)?;
        let [a, b] = [self.number(&words[0], "the number of a node")?, self.number(&words[1], "the number of a node")?];
        if a == b {
            return Err(words[1].error(format!("the link joins node {a} with itself: name two nodes")));
        }
        let cable = Cable::new(rate(&words[2])?, delay(&words[3])?);
        if error_rate(&words[4])? > 0.0 {
            self.lossy.get_or_insert((words[4].place, 0)).1 += 1;
        }
        for (number, word) in [(a, &words[0]), (b, &words[1])] {
            if let Node::Host(host) = self.node[number] {
                self.places.hosts[host.index()] = word.place;
            }
        }
        self.places.links.push(words[0].place);
        self.graph.link(self.node[a], self.node[b], cable);
        Ok(())
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if let Some((place, links)) = self.lossy {
            let (verb, some) = if links == 1 { ("has", "1 link") } else { ("have", &*format!("{links} links")) };
            self.notes.insert(
                0,
                place.note(format!("{some} {verb} an error rate above zero, which is ignored: links lose no packets")),
            );
        }
        let topology = self.places.build(self.graph)?;
        Ok(Imported { topology, host_numbers: self.host_numbers, notes: self.notes })
    }
}

/// A rate as ns-3 writes it: also `100Gb/s`, `800Kbps` and plain bits per second.
fn rate(word: &Word<'_>) -> Result<Rate, ImportError> {
    let text = word.text.replace("b/s", "bps").replace("Kbps", "kbps");
    let text = if text.bytes().all(|b| b.is_ascii_digit()) { text + "bps" } else { text };
    let rate = text.parse::<Rate>().map_err(|error| word.error(error.to_string()))?;
    if rate.as_bps() == 0 {
        return Err(word.error("a link of zero rate never sends: write for example 10Gbps"));
    }
    Ok(rate)
}

/// A time as ns-3 writes it: also plain seconds.
fn delay(word: &Word<'_>) -> Result<Span, ImportError> {
    let plain = word.text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let text = if plain { format!("{}s", word.text) } else { word.text.into() };
    text.parse().map_err(|error: firstlight_units::UnitError| word.error(error.to_string()))
}

fn error_rate(word: &Word<'_>) -> Result<f64, ImportError> {
    match word.text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(word.error(format!("'{}' is not an error rate: write a share from 0 to 1", word.text))),
    }
}
