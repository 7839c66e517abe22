//! Flows: a thread for each end, which sends or takes bytes in large pieces and otherwise sleeps.
//!
//! A flow of messages gets each of them from the post when it is due. Its sender connects with the first one, and its
//! socket does not hold small ones back (TCP_NODELAY), as those of programs that talk in messages do not.
//!
//! No end ever closes its connection, so that the last packets are those of the data.

use crate::clock;
use crate::engine::Engine;
use crate::failure::{Context, Failure};
use crate::hosts::Host;
use crate::post::{Inboxes, Post};
use crate::run::Events;
use crate::socket;
use firstlight_linux::{FlowPlan, HostPlan, Message, Moment};
use nix::sys::sendfile::sendfile;
use nix::sys::socket::{SockaddrIn, connect, setsockopt, sockopt};
use std::fs::{File, OpenOptions};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

/// Bytes of one piece that is sent.
const PIECE: u64 = 1 << 24;
/// A file of nothing: its pages go to the network as they are, where a buffer's bytes would be copied.
const NOTHING: &str = "/run/nothing";
/// Most bytes that are taken at once.
const LARGE: u64 = 1 << 30;
/// Memory of a thread that does next to nothing.
const STACK: usize = 32 * 1024;

/// One connection with its two ends.
#[derive(Clone)]
pub struct Flow {
    plan: FlowPlan,
    /// In words, for messages.
    route: String,
    to: SocketAddrV4,
    sender: Arc<OwnedFd>,
    listener: Arc<TcpListener>,
    receiver: Arc<OnceLock<TcpStream>>,
}

/// Makes the sockets of all flows, host by host.
pub fn prepare(plans: &[FlowPlan], hosts: &[Host], addresses: &[HostPlan]) -> Result<Vec<Flow>, Failure> {
    let mut senders: Vec<Option<OwnedFd>> = plans.iter().map(|_| None).collect();
    let mut listeners: Vec<Option<OwnedFd>> = plans.iter().map(|_| None).collect();
    for (index, host) in hosts.iter().enumerate() {
        let own = |plan: &&FlowPlan| plan.from == index || plan.to == index;
        if plans.iter().find(own).is_none() {
            continue;
        }
        host.enter()?;
        let address = addresses[index].address;
        for (plan, (sender, listener)) in plans.iter().zip(senders.iter_mut().zip(&mut listeners)) {
            let named = |error: Failure| Failure::new(format!("flow {} on {}: {error}", plan.flow, host.name));
            if plan.from == index {
                *sender = Some(socket::bound(SocketAddrV4::new(address, plan.from_port), &plan.cc).map_err(named)?);
            }
            if plan.to == index {
                let socket = socket::bound(SocketAddrV4::new(address, plan.to_port), &plan.cc).map_err(named)?;
                socket::listen_for_one(&socket).map_err(named)?;
                *listener = Some(socket);
            }
        }
    }
    let ends = plans.iter().zip(senders.into_iter().zip(listeners));
    let flow = |(plan, (sender, listener)): (&FlowPlan, (Option<OwnedFd>, Option<OwnedFd>))| {
        let lost = || Failure::new(format!("flow {} is between hosts that the plan does not have", plan.flow));
        Ok(Flow {
            plan: plan.clone(),
            route: format!("flow {} from {} to {}", plan.flow, hosts[plan.from].name, hosts[plan.to].name),
            to: SocketAddrV4::new(addresses[plan.to].address, plan.to_port),
            sender: Arc::new(sender.ok_or_else(lost)?),
            listener: Arc::new(listener.ok_or_else(lost)?.into()),
            receiver: Arc::new(OnceLock::new()),
        })
    };
    ends.map(flow).collect()
}

/// Starts the threads of all flows; they wait for `start`. Flows of messages have them from `post`.
pub fn start(
    flows: &[Flow],
    start: &Arc<Barrier>,
    events: &Events,
    engine: &Engine,
    post: &Arc<Post>,
    inboxes: Vec<Inboxes>,
) -> Result<(), Failure> {
    let nothing = Arc::new(nothing().context(|| format!("cannot make {NOTHING}"))?);
    for (index, (flow, inboxes)) in flows.iter().zip(inboxes).enumerate() {
        let [sender, receiver] = [flow.clone(), flow.clone()];
        let (nothing, engine, post) = (Arc::clone(&nothing), engine.clone(), Arc::clone(post));
        if let Some(at) = flow.plan.start {
            spawn(start, events, move || sender.send(at, &nothing))?;
            spawn(start, events, move || receiver.receive(&engine))?;
        } else {
            spawn(start, events, move || sender.send_messages(inboxes.sender, &nothing))?;
            spawn(start, events, move || receiver.receive_messages(inboxes.receiver, || post.received(index)))?;
        }
    }
    Ok(())
}

