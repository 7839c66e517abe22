//! Firstlight's own file of a network: each line is a host, a switch or a link.
//!
//! ```text
//! # switch NAME [TIER]; by default the tier is the name without its number
//! switch tor0
//! switch tor1
//! switch big aggregation
//! # host NAME SWITCH RATE DELAY (propagation)
//! host h0 tor0 10Gbps 500ns
//! host h1 tor1 10Gbps 500ns
//! # link NODE NODE RATE DELAY, and RATE DELAY of the reverse direction where they differ
//! link tor0 big 40Gbps 1us
//! link tor1 big 40Gbps 1us 10Gbps 2us
//! ```
//!
//! Hosts and switches are numbered in the order of their lines. A switch has its ports in the order of the lines of its
//! links and hosts. A node has its own line before it is used, so that a misspelt name is an error. Several lines for
//! the same two switches are parallel links. A link of a switch and a host is a further link of that host. `#` begins a
//! comment.

use super::{Imported, NetworkPlaces};
use crate::ImportError;
use crate::nearest;
use crate::reader::{FilePlace, TextLine, Word, lines};
use firstlight_net::topology::{Cable, Graph, Node, Wire};
use firstlight_units::{Rate, Span};
use std::collections::BTreeMap;

const HOST: &str = "\"host NAME SWITCH RATE DELAY\", and RATE DELAY of the reverse direction where they differ";
const LINK: &str = "\"link NODE NODE RATE DELAY\", and RATE DELAY of the reverse direction where they differ";

/// Reads a network; `file` is its name for errors.
///
/// # Errors
/// At the first line that is wrong.
pub fn graph(file: &str, text: &str) -> Result<Imported, ImportError> {
    let whole = FilePlace::start(file);
    let mut reader = GraphReader { graph: Graph::default(), names: BTreeMap::new(), places: NetworkPlaces::new(whole) };
    for line in lines(file, text, Some('#')) {
        reader.line(&line)?;
    }
    let host_numbers = (0..reader.places.hosts.len() as u32).collect();
    Ok(Imported { topology: reader.places.build(reader.graph)?, host_numbers, notes: Vec::new() })
}

struct GraphReader<'a> {
    graph: Graph,
    names: BTreeMap<&'a str, (Node, FilePlace<'a>)>,
    places: NetworkPlaces<'a>,
}

impl<'a> GraphReader<'a> {
    fn line(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let word = line.words[0];
        match word.text {
            "switch" => self.switch(line.expect(&[2, 3], "\"switch NAME\" or \"switch NAME TIER\"")?),
            "host" => self.host(line.expect(&[5, 7], HOST)?),
            "link" => self.link(line.expect(&[5, 7], LINK)?),
            other => Err(word.error(format!("'{other}' cannot begin a line: write switch, host or link"))),
        }
    }

    fn switch(&mut self, words: &[Word<'a>]) -> Result<(), ImportError> {
        let name = self.new_name(&words[1])?;
        let tier = words.get(2).map_or(name.trim_end_matches(|c: char| c.is_ascii_digit()), |word| word.text);
        let node = self.graph.switch(name, if tier.is_empty() { "switch" } else { tier });
        self.names.insert(name, (node, words[1].place));
        self.places.switches.push(words[1].place);
        Ok(())
    }

    fn host(&mut self, words: &[Word<'a>]) -> Result<(), ImportError> {
        let name = self.new_name(&words[1])?;
        let switch = self.known_switch(&words[2])?;
        let cable = cable(&words[3..])?;
        let node = self.graph.host(name);
        self.names.insert(name, (node, words[1].place));
        self.places.hosts.push(words[1].place);
        self.places.links.push(words[1].place);
        self.graph.link(node, switch, cable);
        Ok(())
    }

    fn link(&mut self, words: &[Word<'a>]) -> Result<(), ImportError> {
        let [a, b] = match self.names.get(words[1].text) {
            // A further link of a host.
            Some((host @ Node::Host(_), _)) => [*host, self.known_switch(&words[2])?],
            _ => [self.known_switch(&words[1])?, self.known(&words[2])?],
        };
        if a == b {
            return Err(words[2].error(format!("the link joins {} with itself: name two nodes", words[1].text)));
        }
        self.places.links.push(words[1].place);
        self.graph.link(a, b, cable(&words[3..])?);
        Ok(())
    }

    fn new_name(&self, word: &Word<'a>) -> Result<&'a str, ImportError> {
        let name = word.text;
        if let Some((_, first)) = self.names.get(name) {
            return Err(word.error(format!("{name} is already the node of line {}: use another name", first.line)));
        }
        if !name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) {
            return Err(word.error(format!("'{name}' is not a name: use letters, digits, '_', '-' and '.'")));
        }
        Ok(name)
    }

    fn known_switch(&self, word: &Word<'a>) -> Result<Node, ImportError> {
        match self.known(word)? {
            Node::Host(_) => Err(word.error(format!("{} is a host: name a switch", word.text))),
            switch @ Node::Switch(_) => Ok(switch),
        }
    }

    fn known(&self, word: &Word<'a>) -> Result<Node, ImportError> {
        match self.names.get(word.text) {
            Some((node, _)) => Ok(*node),
            None => {
                let switches = self.names.iter().filter(|(_, (node, _))| matches!(node, Node::Switch(_)));
                let near = nearest(word.text, switches.map(|(name, _)| *name))
                    .map_or(String::new(), |name| format!(" or did you mean {name}?"));
                let name = word.text;
                Err(word.error(format!("there is no switch {name} above: add a line \"switch {name}\" before{near}")))
            }
        }
    }
}

/// Rate and delay, and those of the reverse direction.
fn cable(words: &[Word<'_>]) -> Result<Cable, ImportError> {
    let there = wire(&words[..2])?;
    let back = if words.len() > 2 { wire(&words[2..])? } else { there };
    Ok(Cable { there, back })
}

fn wire(words: &[Word<'_>]) -> Result<Wire, ImportError> {
    let (rate, delay): (Rate, Span) = (words[0].quantity()?, words[1].quantity()?);
    if rate.as_bps() == 0 {
        return Err(words[0].error("a link of zero rate never sends: write for example 10Gbps"));
    }
    Ok(Wire { rate, delay })
}
