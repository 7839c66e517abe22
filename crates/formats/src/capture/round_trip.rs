//! Any packets that are written to a capture are read back, as a property.

use super::{Addresses, CaptureInterface, CaptureNetwork, CaptureWriter};
use etherparse::{Ipv4Header, TcpHeader};
use firstlight_net::{Direction, Ecn, FlowTuple, HostId, Packet, TcpFlags, TcpHeader as Fields};
use firstlight_units::{Bytes, Rate};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::prelude::*;
use std::time::Duration;

const RACK: usize = 3;
const FLAGS: [TcpFlags; 7] =
    [TcpFlags::FIN, TcpFlags::SYN, TcpFlags::RST, TcpFlags::PSH, TcpFlags::ACK, TcpFlags::ECE, TcpFlags::CWR];

#[derive(Clone, Debug)]
struct CapturedRecord {
    packet: Packet,
    at_ns: u64,
    host: HostId,
    direction: Direction,
}

fn packets() -> impl Strategy<Value = Packet> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
    let flags = prop::sample::subsequence(FLAGS.to_vec(), 0..=FLAGS.len());
    let tuple = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>());
    let fields = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u32>(), any::<u32>(), flags);
    (tuple, fields, 10u8..=20, 0u16..=65_000, ecn, 0u8..8).prop_map(|(tuple, fields, words, payload, ecn, class)| {
        let (src, sport, dst, dport) = tuple;
        let (seq, ack, window, tsval, tsecr, flags) = fields;
        let flags = flags.into_iter().fold(TcpFlags::default(), |all, flag| all | flag);
        let tuple = FlowTuple { src: HostId(src), sport, dst: HostId(dst), dport };
        let fields = Fields { seq, ack, window, flags, tsval, tsecr };
        Packet::new_tcp(tuple, 4 * words, payload, fields).with_ecn(ecn).with_class(class)
    })
}

fn records() -> impl Strategy<Value = CapturedRecord> {
    let direction = prop::sample::select(vec![Direction::Sent, Direction::Received]);
    (packets(), any::<u64>(), 0u16..4, direction).prop_map(|(packet, at_ns, host, direction)| CapturedRecord {
        packet,
        at_ns,
        host: HostId(host),
        direction,
    })
}

fn addresses() -> Addresses {
    Addresses { hosts_per_rack: RACK, hosts: 65_535, further: vec![] }
}

fn network(names: &[String]) -> CaptureNetwork {
    let interfaces = names.iter().map(|name| CaptureInterface { name: name.clone(), rate: Rate::from_bps(1) });
    CaptureNetwork {
        interfaces: interfaces.collect(),
        addresses: addresses(),
        ipv6: None,
        mss: 1460,
        receive_window: Bytes::new(65_536),
    }
}

/// The bytes of a capture are those of the record that went into it.
fn is_the_same(record: &CapturedRecord, data: &[u8], length: u32) -> Result<(), TestCaseError> {
    let segment = record.packet.tcp().expect("it is of TCP");
    let (ip, rest) = Ipv4Header::from_slice(data).expect("an IPv4 header");
    let (tcp, nothing) = TcpHeader::from_slice(rest).expect("a TCP header");
    prop_assert!(nothing.is_empty());
    prop_assert_eq!((length, ip.total_len), (u32::from(record.packet.size()), record.packet.size()));
    prop_assert_eq!(data.len(), usize::from(record.packet.header()));
    prop_assert_eq!(ip.source, addresses().of(record.packet.src()));
    prop_assert_eq!(ip.destination, addresses().of(record.packet.dst()));
    prop_assert_eq!((ip.ecn.value(), ip.dscp.value()), (record.packet.ecn() as u8, record.packet.class() << 3));
    prop_assert_eq!((tcp.source_port, tcp.destination_port), (segment.sport(), segment.dport()));
    prop_assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (segment.seq(), segment.ack()));
    prop_assert_eq!(tcp.window_size, segment.window());
    let read = [tcp.fin, tcp.syn, tcp.rst, tcp.psh, tcp.ack, tcp.ece, tcp.cwr];
    prop_assert_eq!(read, FLAGS.map(|flag| segment.flags().has(flag)));
    prop_assert!(tcp.options_iterator().all(|option| option.is_ok()), "{:?}", tcp.options);
    Ok(())
}

proptest! {
    #[test]
    fn any_packets_are_read_back(
        names in prop::collection::vec("\\PC{1,20}", 4),
        sent in prop::collection::vec(records(), 0..20),
    ) {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("packets.pcapng");
        let writer = CaptureWriter::create(&path, &network(&names)).expect("a file is begun");
        sent.iter().for_each(|r| writer.write(&r.packet, r.at_ns, r.host, r.direction));
        writer.finish().expect("a file is complete");
        let bytes = std::fs::read(&path).expect("the capture is there");
        let mut reader = PcapNgReader::new(bytes.as_slice()).expect("a section header");
        let (mut interfaces, mut packets) = (0, 0);
        while let Some(block) = reader.next_block() {
            match block.expect("a sound block") {
                Block::InterfaceDescription(interface) => {
                    let name = InterfaceDescriptionOption::IfName(names[interfaces].as_str().into());
                    prop_assert!(interface.options.contains(&name));
                    interfaces += 1;
                }
                Block::EnhancedPacket(packet) => {
                    let record = &sent[packets];
                    let direction = if record.direction == Direction::Received { 1 } else { 2 };
                    prop_assert_eq!(packet.timestamp, Duration::from_nanos(record.at_ns));
                    prop_assert_eq!(packet.interface_id, u32::from(record.host.0));
                    prop_assert_eq!(&packet.options, &[EnhancedPacketOption::Flags(direction)]);
                    is_the_same(record, &packet.data, packet.original_len)?;
                    packets += 1;
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert_eq!((interfaces, packets), (names.len(), sent.len()));
    }
}
