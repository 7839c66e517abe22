//! The capture's file. It is written under a temporary name and gets its own name when it is complete.

use super::address::Addresses;
use super::headers::HeaderFormat;
use crate::unfinished::{self, UnfinishedFile};
use firstlight_net::{Direction, HostId, Packet};
use firstlight_units::{Bytes, Rate};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError, PcapResult};
use std::borrow::Cow;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Most bytes of a packet in the file: the largest IP and TCP headers together.
const SNAP_LENGTH: u32 = 120;
/// The link type of packets of both versions, which differ in their first byte. Its registered number is 101, but
/// libpcap 1.10 then reads files of one interface only; 12 is the number of its own that it and Wireshark take for the
/// same.
const RAW_IP: u32 = 12;
/// `if_tsresol`: timestamps in 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// `epb_flags`: direction, seen from the host.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

type CaptureFile = PcapNgWriter<BufWriter<UnfinishedFile>>;

/// Writes packets to a capture; clones write to the same file.
#[derive(Clone)]
pub struct CaptureWriter {
    state: Arc<Mutex<CaptureState>>,
}

struct CaptureState {
    path: PathBuf,
    format: HeaderFormat,
    /// `None` once the file is finished or a write has failed.
    file: Option<CaptureFile>,
    failure: Option<io::Error>,
    bytes: Vec<u8>,
}

/// Why a capture cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture {path}: {source}")]
pub struct CaptureError {
    /// The capture's file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// A host's interface, as the capture names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Name of the interface.
    pub name: String,
    /// Rate at which the host sends.
    pub rate: Rate,
}

/// The properties of the network that a capture needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureNetwork {
    /// One interface for each host, by host.
    pub interfaces: Vec<CaptureInterface>,
    /// The hosts' addresses.
    pub addresses: Addresses,
    /// The first bytes of hosts' IPv6 addresses, whose last four are those of IPv4; `None` where there are none.
    pub ipv6: Option<[u8; 12]>,
    /// The largest segment that a simulated host's SYN announces, in bytes.
    pub mss: u16,
    /// The receive window of a simulated host; its SYN announces the scale for it.
    pub receive_window: Bytes,
}

impl CaptureWriter {
    /// Begins a capture that will be at `path`, with one interface for each host.
    ///
    /// # Errors
    /// When the file cannot be begun.
    pub fn create(path: &Path, network: &CaptureNetwork) -> Result<Self, CaptureError> {
        let file = open(path, network).map_err(|source| CaptureError { path: path.into(), source })?;
        let state =
            CaptureState { path: path.into(), format: format(network), file: Some(file), failure: None, bytes: vec![] };
        Ok(CaptureWriter { state: Arc::new(Mutex::new(state)) })
    }

    fn state(&self) -> MutexGuard<'_, CaptureState> {
        self.state.lock().expect("no writer of a capture panics")
    }

    /// Records a packet at `at_ns` nanoseconds. [`CaptureWriter::finish`] reports failures.
    pub fn write(&self, packet: &Packet, at_ns: u64, host: HostId, direction: Direction) {
        let mut state = self.state();
        if let Err(error) = state.write(packet, at_ns, host, direction) {
            state.failure = Some(error);
            state.file = None;
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// When the file could not be written, packets included.
    pub fn finish(self) -> Result<(), CaptureError> {
        let mut state = self.state();
        state.finish().map_err(|source| CaptureError { path: state.path.clone(), source })
    }
}

impl CaptureState {
    fn write(&mut self, packet: &Packet, at_ns: u64, host: HostId, direction: Direction) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        self.bytes.clear();
        let original_len = self.format.write(packet, &mut self.bytes);
        let flags = match direction {
            Direction::Sent => OUTBOUND,
            Direction::Received => INBOUND,
        };
        let block = EnhancedPacketBlock {
            interface_id: host.0.into(),
            timestamp: Duration::from_nanos(at_ns),
            original_len,
            data: Cow::Borrowed(&self.bytes),
            options: vec![EnhancedPacketOption::Flags(flags)],
        };
        file.write_block(&block.into_block()).map_err(io_error)?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let Some(file) = self.file.take() else { return Ok(()) };
        unfinished::complete(file.into_inner(), &self.path)
    }
}

fn format(network: &CaptureNetwork) -> HeaderFormat {
    let window_scale = window_scale(network.receive_window.get());
    let ipv6 = network.ipv6.unwrap_or_default();
    HeaderFormat { addresses: network.addresses.clone(), ipv6, mss: network.mss, window_scale }
}

/// The smallest shift that lets a window fit in 16 bits (RFC 7323, section 2).
fn window_scale(window: u64) -> u8 {
    (0..=14).find(|shift| window >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

fn open(path: &Path, network: &CaptureNetwork) -> io::Result<CaptureFile> {
    let file = unfinished::begin(path, ".capture-", ".pcapng")?;
    let mut file = PcapNgWriter::with_endianness(file, Endianness::Little).map_err(io_error)?;
    let kind = if network.ipv6.is_some() { DataLink::from(RAW_IP) } else { DataLink::IPV4 };
    for interface in &network.interfaces {
        describe(&mut file, interface, kind).map_err(io_error)?;
    }
    Ok(file)
}

fn describe(file: &mut CaptureFile, interface: &CaptureInterface, linktype: DataLink) -> PcapResult<usize> {
    let block = InterfaceDescriptionBlock {
        linktype,
        snaplen: SNAP_LENGTH,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(&interface.name)),
            InterfaceDescriptionOption::IfSpeed(interface.rate.as_bps()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    file.write_pcapng_block(block)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