/// How many threads wait for the start.
pub fn threads(flows: usize) -> usize {
    2 * flows
}

fn nothing() -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(NOTHING)?;
    file.set_len(PIECE)?;
    Ok(file)
}

fn spawn(
    start: &Arc<Barrier>,
    events: &Events,
    work: impl FnOnce() -> Result<bool, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (start, events) = (Arc::clone(start), events.clone());
    let body = move || {
        start.wait();
        match work() {
            Ok(true) => events.flow_complete(),
            Ok(false) => {}
            Err(failure) => events.failed(failure),
        }
    };
    thread::Builder::new().stack_size(STACK).spawn(body).map(drop).context(|| "cannot start a flow's thread".into())
}

impl Flow {
    /// Connects and sends all that there is.
    fn send(&self, at: u64, nothing: &File) -> Result<bool, Failure> {
        clock::sleep(at);
        self.connect()?;
        self.write(nothing, self.plan.size.unwrap_or(u64::MAX))?;
        // As closing would: the last segment does not wait to be filled.
        self.flush()?;
        Ok(false)
    }

    /// Connects with the first message and sends each as it comes.
    fn send_messages(&self, inbox: Receiver<u64>, nothing: &File) -> Result<bool, Failure> {
        for (index, bytes) in inbox.into_iter().enumerate() {
            if index == 0 {
                self.connect()?;
                self.flush()?;
            }
            self.write(nothing, bytes)?;
        }
        Ok(false)
    }

    fn connect(&self) -> Result<(), Failure> {
        connect(self.sender.as_raw_fd(), &SockaddrIn::from(self.to))
            .context(|| format!("{}: cannot connect to {}", self.route, self.to))
    }

    /// From now on nothing waits to be filled.
    fn flush(&self) -> Result<(), Failure> {
        setsockopt(&self.sender, sockopt::TcpNoDelay, &true).context(|| format!("{}: cannot flush", self.route))
    }

    fn write(&self, nothing: &File, mut left: u64) -> Result<(), Failure> {
        while left > 0 {
            let piece = left.min(PIECE) as usize;
            let sent = sendfile(&self.sender, nothing, Some(&mut 0), piece)
                .context(|| format!("{}: the sender's connection broke", self.route))?;
            left -= sent as u64;
        }
        Ok(())
    }

    /// Accepts the connection and takes all that comes; true when that is all.
    fn receive(&self, engine: &Engine) -> Result<bool, Failure> {
        let receiver = self.accept()?;
        self.take(receiver, self.plan.size.unwrap_or(u64::MAX))?;
        engine.tell(Message::FlowComplete { flow: self.plan.flow })?;
        Ok(true)
    }

    /// Accepts the connection and takes each message; `received` tells whether it was the last one.
    fn receive_messages(
        &self,
        inbox: Receiver<u64>,
        received: impl Fn() -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let receiver = self.accept()?;
        for bytes in inbox {
            self.take(receiver, bytes)?;
            if received()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn accept(&self) -> Result<&TcpStream, Failure> {
        let accepted = self.listener.accept();
        let (accepted, _) = accepted.context(|| format!("{}: cannot accept its connection", self.route))?;
        Ok(self.receiver.get_or_init(|| accepted))
    }

    fn take(&self, receiver: &TcpStream, mut left: u64) -> Result<(), Failure> {
        while left > 0 {
            let taken = socket::discard(receiver, left.min(LARGE) as usize)
                .context(|| format!("{}: the receiver's connection broke", self.route))?;
            if taken == 0 {
                return Err(Failure::new(format!("{}: the sender closed its connection", self.route)));
            }
            left -= taken as u64;
        }
        Ok(())
    }

    /// Tells the engine the state of the sending end.
    pub fn tell_sender(&self, moment: Moment, engine: &Engine) -> Result<(), Failure> {
        self.tell(true, &*self.sender, moment, engine)
    }

    /// Tells the engine the state of both ends, as far as there are any.
    pub fn tell_both(&self, moment: Moment, engine: &Engine) -> Result<(), Failure> {
        self.tell_sender(moment, engine)?;
        self.tell_receiver(moment, engine)
    }

    /// Tells the engine the state of the receiving end, if there is one yet.
    pub fn tell_receiver(&self, moment: Moment, engine: &Engine) -> Result<(), Failure> {
        self.receiver.get().map_or(Ok(()), |receiver| self.tell(false, receiver, moment, engine))
    }

    fn tell(&self, sender: bool, socket: &impl AsRawFd, moment: Moment, engine: &Engine) -> Result<(), Failure> {
        let info = socket::info(socket).context(|| format!("{}: cannot ask for TCP_INFO", self.route))?;
        engine.tell(Message::FlowState { flow: self.plan.flow, sender, moment, info: &info })
    }
}
