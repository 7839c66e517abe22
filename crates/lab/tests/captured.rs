//! A capture reads back as what was sent.

use firstlight_lab::spec::OverrideValue;
use firstlight_lab::{Files, LabError, Outcome, Spec, run};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

const PAIR: &str = include_str!("specs/pair.toml");

fn capture(path: Option<&Path>, set: &[(&str, &str)]) -> Result<Outcome, LabError> {
    let base = [("duration", "12ms"), ("warmup", "1ms"), ("tcp.cc", "dctcp"), ("voq.ecn_small", "10")];
    let all = base.iter().chain(set);
    let overrides: Vec<_> = all.map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    let spec = Spec::read(PAIR, "pair.toml", &overrides)?;
    run(&spec, &overrides, &Files { capture: path, timeline: None }, &mut |_| ControlFlow::Continue(()))
}

/// One packet of a capture.
struct CapturedPacket {
    at_ns: u128,
    interface: u32,
    source: [u8; 4],
    destination: [u8; 4],
    length: u32,
    ce: bool,
    ece: bool,
    syn: bool,
    sack: bool,
    payload: u32,
    sequence: u32,
}

fn read(path: &Path) -> (Vec<String>, Vec<CapturedPacket>) {
    let bytes = std::fs::read(path).expect("the capture is there");
    let mut reader = PcapNgReader::new(bytes.as_slice()).expect("a section header");
    let (mut interfaces, mut packets) = (vec![], vec![]);
    while let Some(block) = reader.next_block() {
        match block.expect("a sound block") {
            Block::InterfaceDescription(interface) => {
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                interfaces.push(name.expect("an interface has a name"));
            }
            Block::EnhancedPacket(packet) => {
                packets.push(seen(&packet.data, packet.timestamp.as_nanos(), packet.interface_id, packet.original_len));
            }
            other => panic!("{other:?}"),
        }
    }
    (interfaces, packets)
}

fn seen(data: &[u8], at_ns: u128, interface: u32, length: u32) -> CapturedPacket {
    let ip = etherparse::Ipv4HeaderSlice::from_slice(data).expect("an IPv4 header");
    assert_eq!(u32::from(ip.total_len()), length);
    assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
    let sliced = etherparse::TcpHeaderSlice::from_slice(&data[20..]).expect("a TCP header");
    let options: Vec<_> = sliced.options_iterator().map(|option| option.expect("a sound option")).collect();
    CapturedPacket {
        at_ns,
        interface,
        source: ip.source(),
        destination: ip.destination(),
        length,
        ce: ip.ecn().value() == 3,
        ece: sliced.ece(),
        syn: sliced.syn(),
        sack: options.iter().any(|o| matches!(o, etherparse::TcpOptionElement::SelectiveAcknowledgement(..))),
        payload: length - data.len() as u32,
        sequence: sliced.sequence_number(),
    }
}

#[test]
fn packets_as_a_sender_sees_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcapng");
    let outcome = capture(Some(&path), &[]).unwrap_or_else(|error| panic!("{error}"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing but the capture is left");
    let (interfaces, packets) = read(&path);
    assert_eq!(interfaces.len(), 48);
    assert_eq!((interfaces[0].as_str(), interfaces[47].as_str()), ("rack0.host0", "rack2.host15"));
    assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
    assert!(packets.iter().all(|packet| packet.interface < 16), "only senders record");
    assert_eq!(packets.iter().filter(|p| p.syn && p.source[2] == 0).count(), 16);
    // Data goes out unmarked, so CE is seen at receivers only; ACKs come back with ECE and with SACK blocks.
    assert!(packets.iter().all(|packet| packet.payload == 0 || !packet.ce));
    assert!(packets.iter().any(|packet| packet.ece && packet.source == [10, 0, 1, 1]));
    assert!(packets.iter().any(|packet| packet.sack));
    assert!(packets.iter().any(|packet| packet.length == 9000 && packet.payload == 8948));
    sequences_are_whole(&packets, &outcome);
}

/// The payload that the first sender sent covers what its flow says, without a gap.
fn sequences_are_whole(packets: &[CapturedPacket], outcome: &Outcome) {
    let own = |packet: &&CapturedPacket| packet.source == [10, 0, 0, 1] && packet.destination == [10, 0, 1, 1];
    let isn = packets.iter().filter(own).find(|packet| packet.syn).expect("a SYN").sequence;
    let data = packets.iter().filter(own).filter(|packet| packet.payload > 0);
    let mut segments = BTreeMap::new();
    for packet in data {
        segments.insert(packet.sequence.wrapping_sub(isn.wrapping_add(1)), packet.payload);
    }
    let end = segments.iter().fold(0, |next, (&start, &length)| {
        assert!(start <= next, "no hole before {start}");
        next.max(start + length)
    });
    let flows = outcome.table("flows").expect("a table");
    let Some(firstlight_lab::Column::Integer(acked)) = flows.column("bytes_acked") else { panic!() };
    assert!(i64::from(end) >= acked[0] && acked[0] > 0);
}

#[test]
fn receivers_see_the_marks_and_both_sides_see_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str, side: &str| {
        let path = folder.path().join(name);
        let outcome = capture(Some(&path), &[("measure.capture_side", side)]).unwrap_or_else(|error| panic!("{error}"));
        let digest = outcome.manifest["digest"].as_str().expect("a text").to_string();
        (digest, read(&path).1)
    };
    let (sender, receiver, both) = (at("s", "sender"), at("r", "receiver"), at("b", "both"));
    assert!(receiver.1.iter().any(|packet| packet.payload > 0 && packet.ce));
    assert_eq!(sender.1.len() + receiver.1.len(), both.1.len());
    let plain = capture(None, &[]).unwrap_or_else(|error| panic!("{error}"));
    let digest = plain.manifest["digest"].as_str().expect("a text");
    assert_eq!([&sender.0, &receiver.0, &both.0], [digest; 3], "watching changes nothing");
}

#[test]
fn times_are_the_experiments_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scaled.pcapng");
    capture(Some(&path), &[("time_scale", "20")]).unwrap_or_else(|error| panic!("{error}"));
    let last = read(&path).1.last().expect("packets").at_ns;
    assert!((11_000_000..=12_000_000).contains(&last), "{last} ns of 12 ms");
}

#[test]
fn a_capture_that_cannot_be_written_is_an_error() {
    let error = capture(Some(Path::new("/nowhere/x.pcapng")), &[]).expect_err("no such folder").to_string();
    assert!(error.starts_with("cannot write the capture /nowhere/x.pcapng: "), "{error}");
    let error = capture(None, &[("measure.capture", "true")]).expect_err("no file named").to_string();
    assert!(error.starts_with("measure.capture is set, but this run has no capture file"), "{error}");
}
