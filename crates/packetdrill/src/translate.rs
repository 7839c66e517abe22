//! Between the packets of a script and those of the endpoint.
//!
//! In a script both streams start at 0. The endpoint's own timestamps have other values than the script's. A value that
//! the script gives to a timestamp of the endpoint is translated back when the script echoes it.

use crate::script::{PacketSpec, TcpOption};
use firstlight_net::{FlowTuple, Packet, SackBlock, TcpFlags, TcpHeader, TcpSegment};
use firstlight_transport::{Announcement, Endpoint};
use std::collections::BTreeMap;

/// IPv4 and TCP header without options, in bytes.
const BARE_HEADER: u16 = 40;
/// Letters of TCP's flags, from the lowest bit.
const LETTERS: &str = "FSRP.UEW";

/// One connection, as the script and as the endpoint see it.
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
    /// The endpoint's sequence number of the script's 0, of what the endpoint sends.
    pub(crate) local_isn: u32,
    /// The endpoint's sequence number of the script's 0, of what the peer sends.
    pub(crate) remote_isn: u32,
    /// The endpoint's timestamps by the script's values.
    timestamps: BTreeMap<u32, u32>,
}

/// A packet that the endpoint has sent, in the script's terms.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) flags: String,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) options: Vec<TcpOption>,
}

impl Translation {
    pub(crate) fn new(local: Endpoint, remote: Endpoint, local_isn: u32, remote_isn: u32) -> Self {
        Translation { local, remote, local_isn, remote_isn, timestamps: BTreeMap::new() }
    }

    /// The packet that the peer sends. `Err` names an option that the endpoint does not know.
    pub(crate) fn inbound(&self, spec: &PacketSpec) -> Result<Packet, String> {
        let options = spec.options.as_deref().unwrap_or_default();
        let header = BARE_HEADER + options.iter().map(length).sum::<u16>().next_multiple_of(4);
        let timestamp = options.iter().find_map(|option| match option {
            TcpOption::Timestamp { value, echo } => Some((*value, self.timestamps.get(echo).copied().unwrap_or(*echo))),
            _ => None,
        });
        let (tsval, tsecr) = timestamp.unwrap_or_default();
        let tcp = TcpHeader {
            seq: spec.seq.wrapping_add(self.remote_isn),
            ack: spec.ack.map_or(0, |ack| ack.wrapping_add(self.local_isn)),
            window: spec.window.unwrap_or(0),
            flags: flags(&spec.flags),
            tsval,
            tsecr,
        };
        let (Endpoint { host: src, port: sport }, Endpoint { host: dst, port: dport }) = (self.remote, self.local);
        let tuple = FlowTuple { src, sport, dst, dport };
        let mut packet =
            Packet::new_tcp(tuple, header as u8, spec.len as u16, tcp).with_ecn(spec.ecn.unwrap_or_default());
        let mut segment = packet.tcp_mut().expect("a segment was made");
        if tcp.flags.has(TcpFlags::SYN) {
            announcement(options).write(&mut segment);
        }
        for option in options {
            match option {
                TcpOption::Sack(blocks) => {
                    for &(start, end) in blocks.iter().take(3) {
                        let [start, end] = [start, end].map(|seq| seq.wrapping_add(self.local_isn));
                        segment.push_sack(SackBlock { start, end });
                    }
                }
                TcpOption::Other(name) => return Err(name.clone()),
                _ => {}
            }
        }
        Ok(packet)
    }

    /// A packet that the endpoint has sent.
    pub(crate) fn outbound(&self, p: TcpSegment<'_>) -> Seen {
        let letters = LETTERS.char_indices().filter(|(bit, _)| p.flags().0 >> bit & 1 != 0).map(|(_, letter)| letter);
        let options = if p.flags().has(TcpFlags::SYN) { self.syn_options(p) } else { self.options(p) };
        Seen {
            flags: letters.collect(),
            seq: p.seq().wrapping_sub(self.local_isn),
            len: p.payload(),
            ack: if p.flags().has(TcpFlags::ACK) { p.ack().wrapping_sub(self.remote_isn) } else { 0 },
            window: p.window(),
            options,
        }
    }

    fn options(&self, p: TcpSegment<'_>) -> Vec<TcpOption> {
        let mut options = vec![];
        let sack = if p.sacks() > 0 { 4 + 8 * u16::from(p.sacks()) } else { 0 };
        if u16::from(p.header()) >= BARE_HEADER + sack + 12 {
            let stamp = TcpOption::Timestamp { value: p.tsval(), echo: p.tsecr() };
            options.extend([TcpOption::Nop, TcpOption::Nop, stamp]);
        }
        if p.sacks() > 0 {
            let wire = |seq: u32| seq.wrapping_sub(self.remote_isn);
            let blocks = p.sack_blocks().map(|block| (wire(block.start), wire(block.end)));
            options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(blocks.collect())]);
        }
        options
    }

    /// The options of a SYN, in the order in which Linux writes them.
    fn syn_options(&self, p: TcpSegment<'_>) -> Vec<TcpOption> {
        let Some(announced) = Announcement::read(p) else { return vec![] };
        let mut options = vec![TcpOption::Mss(announced.segment)];
        let padding = [TcpOption::Nop, TcpOption::Nop];
        if announced.sack || announced.timestamps {
            options.extend(if announced.sack && announced.timestamps { vec![] } else { padding.to_vec() });
            options.extend(announced.sack.then_some(TcpOption::SackPermitted));
            let stamp = TcpOption::Timestamp { value: p.tsval(), echo: p.tsecr() };
            options.extend(announced.timestamps.then_some(stamp));
        }
        if let Some(scale) = announced.scale {
            options.extend([TcpOption::Nop, TcpOption::WindowScale(scale)]);
        }
        options
    }

    /// Stores the script's value of a timestamp that the endpoint has sent.
    pub(crate) fn name_timestamp(&mut self, script: u32, own: u32) {
        self.timestamps.insert(script, own);
    }

    /// The first timestamp that the endpoint has sent, as the script and as the endpoint have it.
    pub(crate) fn first_timestamp(&self) -> Option<(u32, u32)> {
        self.timestamps.first_key_value().map(|(&script, &own)| (script, own))
    }
}

fn flags(letters: &str) -> TcpFlags {
    TcpFlags(letters.chars().filter_map(|letter| LETTERS.find(letter)).map(|bit| 1 << bit).sum())
}

fn announcement(options: &[TcpOption]) -> Announcement {
    let find = |wanted: fn(&TcpOption) -> Option<u16>| options.iter().find_map(wanted);
    let mss = find(|option| if let TcpOption::Mss(mss) = option { Some(*mss) } else { None });
    let scale = find(|option| if let TcpOption::WindowScale(scale) = option { Some(u16::from(*scale)) } else { None });
    Announcement {
        // The value where none is announced (RFC 9293, section 3.7.1).
        segment: mss.unwrap_or(536),
        scale: scale.map(|scale| scale as u8),
        sack: options.contains(&TcpOption::SackPermitted),
        timestamps: options.iter().any(|option| matches!(option, TcpOption::Timestamp { .. })),
    }
}

/// Bytes of an option in the header.
fn length(option: &TcpOption) -> u16 {
    match option {
        TcpOption::Nop | TcpOption::End => 1,
        TcpOption::Mss(_) => 4,
        TcpOption::WindowScale(_) => 3,
        TcpOption::SackPermitted => 2,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len() as u16,
        TcpOption::Timestamp { .. } => 10,
        TcpOption::Other(_) => 0,
    }
}
