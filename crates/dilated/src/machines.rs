//! The machines that have joined a run, as the engine sees them.

use crate::clock;
use crate::error::Error;
use crate::fidelity::{FidelityMeter, Late};
use crate::peer::{EngineState, JoinedState, PacketFrom, Peer, Received};
use crate::seal::{CODE, LONGEST, Opener, Sealer};
use firstlight_linux::Context;
use firstlight_uml::RunDirectory;
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// The engine's file in the run's directory about machines that joined.
const REPORT: &str = "machines.json";
/// Room for datagrams that wait in the kernel, as far as it gives it, in bytes.
const ROOM: usize = 8 << 20;
/// How long a machine may be silent after its first message, in nanoseconds.
pub const SILENCE: u64 = 20_000_000_000;
/// How long a machine may take until its first message and to set its hosts up, in nanoseconds.
pub const BEGINNING: u64 = 120_000_000_000;
/// How long machines may take from the end of the fabric's time to their last word, in nanoseconds.
const ENDING: u64 = 20_000_000_000;
/// The largest IP packet that fits into a datagram with what is around it.
const MOST_MTU: u16 = 65_000;

/// Machines of a run, as `run.json` has them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Joined {
    /// The address at which datagrams arrive.
    pub listen: SocketAddr,
    pub machines: Vec<Machine>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Machine {
    pub name: String,
    /// Keys of datagrams to it and from it.
    pub keys: [Vec<u8>; 2],
    /// The machine's hosts and programs, by their places in the plan of the run.
    pub hosts: Vec<usize>,
    pub programs: Vec<u32>,
}

/// The engine's record of a machine when the run is over.
#[derive(Serialize)]
struct MachineReport {
    name: String,
    hosts: usize,
    clock_offset_us: f64,
    round_trip_us: f64,
    packets_sent: u64,
    packets_received: u64,
    datagrams_refused: u64,
}

struct Member {
    machine: Machine,
    peer: Peer,
    address: Option<SocketAddr>,
    /// The machine's last state.
    theirs: JoinedState,
    own: EngineState,
    /// How many of the machine's ended programs were reported.
    reported: usize,
}

/// All machines that have joined; none in most runs.
#[derive(Default)]
pub struct Machines {
    socket: Option<UdpSocket>,
    members: Vec<Member>,
    began: u64,
    over_since: Option<u64>,
    datagram: Vec<u8>,
}

/// An item that has come from a machine.
pub enum MachineMessage {
    /// A packet.
    Packet {
        /// The number in the plan of the host that sent it.
        host: usize,
        /// When the packet began to wait.
        time: u64,
        /// The part of the datagram that holds the packet, with its interface's header.
        content: Range<usize>,
    },
    State,
}

impl Machines {
    /// Opens the socket. This must be done in the machine's own network namespace.
    pub fn open(joined: Joined) -> Result<Self, Error> {
        let what = || format!("cannot listen at {} (UDP) for machines that join", joined.listen);
        let socket = UdpSocket::bind(joined.listen).context(what)?;
        make_room(&socket)?;
        let member = |(index, machine): (usize, Machine)| {
            let [to, from] = &machine.keys;
            let peer = Peer::new(Sealer::new(to, index as u8), Opener::new(from, index as u8));
            let (theirs, own) = (JoinedState::default(), EngineState::default());
            Member { machine, peer, address: None, theirs, own, reported: 0 }
        };
        let members = joined.machines.into_iter().enumerate().map(member).collect();
        let began = clock::now();
        Ok(Machines { socket: Some(socket), members, began, over_since: None, datagram: vec![0; LONGEST] })
    }

    /// Sends the machines their hosts' settings.
    pub fn describe(&mut self, rates: &[u64], cores: Option<f64>, mtu: u16) -> Result<(), Error> {
        if !self.members.is_empty() && mtu > MOST_MTU {
            return Err(Error::Machine(format!("hosts on other machines have an MTU of {MOST_MTU} bytes at most")));
        }
        for Member { machine, own, .. } in &mut self.members {
            let rates = machine.hosts.iter().map(|host| rates[*host]).collect();
            *own = EngineState { rates, cores, mtu, ..EngineState::default() };
        }
        Ok(())
    }

    /// The socket, to be waited for.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// On which machine a host of the plan is, and which one of its hosts it is.
    pub fn place(&self, host: usize) -> Option<(usize, usize)> {
        let find = |member: &Member| member.machine.hosts.iter().position(|own| *own == host);
        self.members.iter().enumerate().find_map(|(index, member)| Some((index, find(member)?)))
    }

    /// Sends a packet to a host of a machine.
    #[inline]
    pub fn send(&mut self, machine: usize, device: usize, due: u64, content: [&[u8]; 2]) {
        let Member { peer, address, .. } = &mut self.members[machine];
        let datagram = peer.packet(device, due, content);
        if let (Some(socket), Some(address)) = (&self.socket, address) {
            // The receiver's count shows a lost datagram.
            let _ = socket.send_to(datagram, *address);
        }
    }

    /// The next item that has come; none if there is none.
    pub fn receive(&mut self) -> Option<MachineMessage> {
        let Machines { socket, members, datagram, .. } = self;
        let socket = socket.as_ref()?;
        loop {
            let (length, from) = socket.recv_from(datagram).ok()?;
            let datagram = &datagram[..length];
            let Some(member) = datagram.first().and_then(|machine| members.get_mut(usize::from(*machine))) else {
                continue;
            };
            match member.peer.receive::<JoinedState>(datagram) {
                None => {}
                Some(Received::State(state)) => {
                    member.address = Some(from);
                    member.theirs = state;
                    return Some(MachineMessage::State);
                }
                Some(Received::Packet(PacketFrom { device, time, content })) => {
                    let Some(host) = member.machine.hosts.get(device) else { continue };
                    let end = length - CODE;
                    return Some(MachineMessage::Packet { host: *host, time, content: end - content.len()..end });
                }
            }
        }
    }

    /// The bytes of the datagram that came last; they are to be given back.
    pub fn take_datagram(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.datagram)
    }

    /// Gives a datagram's memory back.
    pub fn give_datagram(&mut self, datagram: Vec<u8>) {
        self.datagram = datagram;
    }

    /// Programs that have ended on machines since the last call, and the reason why a machine cannot continue.
    pub fn news(&mut self) -> (Vec<(u32, i32)>, Option<String>) {
        let (mut ended, mut failed) = (vec![], None);
        for Member { machine, theirs, reported, .. } in &mut self.members {
            for (program, code) in theirs.ended.iter().skip(*reported) {
                ended.extend(machine.programs.get(*program as usize).map(|known| (*known, *code)));
            }
            *reported = theirs.ended.len();
            let why = theirs.failed.as_ref().map(|why| format!("on machine {}: {why}", machine.name));
            failed = failed.or(why);
        }
        (ended, failed)
    }

    /// Whether all hosts of all machines are set up.
    pub fn are_ready(&self) -> bool {
        self.members.iter().all(|member| member.theirs.ready && member.peer.clock().is_some())
    }

    /// Whether all machines have finished their work.
    pub fn are_finished(&self) -> bool {
        self.members.iter().all(|member| member.theirs.finished)
    }

    /// The fabric's time begins.
    pub fn begin(&mut self) {
        self.members.iter_mut().for_each(|member| member.own.begun = true);
        self.speak(true);
    }

    /// Ends the run on all machines.
    pub fn end(&mut self) {
        for Member { own, peer, .. } in &mut self.members {
            own.over = true;
            own.sent = peer.sent;
        }
        self.over_since = Some(clock::now());
        self.speak(true);
    }

    /// Whether all machines have sent their measurements.
    pub fn have_measured(&self) -> bool {
        self.members.iter().all(|member| member.theirs.measured.is_some())
    }

    /// The machines may go.
    pub fn release(&mut self) {
        self.members.iter_mut().for_each(|member| member.own.done = true);
        self.speak(true);
    }

    /// Sends the machines this one's state when it is time to.
    pub fn speak(&mut self, news: bool) {
        let Some(socket) = &self.socket else { return };
        for Member { peer, own, address, .. } in &mut self.members {
            if let Some((address, datagram)) = address.as_ref().zip(peer.state(news, &*own)) {
                let _ = socket.send_to(datagram, *address);
            }
        }
    }

    /// Fails when a machine is silent for too long.
    ///
    /// # Errors
    /// When that is so; the message says which one.
    pub fn check(&self, now: u64) -> Result<(), Error> {
        let seconds = |nanoseconds: u64| nanoseconds / 1_000_000_000;
        for Member { machine, peer, theirs, own, .. } in self.members.iter().filter(|member| !member.own.done) {
            let name = &machine.name;
            if !own.begun && now > self.began + BEGINNING {
                let what = if theirs.ready { "its clock could not be measured" } else { "its hosts were not set up" };
                return Err(Error::Machine(format!("machine {name}: {what} within {} s", seconds(BEGINNING))));
            }
            if own.begun && now > peer.heard + SILENCE {
                return Err(Error::Machine(format!(
                    "machine {name} was silent for {} s: it has left, or no datagrams (UDP) come from it",
                    seconds(SILENCE)
                )));
            }
            if self.over_since.is_some_and(|since| now > since + ENDING) && theirs.measured.is_none() {
                return Err(Error::Machine(format!(
                    "machine {name} sent no measurements within {} s",
                    seconds(ENDING)
                )));
            }
        }
        Ok(())
    }

    /// Adds the machines' measurements. Returns the largest share of time that one of them lost.
    pub fn add_to(&self, meter: &mut FidelityMeter, timers: &mut Late) -> f64 {
        let mut stolen = 0.0f64;
        for Member { peer, own, theirs, .. } in &self.members {
            let Some(measured) = &theirs.measured else { continue };
            meter.delivered.add_counts(&measured.delivered);
            timers.add_counts(&measured.timers);
            meter.lost += measured.lost;
            meter.lost += own.sent.saturating_sub(measured.got) + measured.sent.saturating_sub(peer.got);
            stolen = stolen.max(measured.stolen);
        }
        stolen
    }

    /// Writes the record of the machines to the run's directory.
    pub fn report(&self, directory: &RunDirectory) -> Result<(), Error> {
        if self.members.is_empty() {
            return Ok(());
        }
        let report = |Member { machine, peer, .. }: &Member| {
            let (offset, round_trip) = peer.clock().unwrap_or_default();
            MachineReport {
                name: machine.name.clone(),
                hosts: machine.hosts.len(),
                clock_offset_us: offset as f64 / 1e3,
                round_trip_us: round_trip as f64 / 1e3,
                packets_sent: peer.sent,
                packets_received: peer.got,
                datagrams_refused: peer.refused(),
            }
        };
        let rows: Vec<MachineReport> = self.members.iter().map(report).collect();
        let path = directory.path(REPORT);
        let text = serde_json::to_string(&rows).expect("JSON can represent it");
        Ok(fs::write(&path, text).context(|| format!("cannot write {}", path.display()))?)
    }
}

/// Makes a socket wait for nothing, and the kernel keep many datagrams for it.
pub fn make_room(socket: &UdpSocket) -> Result<(), Error> {
    socket.set_nonblocking(true).context(|| "cannot use a UDP socket".into())?;
    if setsockopt(socket, sockopt::RcvBufForce, &ROOM).is_err() {
        // Only root may have more than the machine's limit.
        let _ = setsockopt(socket, sockopt::RcvBuf, &ROOM);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::JoinedMeasurements;

    /// The engine's side with hosts 1 and 3 on a machine, and that machine's.
    fn joined() -> (Machines, Peer, UdpSocket) {
        let machine = Machine {
            name: "b".into(),
            keys: [b"to".to_vec(), b"from".to_vec()],
            hosts: vec![1, 3],
            programs: vec![5, 2],
        };
        let machines = Machines::open(Joined { listen: ([127, 0, 0, 1], 0).into(), machines: vec![machine] }).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(machines.socket.as_ref().unwrap().local_addr().unwrap()).unwrap();
        (machines, Peer::new(Sealer::new(b"from", 0), Opener::new(b"to", 0)), socket)
    }

    /// On the loopback device a datagram is there when it is sent.
    fn send_state(peer: &mut Peer, socket: &UdpSocket, state: &JoinedState) {
        socket.send(peer.state(true, state).unwrap()).unwrap();
    }

    #[test]
    fn hosts_of_the_plan_have_their_place() {
        let (machines, ..) = joined();
        assert_eq!([0, 1, 2, 3].map(|host| machines.place(host)), [None, Some((0, 0)), None, Some((0, 1))]);
        assert_eq!(Machines::default().place(1), None);
    }

    #[test]
    fn packets_come_from_their_host_and_foreign_ones_from_nobody() {
        let (mut machines, mut peer, socket) = joined();
        for foreign in [&b""[..], &[0; 9], &[0; 60], &[7; 60]] {
            socket.send(foreign).unwrap();
        }
        let datagram = peer.packet(1, 77, [&[1; 10], b"packet"]).to_vec();
        socket.send(&datagram).unwrap();
        socket.send(&datagram).unwrap();
        socket.send(peer.packet(2, 77, [&[1; 10], b"of a host that is not there"])).unwrap();
        let Some(MachineMessage::Packet { host, time, content }) = machines.receive() else { panic!("a packet") };
        assert_eq!((host, time, &machines.take_datagram()[content][10..]), (3, 77, &b"packet"[..]));
        machines.give_datagram(vec![0; LONGEST]);
        assert!(machines.receive().is_none(), "once");
        assert_eq!(machines.members[0].peer.refused(), 3, "a datagram of another machine's number is not even opened");
    }

    #[test]
    fn programs_that_ended_are_told_once() {
        let (mut machines, mut peer, socket) = joined();
        let mut state = JoinedState { ended: vec![(1, 0)], ..JoinedState::default() };
        let mut after = |machines: &mut Machines, state: &JoinedState| {
            send_state(&mut peer, &socket, state);
            assert!(matches!(machines.receive(), Some(MachineMessage::State)));
            machines.news()
        };
        assert_eq!(after(&mut machines, &state), (vec![(2, 0)], None));
        state.ended.extend([(0, 3), (9, 0)]);
        state.failed = Some("no room".into());
        assert_eq!(after(&mut machines, &state), (vec![(5, 3)], Some("on machine b: no room".into())));
        assert_eq!(after(&mut machines, &JoinedState::default()).0, []);
    }

    #[test]
    fn a_machine_that_is_silent_for_too_long_is_named() {
        let (mut machines, ..) = joined();
        let now = clock::now();
        let check = |machines: &Machines, after: u64| machines.check(now + after).map_err(|error| error.to_string());
        assert_eq!(check(&machines, SILENCE + BEGINNING / 2), Ok(()), "it sets its hosts up");
        let late = check(&machines, BEGINNING + 1).unwrap_err();
        assert_eq!(late, "machine b: its hosts were not set up within 120 s");
        machines.begin();
        assert!(check(&machines, SILENCE + 1).unwrap_err().starts_with("machine b was silent for 20 s: it has left"));
        machines.end();
        machines.members[0].peer.heard = now + ENDING + 2_000_000_000;
        let mute = check(&machines, ENDING + 2_000_000_000).unwrap_err();
        assert_eq!(mute, "machine b sent no measurements within 20 s");
        machines.release();
        assert_eq!(check(&machines, 1 << 62), Ok(()));
    }

    #[test]
    fn lost_datagrams_are_lost_packets() {
        let (mut machines, mut peer, socket) = joined();
        send_state(&mut peer, &socket, &JoinedState::default());
        machines.receive();
        (5..8).for_each(|due| machines.send(0, 0, due, [&[0; 10], b"x"]));
        machines.end();
        let delivered = vec![(1_000, 2)];
        let measured = JoinedMeasurements { delivered, timers: vec![(50, 4)], stolen: 0.25, lost: 1, sent: 4, got: 2 };
        send_state(&mut peer, &socket, &JoinedState { measured: Some(measured), ..JoinedState::default() });
        machines.receive();
        assert!(machines.have_measured());
        let (mut meter, mut timers) = (FidelityMeter::new(), Late::new());
        assert_eq!(machines.add_to(&mut meter, &mut timers), 0.25);
        assert_eq!(meter.lost, 1 + (3 - 2) + 4, "on its devices, on the way there, on the way here");
        assert_eq!((meter.delivered.lateness(0).count, timers.lateness(0).count), (2, 4));
    }
}
